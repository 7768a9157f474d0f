/* Large texts, read and written in parts by several threads in a random order. */
#include "codec/json_scan.h"
#include "codec/json_survey.h"
#include "codec/json_writer.h"
#include "codec/numbers.h"
#include "shuffled_executor.h"
#include "suite.h"

#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define THREADS 3

static const struct json_rule rules[] = {
    {"/query", JSON_FLOATS}, {"/mask", JSON_BOOLEANS}, {"/key", JSON_FLOATS}};
#define RULES (sizeof(rules) / sizeof(rules[0]))

static uint32_t random_next(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 32);
}

/* ---- texts */

struct text {
	char *bytes;
	size_t length;
};

/* Written one number after the other: what the writer must write. */
static struct text text_of(const float *data, const size_t *dims, size_t rank, const char *gap)
{
	size_t count = 1, at = 0;
	for (size_t i = 0; i < rank; i++)
		count *= dims[i];
	struct text text = {.bytes = malloc(count * (NUMBER_TEXT_MAX + 3 * rank + strlen(gap)) + 64)};
	ck_assert_ptr_nonnull(text.bytes);
	for (size_t element = 0; element < count; element++) {
		for (size_t i = 0, size = count; i < rank; size /= dims[i++])
			text.bytes[at] = '[', at += element % size == 0;
		at += number_print_shortest(data[element], text.bytes + at);
		for (size_t i = 0, size = count; i < rank; size /= dims[i++])
			text.bytes[at] = ']', at += (element + 1) % size == 0;
		if (element + 1 < count)
			at += (size_t)sprintf(text.bytes + at, ",%s", gap);
	}
	text.length = at;
	return text;
}

static float *random_floats(size_t count, uint64_t *state)
{
	float *data = malloc(count * sizeof(*data));
	ck_assert_ptr_nonnull(data);
	for (size_t i = 0; i < count; i++)
		data[i] = ldexpf((float)(int32_t)random_next(state), -31 - (int)(random_next(state) % 16));
	return data;
}

/* {"mask": [true,false,..], "query": .., "key": ..}, the last two the same text. */
static struct text body_of(struct text tensor, size_t booleans, uint64_t *state)
{
	struct text body = {.bytes = malloc(2 * tensor.length + 6 * booleans + 64)};
	ck_assert_ptr_nonnull(body.bytes);
	char *at = body.bytes + sprintf(body.bytes, "{\"mask\": [");
	for (size_t i = 0; i < booleans; i++)
		at += sprintf(at, "%s%s", i > 0 ? "," : "", random_next(state) % 2 ? "true" : "false");
	at += sprintf(at, "], \"query\": ");
	memcpy(at, tensor.bytes, tensor.length);
	at += tensor.length;
	at += sprintf(at, ", \"key\": ");
	memcpy(at, tensor.bytes, tensor.length);
	at += tensor.length;
	*at++ = '}';
	body.length = (size_t)(at - body.bytes);
	return body;
}

/* ---- reading */

struct outcome {
	bool whole;
	struct json_scan scan;
	struct problem problem;
};

static struct outcome scan_text(struct text body, attn_executor *executor)
{
	static const struct json_limits limits = {.elements = 400000, .envelope = 65536};
	struct outcome outcome = {.problem = {.code = PROBLEM_NONE}};
	outcome.whole = json_scan(body.bytes, body.length, rules, RULES, &limits, executor, &outcome.scan,
	                          &outcome.problem);
	return outcome;
}

static void expect_same(const struct outcome *one, const struct outcome *other)
{
	ck_assert_int_eq(one->whole, other->whole);
	ck_assert_str_eq(problem_code_text(one->problem.code), problem_code_text(other->problem.code));
	ck_assert_str_eq(one->problem.pointer, other->problem.pointer);
	ck_assert_str_eq(one->problem.detail, other->problem.detail);
	for (size_t i = 0; i < RULES && one->problem.code == PROBLEM_NONE; i++) {
		const struct json_array *a = &one->scan.arrays[i], *b = &other->scan.arrays[i];
		ck_assert(a->present == b->present && a->rank == b->rank && a->count == b->count);
		ck_assert(memcmp(a->dims, b->dims, a->rank * sizeof(size_t)) == 0);
		size_t bytes = a->count * (rules[i].kind == JSON_FLOATS ? sizeof(float) : 1);
		ck_assert(bytes == 0 || memcmp(a->data, b->data, bytes) == 0);
	}
}

START_TEST(a_large_tensor_is_read_as_it_was_written)
{
	static const size_t shapes[][4] = {{1, 40, 50, 30},  {60000, 1, 1, 1}, {1, 1, 1, 60000},
	                                   {3, 20000, 1, 1}, {2, 3, 10007, 1}, {9, 7, 31, 30}};
	struct shuffled_executor threads;
	uint64_t state = 1;
	shuffled_executor_init(&threads, THREADS, 1);
	for (size_t i = 0; i < 2 * sizeof(shapes) / sizeof(shapes[0]); i++) {
		const size_t *dims = shapes[i / 2];
		size_t count = dims[0] * dims[1] * dims[2] * dims[3], rank = 4;
		float *data = random_floats(count, &state);
		struct text tensor = text_of(data, dims, rank, i % 2 ? " " : "");
		struct text body = body_of(tensor, 50000, &state);
		struct outcome outcome = scan_text(body, &threads.executor);
		ck_assert(outcome.whole && outcome.problem.code == PROBLEM_NONE);
		for (size_t rule = 0; rule < RULES; rule += 2) {
			const struct json_array *array = &outcome.scan.arrays[rule];
			ck_assert_uint_eq(array->rank, rank);
			ck_assert(memcmp(array->dims, dims, rank * sizeof(*dims)) == 0);
			ck_assert(memcmp(array->data, data, count * sizeof(*data)) == 0);
		}
		json_scan_clear(&outcome.scan);
		free(body.bytes);
		free(tensor.bytes);
		free(data);
	}
	shuffled_executor_close(&threads);
}
END_TEST

/* What jansson says of a text: whether it is JSON; set aside where the two differ on purpose. */
static bool is_json(struct text body, bool *counts)
{
	json_error_t error;
	json_t *root = json_loadb(body.bytes, body.length, JSON_DECODE_INT_AS_REAL, &error);
	*counts = root != NULL || json_error_code(&error) != json_error_numeric_overflow;
	json_decref(root);
	return root != NULL;
}

/* Each of the changes is one byte; most make a body that is wrong in one of many ways. */
START_TEST(a_changed_body_is_told_the_same_whoever_reads_its_parts)
{
	static const char changes[] = "0123456789.,-eE+[]{}\":; \n\ttfnN\\\x01\x80";
	const size_t dims[] = {40, 50, 12};
	struct shuffled_executor threads;
	uint64_t state = 2;
	shuffled_executor_init(&threads, THREADS, 2);
	float *data = random_floats(40 * 50 * 12, &state);
	struct text tensor = text_of(data, dims, 3, "");
	struct text body = body_of(tensor, 30000, &state);
	size_t told[64] = {0};
	for (int round = 0; round < 120; round++) {
		size_t at = random_next(&state) % body.length;
		if (round % 3 == 0) { /* brackets, and what stands before them, say most */
			const char *bracket = memchr(body.bytes + at / 2, '[', body.length - at / 2);
			at = (size_t)(bracket - body.bytes) - (round % 2 ? 1u : 0u);
		}
		char before = body.bytes[at];
		body.bytes[at] = changes[random_next(&state) % (sizeof(changes) - 1)];
		struct outcome alone = scan_text(body, NULL), together = scan_text(body, &threads.executor);
		bool counts, json = is_json(body, &counts);
		expect_same(&alone, &together);
		ck_assert(!counts || json == alone.whole);
		told[alone.problem.code]++;
		json_scan_clear(&alone.scan);
		json_scan_clear(&together.scan);
		body.bytes[at] = before;
	}
	ck_assert(told[PROBLEM_NONE] > 0 && told[PROBLEM_SYNTAX] > 0 && told[PROBLEM_RAGGED] > 0);
	free(body.bytes);
	free(tensor.bytes);
	free(data);
	shuffled_executor_close(&threads);
}
END_TEST

/* Of two mistakes far apart the first is told, whichever part is read first. */
START_TEST(the_first_mistake_is_the_one_that_is_told)
{
	struct shuffled_executor threads;
	uint64_t state = 3;
	const size_t dims[] = {200, 300};
	shuffled_executor_init(&threads, THREADS, 3);
	float *data = random_floats(200 * 300, &state);
	struct text tensor = text_of(data, dims, 2, "");
	struct text body = body_of(tensor, 10, &state);
	char *query = memchr(body.bytes, '.', body.length);
	char *late = strrchr(body.bytes, '.');
	for (int i = 0; i < 200; i++) { /* the mistakes are in the 2nd row of query, and the last of key */
		query = strchr(query + 1, '.');
	}
	query = strchr(strchr(query, '['), '.');
	*query = *late = 'x';
	for (int round = 0; round < 10; round++) {
		struct outcome outcome = scan_text(body, round == 0 ? NULL : &threads.executor);
		char expected[128];
		snprintf(expected, sizeof(expected), "at byte %td: expected ',' or ']', found 'x'",
		         query - body.bytes);
		ck_assert_int_eq(outcome.problem.code, PROBLEM_SYNTAX);
		ck_assert_str_eq(outcome.problem.detail, expected);
		json_scan_clear(&outcome.scan);
	}
	free(body.bytes);
	free(tensor.bytes);
	free(data);
	shuffled_executor_close(&threads);
}
END_TEST

START_TEST(the_limit_of_elements_holds_for_parts_too)
{
	struct shuffled_executor threads;
	uint64_t state = 4;
	const size_t dims[] = {1000, 201};
	shuffled_executor_init(&threads, THREADS, 4);
	float *data = random_floats(1000 * 201, &state);
	struct text tensor = text_of(data, dims, 2, "");
	struct text body = body_of(tensor, 10, &state);
	struct outcome outcome = scan_text(body, &threads.executor);
	ck_assert(outcome.whole);
	ck_assert_int_eq(outcome.problem.code, PROBLEM_TOO_MANY_ELEMENTS);
	ck_assert_str_eq(outcome.problem.pointer, "/key");
	ck_assert_str_eq(outcome.problem.detail, "the tensors hold 402010 elements, the limit is 400000");
	json_scan_clear(&outcome.scan);
	free(body.bytes);
	free(tensor.bytes);
	free(data);
	shuffled_executor_close(&threads);
}
END_TEST

/* ---- base64 */

static struct outcome scan_base64(const uint8_t *bytes, size_t count, size_t changed, char change,
                                  attn_executor *executor)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	struct text body = {.bytes = malloc(count / 3 * 4 + 64)};
	ck_assert_ptr_nonnull(body.bytes);
	char *at = body.bytes + sprintf(body.bytes, "{\"query\":{\"base64\":\""), *first = at;
	for (size_t i = 0; i < count; i += 3) {
		uint32_t bits = (uint32_t)bytes[i] << 16;
		bits |= i + 1 < count ? (uint32_t)bytes[i + 1] << 8 : 0;
		bits |= i + 2 < count ? bytes[i + 2] : 0;
		for (int shift = 18; shift >= 0; shift -= 6)
			*at++ = alphabet[bits >> shift & 63];
		at[-2] = i + 1 < count ? at[-2] : '=';
		at[-1] = i + 2 < count ? at[-1] : '=';
	}
	if (change != 0)
		first[changed] = change;
	at += sprintf(at, "\"}}");
	body.length = (size_t)(at - body.bytes);
	struct outcome outcome = scan_text(body, executor);
	free(body.bytes);
	return outcome;
}

START_TEST(large_base64_is_decoded_the_same_in_parts)
{
	static const size_t sizes[] = {
	    600000, 600001, 600002, 3 * 65536 * 2, 3 * 65536 * 2 - 1, 3 * 65536 * 2 + 1, 0, 1};
	struct shuffled_executor threads;
	uint64_t state = 10;
	uint8_t *bytes = malloc(600002);
	shuffled_executor_init(&threads, THREADS, 8);
	for (size_t i = 0; i < 600002; i++)
		bytes[i] = (uint8_t)random_next(&state);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct outcome outcome = scan_base64(bytes, sizes[i], 0, 0, &threads.executor);
		ck_assert(outcome.whole && outcome.problem.code == PROBLEM_NONE);
		ck_assert_uint_eq(outcome.scan.arrays[0].count, sizes[i]);
		ck_assert(memcmp(outcome.scan.arrays[0].data, bytes, sizes[i]) == 0);
		json_scan_clear(&outcome.scan);
	}
	for (int round = 0; round < 60; round++) {
		size_t at =
		    round % 2 ? random_next(&state) % 800000 : (1 + random_next(&state) % 3) * 262144 - 1;
		struct outcome outcome = scan_base64(bytes, 600000, at, "=*\n"[round % 3], &threads.executor);
		char expected[64];
		snprintf(expected, sizeof(expected), "character %zu is not what base64", at);
		ck_assert_int_eq(outcome.problem.code, round % 3 == 2 ? PROBLEM_SYNTAX : PROBLEM_BAD_VALUE);
		if (round % 3 < 2)
			ck_assert_msg(strstr(outcome.problem.detail, expected) == outcome.problem.detail,
			              "%s, %s", expected, outcome.problem.detail);
		json_scan_clear(&outcome.scan);
	}
	free(bytes);
	shuffled_executor_close(&threads);
}
END_TEST

/* ---- a survey */

START_TEST(a_survey_divides_a_text_behind_its_commas)
{
	uint64_t state = 5;
	const size_t dims[] = {7, 11, 1300};
	static struct json_survey survey;
	float *data = random_floats(7 * 11 * 1300, &state);
	struct text tensor = text_of(data, dims, 3, "");
	ck_assert(json_survey_array(tensor.bytes, tensor.bytes + tensor.length, &survey));
	ck_assert_uint_eq(survey.rank, 3);
	ck_assert(memcmp(survey.dims, dims, sizeof(dims)) == 0);
	ck_assert_uint_ge(survey.part_count, tensor.length / JSON_PART_BYTES / 2);
	size_t commas = 0;
	const char *at = tensor.bytes;
	for (size_t i = 1; i < survey.part_count; i++) {
		for (; at < survey.parts[i].at; at++)
			commas += *at == ',';
		ck_assert(at[-1] == ',');
		ck_assert_uint_eq(survey.parts[i].element, commas);
	}
	ck_assert_ptr_eq(survey.parts[survey.part_count].at, tensor.bytes + tensor.length);
	ck_assert_uint_eq(survey.parts[survey.part_count].element, 7 * 11 * 1300);
	free(tensor.bytes);
	free(data);
}
END_TEST

START_TEST(a_survey_knows_a_tensor_from_other_arrays)
{
	static const char *const tensors[] = {"[1]", "[[1,2],[3,4]]", " [1]", "[\n[[[1]]]]"};
	static const char *const others[] = {"[1",          "[[1,2],[3]]",   "[[[[[1]]]]]", "[\"a\"]",
	                                     "[{\"a\":1}]", "[[1,2],3,4,5]", "[[1],[[2]]]", ""};
	static struct json_survey survey;
	for (size_t i = 0; i < sizeof(tensors) / sizeof(tensors[0]); i++) {
		const char *text = tensors[i] + (tensors[i][0] == ' ');
		ck_assert_msg(json_survey_array(text, text + strlen(text), &survey), "%s", text);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		ck_assert_msg(!json_survey_array(others[i], others[i] + strlen(others[i]), &survey), "%s",
		              others[i]);
}
END_TEST

/* ---- writing */

static void expect_written(const float *data, const size_t *dims, size_t rank, attn_executor *executor)
{
	struct text expected = text_of(data, dims, rank, "");
	struct json_writer writer;
	size_t index[4], room = 3, arrays = 1;
	for (size_t i = 0; i < rank; i++)
		room += 3 * (arrays *= dims[i]);
	ck_assert(json_writer_open(&writer, room + NUMBER_TEXT_MAX * arrays, 0, executor));
	ck_assert_int_eq(json_writer_tensor(&writer, data, dims, rank, index), JSON_WRITTEN);
	ck_assert_uint_eq(writer.length, expected.length);
	ck_assert(memcmp(writer.text, expected.bytes, expected.length) == 0);
	free(writer.text);
	free(expected.bytes);
}

START_TEST(a_large_tensor_is_written_the_same_whoever_writes_its_parts)
{
	static const size_t shapes[][4] = {{4, 5, 60, 100},  {100000, 1, 1, 1}, {1, 1, 1, 100000},
	                                   {16, 1024, 3, 2}, {2, 2, 2, 4097},   {1, 1, 300, 5000},
	                                   {1, 1, 1, 1}};
	struct shuffled_executor threads;
	uint64_t state = 6;
	shuffled_executor_init(&threads, THREADS, 5);
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		const size_t *dims = shapes[i];
		size_t count = dims[0] * dims[1] * dims[2] * dims[3];
		float *data = random_floats(count, &state);
		for (size_t j = 0; j < count; j += i % 2 ? 1 : count) /* the longest text that there is */
			data[j] = i % 2 ? -1.17549435e-38f : data[j];
		expect_written(data, dims, 4, NULL);
		for (int round = 0; round < 3; round++)
			expect_written(data, dims, 4, &threads.executor);
		free(data);
	}
	shuffled_executor_close(&threads);
}
END_TEST

START_TEST(the_first_number_that_is_not_finite_is_told)
{
	const size_t dims[] = {3, 100, 1000};
	struct shuffled_executor threads;
	uint64_t state = 7;
	shuffled_executor_init(&threads, THREADS, 6);
	float *data = random_floats(300000, &state);
	data[123456] = NAN;
	data[23456] = -INFINITY;
	data[299999] = INFINITY;
	for (int round = 0; round < 6; round++) {
		struct json_writer writer;
		size_t index[3];
		ck_assert(json_writer_open(&writer, 300000 * NUMBER_TEXT_MAX + 4000, round % 3,
		                           round == 0 ? NULL : &threads.executor));
		writer.lowest = round % 2;
		size_t first = round % 2 ? 123456 : 23456;
		ck_assert_int_eq(json_writer_tensor(&writer, data, dims, 3, index), JSON_NOT_FINITE);
		ck_assert_uint_eq(index[0] * 100000 + index[1] * 1000 + index[2], first);
		free(writer.text);
	}
	free(data);
	shuffled_executor_close(&threads);
}
END_TEST

START_TEST(integers_are_written_the_same_in_parts)
{
	const size_t dims[] = {30, 2000};
	struct shuffled_executor threads;
	struct json_writer writer;
	uint64_t state = 8;
	int64_t *data = malloc(60000 * sizeof(*data));
	shuffled_executor_init(&threads, THREADS, 7);
	for (size_t i = 0; i < 60000; i++)
		data[i] = (int64_t)random_next(&state) * (i % 2 ? -1 : 1) >> random_next(&state) % 32;
	ck_assert(json_writer_open(&writer, 60000 * NUMBER_TEXT_MAX + 100, 0, &threads.executor));
	ck_assert_int_eq(json_writer_indices(&writer, data, dims, 2), JSON_WRITTEN);
	json_t *root = json_loadb(writer.text, writer.length, 0, NULL);
	for (size_t i = 0; i < 60000; i++)
		ck_assert_int_eq(json_integer_value(json_array_get(json_array_get(root, i / 2000), i % 2000)),
		                 data[i]);
	json_decref(root);
	free(writer.text);
	free(data);
	shuffled_executor_close(&threads);
}
END_TEST

/* ---- nobody waits any more */

/* Runs so many tiles and is cancelled then. */
struct impatient {
	attn_executor executor; /* first, so that the one is the other */
	size_t left;
};

static attn_status impatient_for(attn_executor *self, size_t tiles, attn_tile_fn *run, void *arg)
{
	struct impatient *impatient = (struct impatient *)self;
	attn_status status = ATTN_OK;
	for (size_t tile = 0; tile < tiles && status == ATTN_OK; tile++) {
		if (impatient->left == 0)
			return ATTN_CANCELLED;
		impatient->left--;
		status = run(arg, tile, NULL);
	}
	return status;
}

/* A body of that many megabytes: a tensor that is read in parts, one that is not, strings, empty arrays. */
static struct text large_body(int kind)
{
	static const char *const pieces[] = {"0.5,", "0.5 ,\"a\",", "[[],[]],", "{\"a\":1},", "true,"};
	size_t size = (size_t)8 << 20, length = strlen(pieces[kind]);
	struct text body = {.bytes = malloc(size + 32)};
	ck_assert_ptr_nonnull(body.bytes);
	char *at = body.bytes + sprintf(body.bytes, "{\"%s\":[", kind == 3 ? "other" : "query");
	while ((size_t)(at - body.bytes) < size) {
		memcpy(at, pieces[kind], length);
		at += length;
	}
	at += sprintf(at, "1]}");
	body.length = (size_t)(at - body.bytes);
	return body;
}

START_TEST(a_scan_that_nobody_waits_for_ends)
{
	for (int kind = 0; kind < 5; kind++) {
		struct text body = large_body(kind);
		for (size_t tiles = 0; tiles < 5; tiles++) {
			struct impatient impatient = {{impatient_for, NULL}, tiles};
			struct outcome outcome = scan_text(body, &impatient.executor);
			ck_assert_msg(!outcome.whole, "kind %d", kind);
			ck_assert_uint_eq(impatient.left, 0);
			json_scan_clear(&outcome.scan);
		}
		free(body.bytes);
	}
}
END_TEST

START_TEST(a_text_that_nobody_waits_for_is_not_written)
{
	const size_t dims[] = {100000};
	uint64_t state = 9;
	float *data = random_floats(100000, &state);
	for (size_t tiles = 0; tiles < 5; tiles++) {
		struct impatient impatient = {{impatient_for, NULL}, tiles};
		struct json_writer writer;
		size_t index[1];
		ck_assert(json_writer_open(&writer, 100000 * NUMBER_TEXT_MAX + 3, 0, &impatient.executor));
		ck_assert_int_eq(json_writer_tensor(&writer, data, dims, 1, index), JSON_CANCELLED);
		free(writer.text);
	}
	free(data);
}
END_TEST

SUITE_MAIN("json_parts", a_large_tensor_is_read_as_it_was_written,
           a_changed_body_is_told_the_same_whoever_reads_its_parts, the_first_mistake_is_the_one_that_is_told,
           the_limit_of_elements_holds_for_parts_too, large_base64_is_decoded_the_same_in_parts,
           a_survey_divides_a_text_behind_its_commas, a_survey_knows_a_tensor_from_other_arrays,
           a_large_tensor_is_written_the_same_whoever_writes_its_parts,
           the_first_number_that_is_not_finite_is_told, integers_are_written_the_same_in_parts,
           a_scan_that_nobody_waits_for_ends, a_text_that_nobody_waits_for_is_not_written)
