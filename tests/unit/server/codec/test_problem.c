#include "codec/problem.h"
#include "codec/utf8.h"

#include "suite.h"

#include <jansson.h>
#include <string.h>

static struct problem none(void)
{
	return (struct problem){.code = PROBLEM_NONE};
}

START_TEST(every_code_has_a_status_of_its_class)
{
	ck_assert_int_eq(problem_status(PROBLEM_SYNTAX), 400);
	ck_assert_int_eq(problem_status(PROBLEM_REPLY_TOO_LARGE), 413);
	ck_assert_int_eq(problem_status(PROBLEM_RESULT_NOT_FINITE), 422);
	ck_assert_int_eq(problem_status(PROBLEM_DEADLINE), 504);
	ck_assert_str_eq(problem_code_text(PROBLEM_SHAPE_OVERFLOW), "shape-overflow");
	ck_assert_str_eq(problem_title(PROBLEM_RAGGED), "Nested arrays differ in length");
}
END_TEST

START_TEST(the_first_problem_set_is_the_one_told)
{
	struct problem problem = none();
	ck_assert(!problem_set(&problem, PROBLEM_HEADS, "/heads", "%d heads do not divide %d", 3, 4));
	ck_assert(!problem_set(&problem, PROBLEM_SYNTAX, "", "later"));
	ck_assert_int_eq(problem.code, PROBLEM_HEADS);
	ck_assert_str_eq(problem.pointer, "/heads");
	ck_assert_str_eq(problem.detail, "3 heads do not divide 4");
}
END_TEST

START_TEST(a_noted_problem_gives_way_to_one_that_is_told_before_it)
{
	static const enum problem_code order[] = {
	    PROBLEM_WRONG_TYPE,    PROBLEM_TOO_MANY_ELEMENTS, PROBLEM_RAGGED, PROBLEM_SHAPE_OVERFLOW,
	    PROBLEM_DUPLICATE_KEY, PROBLEM_NOT_AN_OBJECT,     PROBLEM_SYNTAX};
	const size_t count = sizeof(order) / sizeof(order[0]);
	struct problem problem = none();
	for (size_t i = 0; i < count; i++) {
		problem_note(&problem, order[i], "/a", "x");
		ck_assert_int_eq(problem.code, order[i]);
		problem_note(&problem, order[i], "/b", "x");
		ck_assert_str_eq(problem.pointer, "/a");
	}
	for (size_t i = 0; i < count; i++) {
		problem_note(&problem, order[i], "/c", "x");
		ck_assert_int_eq(problem.code, PROBLEM_SYNTAX);
	}
}
END_TEST

START_TEST(a_status_of_the_library_becomes_a_problem)
{
	struct problem memory = none(), cancelled = none(), invalid = none();
	problem_set_status(&memory, ATTN_MEMORY);
	problem_set_status(&cancelled, ATTN_CANCELLED);
	problem_set_status(&invalid, ATTN_INVALID);
	ck_assert_int_eq(memory.code, PROBLEM_MEMORY);
	ck_assert_int_eq(cancelled.code, PROBLEM_DEADLINE);
	ck_assert_int_eq(invalid.code, PROBLEM_INTERNAL);
}
END_TEST

START_TEST(a_problem_prints_as_the_json_of_rfc_9457)
{
	struct problem problem = none();
	problem_set(&problem, PROBLEM_BAD_VALUE, "/a\"b", "tab\there, \\, \x01 and \xc3\xa9, not \xff.");
	char text[PROBLEM_JSON_MAX];
	size_t length = problem_to_json(&problem, text, sizeof(text));
	ck_assert_uint_eq(length, strlen(text));
	json_t *json = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
	ck_assert_ptr_nonnull(json);
	ck_assert_str_eq(json_string_value(json_object_get(json, "type")), "urn:attnd:problem:bad-value");
	ck_assert_str_eq(json_string_value(json_object_get(json, "title")), problem_title(PROBLEM_BAD_VALUE));
	ck_assert_int_eq(json_integer_value(json_object_get(json, "status")), 400);
	ck_assert_str_eq(json_string_value(json_object_get(json, "code")), "bad-value");
	ck_assert_str_eq(json_string_value(json_object_get(json, "pointer")), "/a\"b");
	ck_assert_str_eq(json_string_value(json_object_get(json, "detail")),
	                 "tab\there, \\, \x01 and \xc3\xa9, not ?.");
	ck_assert_uint_eq(json_object_size(json), 6);
	json_decref(json);
}
END_TEST

START_TEST(text_too_long_is_cut_at_a_whole_character_and_always_fits)
{
	char long_text[2000], text[PROBLEM_JSON_MAX];
	for (size_t shift = 0; shift < 3; shift++) {
		memset(long_text, 'x', sizeof(long_text));
		for (size_t i = shift; i + 3 < sizeof(long_text); i += 3)
			memcpy(long_text + i, "\xe2\x82\xac", 3);
		long_text[sizeof(long_text) - 4] = '\0';
		struct problem problem = none();
		problem_set(&problem, PROBLEM_UNKNOWN_FIELD, long_text, "%s", long_text);
		size_t length = problem_to_json(&problem, text, sizeof(text));
		ck_assert_uint_eq(length, strlen(text));
		ck_assert_ptr_null(strchr(text, '?'));
		json_t *json = json_loadb(text, length, 0, NULL);
		ck_assert_ptr_nonnull(json);
		json_decref(json);
	}
	memset(long_text, '\x02', sizeof(long_text));
	long_text[sizeof(long_text) - 1] = '\0';
	struct problem problem = none();
	problem_set(&problem, PROBLEM_UNKNOWN_FIELD, long_text, "%s", long_text);
	ck_assert_uint_lt(problem_to_json(&problem, text, sizeof(text)), PROBLEM_JSON_MAX);
}
END_TEST

START_TEST(only_well_formed_utf8_is_a_sequence)
{
	static const struct {
		const char *text;
		size_t length;
	} cases[] = {
	    {"a", 1},
	    {"\x7f", 1},
	    {"\xc3\xa9", 2},
	    {"\xe2\x82\xac", 3},
	    {"\xed\x9f\xbf", 3},
	    {"\xf0\x90\x80\x80", 4},
	    {"\xf4\x8f\xbf\xbf", 4},
	    {"\x80", 0},
	    {"\xc0\xaf", 0},
	    {"\xc1\x81", 0},
	    {"\xe0\x80\xaf", 0},
	    {"\xed\xa0\x80", 0},
	    {"\xf0\x80\x80\xaf", 0},
	    {"\xf4\x90\x80\x80", 0},
	    {"\xf5\x80\x80\x80", 0},
	    {"\xe2\x82", 0},
	    {"\xe2\x28\xa1", 0},
	    {"\xff", 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_uint_eq(utf8_sequence(cases[i].text, cases[i].text + strlen(cases[i].text)),
		                  cases[i].length);
}
END_TEST

START_TEST(every_code_point_encodes_to_a_sequence_of_its_own)
{
	for (unsigned point = 0; point <= 0x10FFFF; point++) {
		char out[4];
		size_t length = utf8_encode(point, out);
		size_t wanted = point >= 0xD800 && point <= 0xDFFF ? 0 : length;
		ck_assert_uint_eq(utf8_sequence(out, out + length), wanted);
	}
}
END_TEST

START_TEST(a_problem_tells_itself_only_before_those_of_later_places)
{
	struct problem problem = {.code = PROBLEM_NONE};
	ck_assert(problem_tells(&problem, PROBLEM_BAD_VALUE));
	problem_note(&problem, PROBLEM_RAGGED, "/query/1", "first");
	ck_assert(!problem_tells(&problem, PROBLEM_RAGGED));
	ck_assert(!problem_tells(&problem, PROBLEM_BEYOND_FLOAT32));
	ck_assert(problem_tells(&problem, PROBLEM_SYNTAX));
	ck_assert_str_eq(problem.detail, "first");
}
END_TEST

SUITE_MAIN("problem", a_problem_tells_itself_only_before_those_of_later_places,
           every_code_has_a_status_of_its_class, the_first_problem_set_is_the_one_told,
           a_noted_problem_gives_way_to_one_that_is_told_before_it, a_status_of_the_library_becomes_a_problem,
           a_problem_prints_as_the_json_of_rfc_9457,
           text_too_long_is_cut_at_a_whole_character_and_always_fits, only_well_formed_utf8_is_a_sequence,
           every_code_point_encodes_to_a_sequence_of_its_own)
