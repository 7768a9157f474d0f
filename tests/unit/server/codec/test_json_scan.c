#include "codec/json_scan.h"

#include "suite.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static const struct json_rule rules[] = {
    {"/query", JSON_FLOATS},
    {"/mask", JSON_BOOLEANS},
    {"/projections/query", JSON_FLOATS},
};
#define RULES (sizeof(rules) / sizeof(rules[0]))

static const struct json_limits roomy = {.elements = 1000000, .envelope = 65536};

static struct json_scan scan;
static struct problem problem;

static void forget(void)
{
	json_scan_clear(&scan);
	problem = (struct problem){.code = PROBLEM_NONE};
}

static bool walk_limited(const char *text, const struct json_limits *limits)
{
	forget();
	return json_scan(text, strlen(text), rules, RULES, limits, NULL, &scan, &problem);
}

static bool walk(const char *text)
{
	return walk_limited(text, &roomy);
}

static void refuses(const char *text, enum problem_code code, const char *pointer)
{
	bool whole = walk(text);
	ck_assert_msg(problem.code == code, "%s: %s instead of %s", text, problem_code_text(problem.code),
	              problem_code_text(code));
	ck_assert_msg(strcmp(problem.pointer, pointer) == 0, "%s: pointer %s instead of %s", text,
	              problem.pointer, pointer);
	ck_assert_int_eq(whole, code != PROBLEM_SYNTAX && code != PROBLEM_TOO_DEEP);
	forget();
}

START_TEST(a_nested_array_becomes_floats_with_its_shape)
{
	ck_assert(walk("{\"query\": [[[1, 2.5], [-3, 4e0]], [[5, 6], [7, 0.1]], [[0, -0, 1], [2, 3]]]}"));
	ck_assert_int_eq(problem.code, PROBLEM_RAGGED);
	ck_assert(walk("{\"query\": [[[1, 2.5], [-3, 4e0]], [[5, 6], [7, 0.1]], [[0, -0], [2, 3]]]}"));
	ck_assert_int_eq(problem.code, PROBLEM_NONE);
	const struct json_array *array = &scan.arrays[0];
	ck_assert(array->present && array->form == JSON_FORM_NESTED);
	ck_assert_uint_eq(array->rank, 3);
	ck_assert_uint_eq(array->dims[0], 3);
	ck_assert_uint_eq(array->dims[1], 2);
	ck_assert_uint_eq(array->dims[2], 2);
	ck_assert_uint_eq(array->count, 12);
	static const float expected[] = {1, 2.5f, -3, 4, 5, 6, 7, 0.1f, 0, -0.0f, 2, 3};
	ck_assert_mem_eq(array->data, expected, sizeof(expected));
	forget();
}
END_TEST

START_TEST(the_envelope_holds_the_number_of_the_rule_where_an_array_stood)
{
	ck_assert(walk(
	    " { \"heads\" : 2 , \"mask\" : [[true,false]],\n\"projections\":{\"query\":[[1]],\"x\":\"a b\"},"
	    "\"query\": {\"shape\": [1, 1], \"data\": [3]}, \"list\": [1, [], {}, null] } "));
	ck_assert_int_eq(problem.code, PROBLEM_NONE);
	ck_assert(scan.object);
	ck_assert_str_eq(scan.envelope, "{\"heads\":2,\"mask\":1,\"projections\":{\"query\":2,\"x\":\"a b\"},"
	                                "\"query\":{\"shape\":[1,1],\"data\":0},\"list\":[1,[],{},null]}");
	ck_assert_uint_eq(scan.envelope_length, strlen(scan.envelope));
	ck_assert(scan.arrays[0].form == JSON_FORM_DATA);
	const uint8_t *mask = scan.arrays[1].data;
	ck_assert(mask[0] == 1 && mask[1] == 0);
	forget();
}
END_TEST

START_TEST(an_escaped_name_is_the_name_it_spells)
{
	ck_assert(walk("{\"\\u0071uer\\u0079\": [[1]]}"));
	ck_assert(scan.arrays[0].present);
	refuses("{\"\\u0071uery\": 0}", PROBLEM_WRONG_TYPE, "/query");
	ck_assert(walk("{\"projections/query\": [[1]], \"projections\": [{\"query\": [1]}]}"));
	ck_assert(!scan.arrays[2].present);
	forget();
}
END_TEST

START_TEST(no_client_can_write_an_index_itself)
{
	refuses("{\"query\": 0}", PROBLEM_WRONG_TYPE, "/query");
	refuses("{\"query\": \"0\"}", PROBLEM_WRONG_TYPE, "/query");
	refuses("{\"query\": null}", PROBLEM_WRONG_TYPE, "/query");
	refuses("{\"query\": true}", PROBLEM_WRONG_TYPE, "/query");
	refuses("{\"query\": {\"shape\": [1, 1], \"data\": 0}}", PROBLEM_WRONG_TYPE, "/query/data");
	refuses("{\"query\": {\"shape\": [1, 1], \"data\": {\"data\": [1]}}}", PROBLEM_WRONG_TYPE,
	        "/query/data");
	refuses("{\"query\": [[1]], \"query\": [[2]]}", PROBLEM_DUPLICATE_KEY, "/query");
	refuses("{\"query\": {\"data\": [1], \"data\": [2]}}", PROBLEM_DUPLICATE_KEY, "/query/data");
}
END_TEST

START_TEST(base64_becomes_its_bytes_and_a_number_in_the_envelope)
{
	static const uint8_t bytes[] = {0xFF, 0xFF, 0xFE};
	static const char *const texts[] = {
	    "{\"query\": {\"base64\": \"///+\", \"dtype\": \"float32\", \"shape\": [3]}}",
	    "{\"query\": {\"base64\": \"\\/\\/\\u002f\\u002B\", \"dtype\": \"float32\", \"shape\": [3]}}",
	};
	for (size_t i = 0; i < 2; i++) {
		ck_assert(walk(texts[i]));
		ck_assert_int_eq(problem.code, PROBLEM_NONE);
		ck_assert(scan.arrays[0].present && scan.arrays[0].form == JSON_FORM_BASE64);
		ck_assert_uint_eq(scan.arrays[0].count, 3);
		ck_assert_mem_eq(scan.arrays[0].data, bytes, 3);
		ck_assert_str_eq(scan.envelope,
		                 "{\"query\":{\"base64\":0,\"dtype\":\"float32\",\"shape\":[3]}}");
	}
	ck_assert(walk("{\"mask\": {\"base64\": \"\"}, \"other\": {\"base64\": \"not it\"}}"));
	ck_assert(scan.arrays[1].present && scan.arrays[1].count == 0 && scan.arrays[1].data != NULL);
	ck_assert_str_eq(scan.envelope, "{\"mask\":{\"base64\":1},\"other\":{\"base64\":\"not it\"}}");
	forget();
}
END_TEST

START_TEST(what_is_not_base64_is_told_with_its_place)
{
	refuses("{\"query\": {\"base64\": \"AAA\"}}", PROBLEM_BAD_VALUE, "/query/base64");
	refuses("{\"query\": {\"base64\": \"AA*A\"}}", PROBLEM_BAD_VALUE, "/query/base64");
	refuses("{\"query\": {\"base64\": \"A\\u00e4AA\"}}", PROBLEM_BAD_VALUE, "/query/base64");
	refuses("{\"query\": {\"base64\": \"AAA\\u0000\"}}", PROBLEM_NUL_ESCAPE, "/query/base64");
	refuses("{\"query\": {\"base64\": [1]}}", PROBLEM_WRONG_TYPE, "/query/base64");
	refuses("{\"query\": {\"base64\": 0}}", PROBLEM_WRONG_TYPE, "/query/base64");
	refuses("{\"query\": {\"base64\": \"AAAA\", \"base64\": \"AAAA\"}}", PROBLEM_DUPLICATE_KEY,
	        "/query/base64");
	refuses("{\"query\": {\"base64\": \"AAAA\", \"data\": [1]}}", PROBLEM_BAD_VALUE, "/query/data");
	refuses("{\"query\": {\"data\": [1], \"base64\": \"AAAA\"}}", PROBLEM_BAD_VALUE, "/query/base64");
	refuses("{\"query\": {\"base64\": \"AAAA", PROBLEM_SYNTAX, "/query/base64");
	refuses("{\"query\": {\"base64\": \"AA\\xAA\"}}", PROBLEM_SYNTAX, "/query/base64");
	refuses("{\"query\": {\"base64\": \"AA\nAA\"}}", PROBLEM_SYNTAX, "/query/base64");
	refuses("{\"query\": {\"base64\": \"AA\xff\"}}", PROBLEM_SYNTAX, "/query/base64");
}
END_TEST

START_TEST(a_bad_number_is_named_by_its_index)
{
	refuses("{\"query\": [[1, 2, 3, 1e39]]}", PROBLEM_BEYOND_FLOAT32, "/query/0/3");
	refuses("{\"query\": [[1, 2], [NaN, 4]]}", PROBLEM_NOT_FINITE, "/query/1/0");
	refuses("{\"query\": [[1, Infinity]]}", PROBLEM_NOT_FINITE, "/query/0/1");
	refuses("{\"query\": [[-Infinity]]}", PROBLEM_NOT_FINITE, "/query/0/0");
	refuses("{\"scale\": NaN}", PROBLEM_NOT_FINITE, "/scale");
	refuses("{\"scale\": -1e39}", PROBLEM_BEYOND_FLOAT32, "/scale");
	refuses("{\"list\": [1, {\"a/b~\": [1e99]}]}", PROBLEM_BEYOND_FLOAT32, "/list/1/a~1b~0/0");
	refuses("{\"query\": {\"shape\": [1, 2], \"data\": [1, 4e38]}}", PROBLEM_BEYOND_FLOAT32,
	        "/query/data/1");
	refuses("{\"query\": [[1, 2.]]}", PROBLEM_SYNTAX, "/query/0/1");
}
END_TEST

START_TEST(ragged_nesting_names_the_odd_one)
{
	refuses("{\"query\": [[1, 2], [3]]}", PROBLEM_RAGGED, "/query/1");
	refuses("{\"query\": [[1], [2, 3]]}", PROBLEM_RAGGED, "/query/1");
	refuses("{\"query\": [[1], 2]}", PROBLEM_RAGGED, "/query/1");
	refuses("{\"query\": [1, [2]]}", PROBLEM_RAGGED, "/query/1");
	refuses("{\"query\": [[[1], [2]], [[3]]]}", PROBLEM_RAGGED, "/query/1");
	refuses("{\"query\": [[1], []]}", PROBLEM_RAGGED, "/query/1");
	refuses("{\"query\": [[[[[1]]]]]}", PROBLEM_SHAPE_MISMATCH, "/query");
}
END_TEST

START_TEST(a_bare_empty_array_is_told_of_the_shape_form)
{
	refuses("{\"query\": []}", PROBLEM_BAD_VALUE, "/query");
	ck_assert(walk("{\"query\": [[]]}"));
	ck_assert_ptr_nonnull(strstr(problem.detail, "\"shape\""));
	ck_assert_str_eq(problem.pointer, "/query/0");
	ck_assert(walk("{\"query\": {\"shape\": [0, 3], \"data\": []}}"));
	ck_assert_int_eq(problem.code, PROBLEM_NONE);
	ck_assert_ptr_nonnull(scan.arrays[0].data);
	ck_assert_uint_eq(scan.arrays[0].count, 0);
	forget();
}
END_TEST

START_TEST(a_tensor_holds_its_own_type_only)
{
	refuses("{\"query\": [[1, \"2\"]]}", PROBLEM_WRONG_TYPE, "/query/0/1");
	refuses("{\"query\": [[1, null]]}", PROBLEM_WRONG_TYPE, "/query/0/1");
	refuses("{\"query\": [[1, {\"query\": [1]}]]}", PROBLEM_WRONG_TYPE, "/query/0/1");
	refuses("{\"query\": [[true]]}", PROBLEM_WRONG_TYPE, "/query/0/0");
	refuses("{\"mask\": [[true, null]]}", PROBLEM_WRONG_TYPE, "/mask/0/1");
	ck_assert(walk("{\"mask\": [[1]]}"));
	ck_assert_int_eq(problem.code, PROBLEM_WRONG_TYPE);
	ck_assert_ptr_nonnull(strstr(problem.detail, "`bias`"));
	forget();
}
END_TEST

START_TEST(elements_past_the_limit_are_counted_and_not_kept)
{
	const struct json_limits tight = {.elements = 5, .envelope = 1000};
	ck_assert(walk_limited("{\"query\": [[1, 2, 3]], \"mask\": [[true, false]]}", &tight));
	ck_assert_int_eq(problem.code, PROBLEM_NONE);
	ck_assert(walk_limited("{\"query\": [[1, 2, 3]], \"mask\": [[true, false, true]]}", &tight));
	ck_assert_int_eq(problem.code, PROBLEM_TOO_MANY_ELEMENTS);
	ck_assert_str_eq(problem.pointer, "/mask");
	ck_assert_str_eq(problem.detail, "the tensors hold 6 elements, the limit is 5");
	ck_assert(!walk_limited("{\"query\": [[1, 2, 3, 4, 5, 6, 7]], \"mask\": [[true]]", &tight));
	ck_assert_int_eq(problem.code, PROBLEM_SYNTAX);
	ck_assert(walk_limited("{\"query\": [[1, 2, 3, 4, 5, 6], [7]]}", &tight));
	ck_assert_int_eq(problem.code, PROBLEM_RAGGED);
	ck_assert(walk_limited("{\"query\": [[1, 2, 3, 4, 5, 1e39]]}", &tight));
	ck_assert_int_eq(problem.code, PROBLEM_TOO_MANY_ELEMENTS);
	forget();
}
END_TEST

START_TEST(a_large_tensor_is_kept_whole)
{
	enum { COUNT = 100000 };
	char *text = malloc(COUNT * 8 + 32);
	size_t length = (size_t)sprintf(text, "{\"query\":[[");
	for (int i = 0; i < COUNT; i++)
		length += (size_t)sprintf(text + length, "%s%d", i == 0 ? "" : ",", i);
	sprintf(text + length, "]]}");
	ck_assert(walk(text));
	const float *data = scan.arrays[0].data;
	for (int i = 0; i < COUNT; i++)
		ck_assert(data[i] == (float)i);
	forget();
	free(text);
}
END_TEST

START_TEST(an_envelope_over_its_limit_is_refused_where_it_grew)
{
	const struct json_limits tight = {.elements = 100, .envelope = 20};
	ck_assert(walk_limited("{\"query\": [[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]]}", &tight));
	ck_assert_int_eq(problem.code, PROBLEM_NONE);
	ck_assert(walk_limited("{\"a\": 1, \"quary\": [[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]]}", &tight));
	ck_assert_int_eq(problem.code, PROBLEM_BODY_TOO_LARGE);
	ck_assert_str_eq(problem.pointer, "/quary/0/1");
	ck_assert_ptr_null(scan.envelope);
	forget();
}
END_TEST

START_TEST(integers_past_int64_stand_in_the_envelope_as_reals)
{
	ck_assert(
	    walk("[17000000000000000000, -9223372036854775809, 9223372036854775807, -9223372036854775808, "
	         "9223372036854775808, 1e30, 0.50000000000000000000]"));
	ck_assert_str_eq(scan.envelope,
	                 "[17000000000000000000.0,-9223372036854775809.0,9223372036854775807,"
	                 "-9223372036854775808,9223372036854775808.0,1e30,0.50000000000000000000]");
	ck_assert(!scan.object);
	forget();
}
END_TEST

START_TEST(a_nul_escape_is_told_with_its_place)
{
	refuses("{\"a\": \"x\\u0000\"}", PROBLEM_NUL_ESCAPE, "/a");
	refuses("{\"que\\u0000\": 1}", PROBLEM_NUL_ESCAPE, "");
}
END_TEST

START_TEST(what_is_not_json_is_a_syntax_problem)
{
	static const char *const texts[] = {
	    "",
	    " ",
	    "{",
	    "{\"a\"",
	    "{\"a\":",
	    "{\"a\":1",
	    "{\"a\":1,",
	    "{,}",
	    "{\"a\" 1}",
	    "{a:1}",
	    "[1,]",
	    "[,1]",
	    "[1 2]",
	    "{\"a\":1}}",
	    "tru",
	    "truex",
	    "nan",
	    "+1",
	    "01",
	    "-",
	    "1.",
	    ".5",
	    "1e",
	    "\"",
	    "\"\\x\"",
	    "\"\\u12g4\"",
	    "\"\\\"",
	    "'a'",
	    "\"\t\"",
	    "\"\\ud800\"",
	    "\"\\udc00\"",
	    "\"\\ud800\\u0041\"",
	    "\"\\ud800\\ue000\"",
	    "\"\xff\"",
	    "\"\xc0\x80\"",
	    "\"\xed\xa0\x80\"",
	    "// x",
	    "{\"a\":1,}",
	    "[1]x",
	    "\xef\xbb\xbf{}",
	    "{\"query\":[1,]}",
	    "{\"query\":[[1]",
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		ck_assert_msg(!walk(texts[i]), "%s", texts[i]);
		ck_assert_msg(problem.code == PROBLEM_SYNTAX, "%s", texts[i]);
	}
	forget();
	ck_assert(!json_scan("[\0]", 3, NULL, 0, &roomy, NULL, &scan, &problem));
	forget();
}
END_TEST

START_TEST(syntax_is_told_before_all_else)
{
	refuses("{\"query\": [[1, 1e39], [NaN]], \"mask\": 3", PROBLEM_SYNTAX, "/mask");
	refuses("{\"query\": [[1], [1, 2], 1e39], \"mask\": 3}", PROBLEM_RAGGED, "/query/1");
	refuses("{\"a\": \"\\u0000\", \"query\": [[NaN]]}", PROBLEM_NOT_FINITE, "/query/0/0");
}
END_TEST

START_TEST(a_syntax_problem_says_where)
{
	ck_assert(!walk("{\"a\": [1, 2 3]}"));
	ck_assert_str_eq(problem.detail, "at byte 12: expected ',' or ']', found '3'");
	ck_assert_str_eq(problem.pointer, "/a/1");
	ck_assert(!walk("{\"a\": [1, 2"));
	ck_assert_str_eq(problem.detail, "at byte 11: expected ',' or ']', found the end of the text");
	ck_assert(!walk("{\"query\": [[1]], \"a\x01\": 1}"));
	ck_assert_str_eq(problem.detail, "at byte 19: expected a well-formed string, found byte 0x01");
	ck_assert_str_eq(problem.pointer, "/a");
	forget();
}
END_TEST

static void nest(const char *open, size_t times, bool whole, enum problem_code code)
{
	size_t length = strlen(open) * times;
	char *text = malloc(length + times + 16);
	size_t at = 0;
	for (size_t i = 0; i < times; i++)
		at += (size_t)sprintf(text + at, "%s", open);
	if (whole) {
		text[at++] = '1';
		memset(text + at, open[0] == '[' ? ']' : '}', times);
		at += times;
	}
	forget();
	json_scan(text, at, rules, RULES, &roomy, NULL, &scan, &problem);
	ck_assert_int_eq(problem.code, code);
	forget();
	free(text);
}

START_TEST(nesting_has_an_end)
{
	nest("[", 64, true, PROBLEM_NONE);
	nest("[", 65, true, PROBLEM_TOO_DEEP);
	nest("{\"a\":", 64, true, PROBLEM_NONE);
	nest("{\"a\":", 65, true, PROBLEM_TOO_DEEP);
	nest("[", 100000, false, PROBLEM_TOO_DEEP);
	nest("{\"query\":", 100000, false, PROBLEM_TOO_DEEP);
	nest("{\"query\":[[", 100000, false, PROBLEM_TOO_DEEP);
}
END_TEST

START_TEST(a_long_name_or_place_is_cut)
{
	char text[4096], *at = text;
	at += sprintf(at, "{\"");
	for (int i = 0; i < 500; i++)
		at += sprintf(at, "\xe2\x82\xac");
	at += sprintf(at, "\": 1e39}");
	ck_assert(walk(text));
	ck_assert_int_eq(problem.code, PROBLEM_BEYOND_FLOAT32);
	ck_assert_uint_eq(strlen(problem.pointer), 46);
	at = text;
	for (int i = 0; i < 30; i++)
		at += sprintf(at, "{\"a_name_of_some_length_~\": ");
	at += sprintf(at, "1e39");
	for (int i = 0; i < 30; i++)
		at += sprintf(at, "}");
	ck_assert(walk(text));
	ck_assert_uint_lt(strlen(problem.pointer), sizeof(problem.pointer));
	forget();
}
END_TEST

SUITE_MAIN("json_scan", a_nested_array_becomes_floats_with_its_shape,
           the_envelope_holds_the_number_of_the_rule_where_an_array_stood,
           an_escaped_name_is_the_name_it_spells, base64_becomes_its_bytes_and_a_number_in_the_envelope,
           what_is_not_base64_is_told_with_its_place, no_client_can_write_an_index_itself,
           a_bad_number_is_named_by_its_index, ragged_nesting_names_the_odd_one,
           a_bare_empty_array_is_told_of_the_shape_form, a_tensor_holds_its_own_type_only,
           elements_past_the_limit_are_counted_and_not_kept, a_large_tensor_is_kept_whole,
           an_envelope_over_its_limit_is_refused_where_it_grew,
           integers_past_int64_stand_in_the_envelope_as_reals, a_nul_escape_is_told_with_its_place,
           what_is_not_json_is_a_syntax_problem, syntax_is_told_before_all_else, a_syntax_problem_says_where,
           nesting_has_an_end, a_long_name_or_place_is_cut)
