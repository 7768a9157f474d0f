/*
 * log.h - one line an event on standard error, `key=value` or JSON.
 *
 * Any thread: a line is made in a buffer of its own and written with one write(2). The level and the form
 * are set at start and on reload; both are atomics. Values are escaped, so a client cannot forge a line:
 * control bytes, and bytes outside ASCII as \xHH, so that a line is ASCII whatever it tells.
 */
#ifndef ATTND_OBSERVE_LOG_H
#define ATTND_OBSERVE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };
enum log_format { LOG_KEY_VALUE, LOG_JSON };

/* One key and value; made by the functions below. Strings must live until the call returns. */
struct log_field {
	const char *key;
	enum { LOG_TEXT, LOG_UNSIGNED, LOG_REAL } type;
	union {
		const char *text; /* NULL prints as empty */
		uint64_t number;
		double real;
	} value;
};

static inline struct log_field log_text(const char *key, const char *text)
{
	return (struct log_field){.key = key, .type = LOG_TEXT, .value.text = text};
}
static inline struct log_field log_number(const char *key, uint64_t number)
{
	return (struct log_field){.key = key, .type = LOG_UNSIGNED, .value.number = number};
}
static inline struct log_field log_real(const char *key, double real)
{
	return (struct log_field){.key = key, .type = LOG_REAL, .value.real = real};
}

/* Names: "error", "warning", "info", "debug" and "text", "json"; false for another. */
bool log_level_parse(const char *name, enum log_level *out);
bool log_format_parse(const char *name, enum log_format *out);
void log_setup(enum log_level level, enum log_format format);

/* Formats one event: time (UTC, milliseconds), level, event, fields. Returns the length with its newline,
 * cut to size - 1: a text that does not fit is cut, fields behind it are left out, and the line is whole.
 * size is at least LOG_LINE_MIN. Pure; for log_write and tests. */
#define LOG_LINE_MIN 128
size_t log_line(char *out, size_t size, int64_t unix_ms, enum log_format format, enum log_level level,
                const char *event, const struct log_field *fields, size_t count);
void log_write(enum log_level level, const char *event, const struct log_field *fields, size_t count);

/* log_event(LOG_INFO, "ready", log_text("listen", address), log_number("workers", n)); */
#define log_event(level, event, ...)                                                                         \
	log_write((level), (event), (const struct log_field[]){{0}, ##__VA_ARGS__} + 1,                      \
	          sizeof((const struct log_field[]){{0}, ##__VA_ARGS__}) / sizeof(struct log_field) - 1)

#endif
