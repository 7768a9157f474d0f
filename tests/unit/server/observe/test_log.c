#include "observe/log.h"
#include "suite.h"

#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#define WHEN INT64_C(1700000000123) /* 2023-11-14T22:13:20.123Z */

static char line[4096];

static size_t format(size_t size, enum log_format form, const char *event, const struct log_field *fields,
                     size_t count)
{
	size_t length = log_line(line, size, WHEN, form, LOG_WARNING, event, fields, count);
	ck_assert_uint_eq(length, strlen(line));
	ck_assert_uint_lt(length, size);
	ck_assert_msg(strchr(line, '\n') == line + length - 1, "one newline, at the end: %s", line);
	return length;
}

static json_t *parse(void)
{
	json_error_t error;
	json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, &error);
	ck_assert_msg(object != NULL, "%s: %s", error.text, line);
	return object;
}

START_TEST(a_line_tells_time_level_event_and_fields_in_order)
{
	const struct log_field fields[] = {log_text("listen", "127.0.0.1:8080"), log_number("workers", 2),
	                                   log_real("seconds", 0.25)};
	format(sizeof line, LOG_KEY_VALUE, "ready", fields, 3);
	ck_assert_str_eq(line,
	                 "time=2023-11-14T22:13:20.123Z level=warning event=ready listen=127.0.0.1:8080 "
	                 "workers=2 seconds=0.25\n");
	format(sizeof line, LOG_JSON, "ready", fields, 3);
	ck_assert_str_eq(line,
	                 "{\"time\":\"2023-11-14T22:13:20.123Z\",\"level\":\"warning\",\"event\":\"ready\","
	                 "\"listen\":\"127.0.0.1:8080\",\"workers\":2,\"seconds\":0.25}\n");
}
END_TEST

START_TEST(a_value_cannot_forge_a_line_or_a_field)
{
	static const struct {
		const char *value, *written;
	} cases[] = {
	    {"a\nlevel=error event=forged", "\"a\\nlevel=error event=forged\""},
	    {"a b", "\"a b\""},
	    {"a=b", "\"a=b\""},
	    {"say \"x\"\\", "\"say \\\"x\\\"\\\\\""},
	    {"\t\r\x01\x1b[31m\x7f", "\"\\t\\r\\x01\\x1b[31m\\x7f\""},
	    {"\xc3\xa9\xff", "\"\\xc3\\xa9\\xff\""},
	    {"", "\"\""},
	    {NULL, "\"\""},
	    {"plain/path?x", "plain/path?x"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct log_field field = log_text("value", cases[i].value);
		char expected[256];
		format(sizeof line, LOG_KEY_VALUE, "e", &field, 1);
		snprintf(expected, sizeof expected, "event=e value=%s\n", cases[i].written);
		ck_assert_msg(strstr(line, expected) != NULL, "%s", line);
	}
}
END_TEST

START_TEST(the_json_form_is_json_and_reads_back)
{
	char every[256];
	for (int i = 1; i < 256; i++)
		every[i - 1] = (char)i;
	every[255] = '\0';
	const struct log_field fields[] = {log_text("every", every), log_text("none", NULL),
	                                   log_number("most", UINT64_MAX / 4), log_real("inf", INFINITY),
	                                   log_real("small", 1e-300)};
	format(sizeof line, LOG_JSON, "an \"event\"", fields, 5);
	json_t *object = parse();
	ck_assert_str_eq(json_string_value(json_object_get(object, "event")), "an \"event\"");
	const char *value = json_string_value(json_object_get(object, "every"));
	ck_assert_ptr_nonnull(value);
	ck_assert_ptr_nonnull(strstr(value, "\\x08\t\n\\x0b\\x0c\r"));
	ck_assert_ptr_nonnull(strstr(value, " !\"#$%&'()*+,-./0123"));
	ck_assert_ptr_nonnull(strstr(value, "[\\]^"));
	ck_assert_ptr_nonnull(strstr(value, "\\xfe\\xff"));
	ck_assert_int_eq(json_integer_value(json_object_get(object, "most")), INT64_MAX / 2);
	ck_assert(json_is_null(json_object_get(object, "inf")));
	ck_assert_double_eq(json_real_value(json_object_get(object, "small")), 1e-300);
	json_decref(object);
}
END_TEST

START_TEST(a_line_that_is_cut_is_still_whole)
{
	char text[600];
	memset(text, 'x', sizeof text);
	text[sizeof text - 1] = '\0';
	for (size_t i = 0; i < sizeof text - 1; i += 7)
		text[i] = '\n';
	const struct log_field fields[] = {log_number("first", 1), log_text("long", text),
	                                   log_number("last", 2)};
	for (size_t size = LOG_LINE_MIN; size < 800; size++) {
		format(size, LOG_KEY_VALUE, "event", fields, 3);
		const char *value = strstr(line, "long=\"");
		ck_assert(value == NULL || line[strlen(line) - 2] == '"' || strstr(line, "last=2") != NULL);
		format(size, LOG_JSON, "event", fields, 3);
		json_t *object = parse();
		ck_assert_int_eq(json_integer_value(json_object_get(object, "first")), 1);
		ck_assert_msg(size < 200 || json_object_get(object, "long") != NULL, "%s", line);
		json_decref(object);
	}
}
END_TEST

START_TEST(a_long_event_is_cut_too)
{
	char text[600];
	memset(text, 'e', sizeof text);
	text[sizeof text - 1] = '\0';
	format(LOG_LINE_MIN, LOG_KEY_VALUE, text, NULL, 0);
	format(LOG_LINE_MIN, LOG_JSON, text, NULL, 0);
	json_decref(parse());
}
END_TEST

/* What log_write sends to standard error. */
static const char *written(enum log_level level, enum log_format form, enum log_level event_level)
{
	static char text[256];
	int saved = dup(STDERR_FILENO), ends[2];
	ck_assert_int_eq(pipe2(ends, O_NONBLOCK), 0);
	dup2(ends[1], STDERR_FILENO);
	log_setup(level, form);
	log_event(event_level, "tried", log_number("n", 1));
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(ends[1]);
	ssize_t length = read(ends[0], text, sizeof text - 1);
	close(ends[0]);
	text[length > 0 ? length : 0] = '\0';
	return text;
}

START_TEST(events_less_grave_than_the_level_are_not_written)
{
	for (int level = LOG_ERROR; level <= LOG_DEBUG; level++)
		for (int event = LOG_ERROR; event <= LOG_DEBUG; event++) {
			const char *text =
			    written((enum log_level)level, LOG_KEY_VALUE, (enum log_level)event);
			ck_assert_msg((*text != '\0') == (event <= level), "%d, %d: %s", level, event, text);
		}
	ck_assert_ptr_nonnull(strstr(written(LOG_INFO, LOG_KEY_VALUE, LOG_INFO), " event=tried n=1\n"));
	ck_assert_ptr_nonnull(
	    strstr(written(LOG_INFO, LOG_JSON, LOG_INFO), "\"event\":\"tried\",\"n\":1}\n"));
}
END_TEST

START_TEST(an_event_may_have_no_fields)
{
	log_setup(LOG_ERROR, LOG_KEY_VALUE);
	log_event(LOG_DEBUG, "nothing");
	format(sizeof line, LOG_JSON, "nothing", NULL, 0);
	json_decref(parse());
}
END_TEST

START_TEST(names_of_levels_and_forms_are_read)
{
	static const char *const levels[] = {"error", "warning", "info", "debug"};
	enum log_level level;
	enum log_format form;
	for (int i = 0; i < 4; i++) {
		ck_assert(log_level_parse(levels[i], &level));
		ck_assert_int_eq(level, i);
	}
	ck_assert(!log_level_parse("loud", &level) && !log_level_parse("", &level));
	ck_assert(log_format_parse("text", &form) && form == LOG_KEY_VALUE);
	ck_assert(log_format_parse("json", &form) && form == LOG_JSON);
	ck_assert(!log_format_parse("JSON", &form));
}
END_TEST

SUITE_MAIN("log", a_line_tells_time_level_event_and_fields_in_order, a_value_cannot_forge_a_line_or_a_field,
           the_json_form_is_json_and_reads_back, a_line_that_is_cut_is_still_whole, a_long_event_is_cut_too,
           events_less_grave_than_the_level_are_not_written, an_event_may_have_no_fields,
           names_of_levels_and_forms_are_read)
