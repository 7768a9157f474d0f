#include "observe/log.h"

#include "observe/clock.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 2048
/* Longest text of one byte of a value. */
#define ESCAPE_MAX 8

static const char *const level_names[] = {"error", "warning", "info", "debug"};
static const char *const format_names[] = {"text", "json"};

static _Atomic int shown_level = LOG_INFO;
static _Atomic int shown_format = LOG_KEY_VALUE;

static bool name_find(const char *name, const char *const *names, size_t count, int *out)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(name, names[i]) == 0) {
			*out = (int)i;
			return true;
		}
	}
	return false;
}

bool log_level_parse(const char *name, enum log_level *out)
{
	int found;
	if (!name_find(name, level_names, sizeof level_names / sizeof level_names[0], &found))
		return false;
	*out = (enum log_level)found;
	return true;
}

bool log_format_parse(const char *name, enum log_format *out)
{
	int found;
	if (!name_find(name, format_names, sizeof format_names / sizeof format_names[0], &found))
		return false;
	*out = (enum log_format)found;
	return true;
}

void log_setup(enum log_level level, enum log_format format)
{
	atomic_store(&shown_level, (int)level);
	atomic_store(&shown_format, (int)format);
}

/* A line being made: at most `room` bytes, what closes it not counted. */
struct line {
	char *out;
	size_t length, room;
	enum log_format format;
	bool full; /* something did not fit: nothing more is added */
};

/* All of the text or nothing. */
static void add(struct line *line, const char *text)
{
	size_t length = strlen(text);
	if (line->full || length > line->room - line->length) {
		line->full = true;
		return;
	}
	memcpy(line->out + line->length, text, length);
	line->length += length;
}

/* One byte as it stands between quotes. */
static void escape(char byte, enum log_format format, char out[static ESCAPE_MAX])
{
	unsigned char value = (unsigned char)byte;
	static const char special[] = "\"\\\n\r\t", letters[] = "\"\\nrt";
	const char *found = memchr(special, byte, sizeof special - 1);
	if (found != NULL)
		snprintf(out, ESCAPE_MAX, "\\%c", letters[found - special]);
	else if (value >= 0x20 && value < 0x7f)
		snprintf(out, ESCAPE_MAX, "%c", byte);
	else /* JSON has no \x: there the backslash is escaped in turn */
		snprintf(out, ESCAPE_MAX, format == LOG_JSON ? "\\\\x%02x" : "\\x%02x", value);
}

static void add_quoted(struct line *line, const char *text)
{
	if (line->full || line->room - line->length < 2) {
		line->full = true;
		return;
	}
	add(line, "\"");
	line->room--; /* kept for the closing quote */
	for (; *text != '\0' && !line->full; text++) {
		char escaped[ESCAPE_MAX];
		escape(*text, line->format, escaped);
		add(line, escaped);
	}
	line->room++;
	line->out[line->length++] = '"';
}

/* Whether key=value needs no quotes around the value. */
static bool is_plain(const char *text)
{
	for (const char *p = text; *p != '\0'; p++)
		if (*p <= ' ' || *p >= 0x7f || strchr("\"\\=", *p) != NULL)
			return false;
	return *text != '\0';
}

static void add_text(struct line *line, const char *text)
{
	if (line->format == LOG_KEY_VALUE && is_plain(text) && strlen(text) <= line->room - line->length)
		add(line, text);
	else
		add_quoted(line, text);
}

static void add_value(struct line *line, const struct log_field *field)
{
	char number[32];
	switch (field->type) {
	case LOG_TEXT:
		add_text(line, field->value.text != NULL ? field->value.text : "");
		return;
	case LOG_UNSIGNED:
		snprintf(number, sizeof number, "%llu", (unsigned long long)field->value.number);
		break;
	case LOG_REAL:
		snprintf(number, sizeof number, "%.6g", field->value.real);
		if (line->format == LOG_JSON && !isfinite(field->value.real))
			snprintf(number, sizeof number, "null");
		break;
	}
	add(line, number);
}

/* A field goes in with its key and at least the beginning of its value, or not at all. */
static void add_field(struct line *line, const struct log_field *field)
{
	size_t before = line->length;
	if (line->full)
		return;
	if (line->format == LOG_JSON) {
		add(line, before > 1 ? ",\"" : "\"");
		add(line, field->key);
		add(line, "\":");
	} else {
		add(line, before > 0 ? " " : "");
		add(line, field->key);
		add(line, "=");
	}
	size_t value = line->length;
	if (!line->full)
		add_value(line, field);
	if (line->full && line->length == value)
		line->length = before;
}

size_t log_line(char *out, size_t size, int64_t unix_ms, enum log_format format, enum log_level level,
                const char *event, const struct log_field *fields, size_t count)
{
	assert(size >= LOG_LINE_MIN);
	const char *open = format == LOG_JSON ? "{" : "", *close = format == LOG_JSON ? "}\n" : "\n";
	struct line line = {.out = out, .room = size - 1 - strlen(close), .format = format};
	time_t seconds = (time_t)(unix_ms / 1000);
	struct tm utc;
	char date[32] = "", stamp[48];
	if (gmtime_r(&seconds, &utc) != NULL)
		strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(stamp, sizeof stamp, "%s.%03dZ", date, (int)(unix_ms % 1000));
	const struct log_field head[] = {log_text("time", stamp), log_text("level", level_names[level]),
	                                 log_text("event", event)};
	add(&line, open);
	for (size_t i = 0; i < sizeof head / sizeof head[0]; i++)
		add_field(&line, &head[i]);
	for (size_t i = 0; i < count; i++)
		add_field(&line, &fields[i]);
	memcpy(out + line.length, close, strlen(close) + 1);
	return line.length + strlen(close);
}

void log_write(enum log_level level, const char *event, const struct log_field *fields, size_t count)
{
	if ((int)level > atomic_load_explicit(&shown_level, memory_order_relaxed))
		return;
	char line[LINE_MAX_BYTES];
	enum log_format format = (enum log_format)atomic_load_explicit(&shown_format, memory_order_relaxed);
	size_t length = log_line(line, sizeof line, clock_unix_ms(), format, level, event, fields, count);
	/* A line that cannot be written is lost: there is nowhere to say so. */
	while (write(STDERR_FILENO, line, length) < 0 && errno == EINTR)
		;
}
