#include "codec/json_scan.h"

#include "suite.h"

#include <string.h>

static const struct json_rule rules[] = {{"/tokens", JSON_TOKENS}};
static const struct json_limits limits = {.elements = 8, .envelope = 256};

static struct json_scan scan;
static struct problem problem;

/* Scans an object whose member `tokens` is the text. */
static bool scanned(const char *tokens)
{
	char text[512];
	snprintf(text, sizeof(text), "{\"tokens\": %s , \"other\": [1]}", tokens);
	problem = (struct problem){.code = PROBLEM_NONE};
	return json_scan(text, strlen(text), rules, 1, &limits, NULL, &scan, &problem);
}

static void reads(const char *tokens, size_t rank, const int64_t *values, size_t count, const size_t *lengths,
                  size_t rows)
{
	const struct json_array *array = &scan.arrays[0];
	ck_assert(scanned(tokens));
	ck_assert_msg(problem.code == PROBLEM_NONE, "%s: %s", tokens, problem.detail);
	ck_assert_msg(array->present, "%s", tokens);
	ck_assert_uint_eq(array->rank, rank);
	ck_assert_uint_eq(array->count, count);
	ck_assert_uint_eq(array->rows, rows);
	ck_assert_mem_eq(array->lengths, lengths, rows * sizeof(*lengths));
	if (count > 0)
		ck_assert_mem_eq(array->data, values, count * sizeof(*values));
	ck_assert_str_eq(scan.envelope, "{\"tokens\":0,\"other\":[1]}");
	json_scan_clear(&scan);
}

START_TEST(lists_of_integers_are_rows_of_any_length)
{
	const int64_t values[] = {7, 0, 123456789012345678, 4};
	reads("[7,0,123456789012345678,4]", 1, values, 4, (const size_t[]){4}, 1);
	reads("[[7,0],[],[123456789012345678],[4]]", 2, values, 4, (const size_t[]){2, 0, 1, 1}, 4);
	reads(" [ [ 7 ,\n0 ] , [\t123456789012345678 , 4 ] ]", 2, values, 4, (const size_t[]){2, 2}, 2);
	reads("[[]]", 2, NULL, 0, (const size_t[]){0}, 1);
}
END_TEST

/* For the reader of the envelope to judge; its bytes are as they were. */
START_TEST(what_is_not_plain_stays_in_the_envelope)
{
	static const char *const texts[] = {"[]",
	                                    "[-1]",
	                                    "[1.0]",
	                                    "[1e2]",
	                                    "[1,[2]]",
	                                    "[[1],2]",
	                                    "[[[1]]]",
	                                    "7",
	                                    "[null]",
	                                    "[\"a\"]",
	                                    "[1234567890123456789]",
	                                    "{\"shape\":[1],\"data\":[1]}"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char wanted[128];
		snprintf(wanted, sizeof(wanted), "{\"tokens\":%s,\"other\":[1]}", texts[i]);
		ck_assert_msg(scanned(texts[i]) && problem.code == PROBLEM_NONE, "%s", texts[i]);
		ck_assert(!scan.arrays[0].present);
		ck_assert_ptr_null(scan.arrays[0].lengths);
		ck_assert_str_eq(scan.envelope, wanted);
		json_scan_clear(&scan);
	}
}
END_TEST

START_TEST(what_is_not_json_is_told_where_it_is_wrong)
{
	static const char *const texts[] = {"[01]", "[1,]", "[1 2]", "[[1]", "[[1],]", "[1", "[+1]", "[1]]"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		ck_assert_msg(!scanned(texts[i]), "%s", texts[i]);
		ck_assert_int_eq(problem.code, PROBLEM_SYNTAX);
		json_scan_clear(&scan);
	}
}
END_TEST

START_TEST(tokens_count_against_the_limit_of_elements)
{
	ck_assert(scanned("[1,2,3,4,5,6,7,8]") && problem.code == PROBLEM_NONE);
	json_scan_clear(&scan);
	ck_assert(scanned("[[1,2,3,4],[5,6,7,8,9]]"));
	ck_assert_int_eq(problem.code, PROBLEM_TOO_MANY_ELEMENTS);
	ck_assert_str_eq(problem.pointer, "/tokens");
	json_scan_clear(&scan);
}
END_TEST

SUITE_MAIN("json_tokens", lists_of_integers_are_rows_of_any_length, what_is_not_plain_stays_in_the_envelope,
           what_is_not_json_is_told_where_it_is_wrong, tokens_count_against_the_limit_of_elements)
