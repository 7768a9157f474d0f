#include "codec/attention_outputs.h"
#include "codec/json_writer.h"
#include "codec/numbers.h"

#include "attention_body.h"
#include "suite.h"

#include <float.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

static const struct attention_limits roomy = {
    .sequence_length = 1000, .elements = 1000000, .reply_bytes = 100000000, .timeout_ms = 30000};

static struct problem problem;

static struct attention_request *request_of(const char *text)
{
	struct attention_request *request = attention_body_parse(text, NULL, &roomy, &problem);
	ck_assert_msg(request != NULL, "%s: %s", text, problem.detail);
	ck_assert(attention_request_reserve(request));
	return request;
}

/* The reply of a request whose outputs count up from 0 (context) and 100 (weights). */
static char *reply_of(struct attention_request *request)
{
	size_t length;
	for (size_t i = 0; i < request->context.count; i++)
		request->context.data[i] = (float)i;
	for (size_t i = 0; i < request->weights_out.count; i++)
		request->weights_out.data[i] = 100 + (float)i;
	char *text = attention_reply_format(request, NULL, &length, &problem);
	ck_assert_ptr_nonnull(text);
	ck_assert_uint_le(length, attention_request_reply_bytes(request));
	text = realloc(text, length + 1);
	text[length] = '\0';
	return text;
}

static void replies(const char *body, const char *expected)
{
	struct attention_request *request = request_of(body);
	char *text = reply_of(request);
	ck_assert_str_eq(text, expected);
	free(text);
	attention_request_free(request);
}

START_TEST(the_context_has_the_rank_of_the_query)
{
	replies("{'query': [[1,2],[3,4]], 'weights': false}",
	        "{\"context\":[[0,1],[2,3]],\"shape\":{\"batch\":1,\"heads\":1,\"kv_heads\":1,\"queries\":2,"
	        "\"keys\":2,\"head_width\":2,\"value_width\":2}}\n");
	replies(
	    "{'query': [[[1,2]],[[3,4]]], 'weights': false, 'heads': 2}",
	    "{\"context\":[[[0,1]],[[2,3]]],\"shape\":{\"batch\":2,\"heads\":2,\"kv_heads\":2,\"queries\":1,"
	    "\"keys\":1,\"head_width\":1,\"value_width\":1}}\n");
	replies("{'query': [[[[1,2]],[[3,4]]]], 'weights': false}",
	        "{\"context\":[[[[0,1]],[[2,3]]]],\"shape\":{\"batch\":1,\"heads\":2,\"kv_heads\":2,"
	        "\"queries\":1,"
	        "\"keys\":1,\"head_width\":2,\"value_width\":2}}\n");
}
END_TEST

START_TEST(weights_have_a_batch_dimension_only_where_the_query_has)
{
	replies(
	    "{'query': [[1,2]], 'key': [[1,2],[3,4]], 'heads': 2}",
	    "{\"context\":[[0,1]],\"weights\":[[[100,101]],[[102,103]]],\"shape\":{\"batch\":1,\"heads\":2,"
	    "\"kv_heads\":2,\"queries\":1,\"keys\":2,\"head_width\":1,\"value_width\":1}}\n");
	replies(
	    "{'query': [[[1]],[[2]]]}",
	    "{\"context\":[[[0]],[[1]]],\"weights\":[[[[100]]],[[[101]]]],\"shape\":{\"batch\":2,\"heads\":1,"
	    "\"kv_heads\":1,\"queries\":1,\"keys\":1,\"head_width\":1,\"value_width\":1}}\n");
	replies("{'query': [[1,2]], 'heads': 2, 'weights': 'mean'}",
	        "{\"context\":[[0,1]],\"weights\":[[100]],\"shape\":{\"batch\":1,\"heads\":2,\"kv_heads\":2,"
	        "\"queries\":1,\"keys\":1,\"head_width\":1,\"value_width\":1}}\n");
	replies(
	    "{'query': [[[1,2]]], 'heads': 2, 'weights': 'mean'}",
	    "{\"context\":[[[0,1]]],\"weights\":[[[100]]],\"shape\":{\"batch\":1,\"heads\":2,\"kv_heads\":2,"
	    "\"queries\":1,\"keys\":1,\"head_width\":1,\"value_width\":1}}\n");
}
END_TEST

START_TEST(empty_dimensions_print_as_nested_empty_arrays)
{
	replies("{'query': {'shape': [0, 2], 'data': []}}",
	        "{\"context\":[],\"weights\":[[]],\"shape\":{\"batch\":1,\"heads\":1,\"kv_heads\":1,"
	        "\"queries\":0,"
	        "\"keys\":0,\"head_width\":2,\"value_width\":2}}\n");
	replies(
	    "{'query': {'shape': [0, 3, 2], 'data': []}}",
	    "{\"context\":[],\"weights\":[],\"shape\":{\"batch\":0,\"heads\":1,\"kv_heads\":1,\"queries\":3,"
	    "\"keys\":3,\"head_width\":2,\"value_width\":2}}\n");
	replies(
	    "{'query': [[1],[2]], 'key': {'shape': [0, 1], 'data': []}}",
	    "{\"context\":[[0],[1]],\"weights\":[[[],[]]],\"shape\":{\"batch\":1,\"heads\":1,\"kv_heads\":1,"
	    "\"queries\":2,\"keys\":0,\"head_width\":1,\"value_width\":1}}\n");
	replies(
	    "{'query': {'shape': [2, 0, 2], 'data': []}}",
	    "{\"context\":[[],[]],\"weights\":[[[]],[[]]],\"shape\":{\"batch\":2,\"heads\":1,\"kv_heads\":1,"
	    "\"queries\":0,\"keys\":0,\"head_width\":2,\"value_width\":2}}\n");
}
END_TEST

START_TEST(precision_sets_the_digits_and_shortest_reads_back)
{
	static const float values[] = {0.1f, 1.0f / 3, -0.0f, 16777216, FLT_MAX, 1e-45f};
	struct attention_request *request = request_of("{'query': [[1,2,3,4,5,6]], 'weights': false}");
	size_t length;
	memcpy(request->context.data, values, sizeof(values));
	char *text = attention_reply_format(request, NULL, &length, &problem);
	json_t *json = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
	ck_assert_ptr_nonnull(json);
	for (size_t i = 0; i < 6; i++) {
		json_t *row = json_array_get(json_object_get(json, "context"), 0);
		float value = (float)json_number_value(json_array_get(row, i));
		ck_assert(value == values[i]);
	}
	json_decref(json);
	free(text);
	attention_request_free(request);
	request = request_of("{'query': [[1,2]], 'weights': false, 'precision': 3}");
	request->context.data[0] = 1.0f / 3;
	request->context.data[1] = 2;
	text = attention_reply_format(request, NULL, &length, &problem);
	ck_assert_ptr_nonnull(strstr(text, "[[0.333,2]]"));
	free(text);
	attention_request_free(request);
}
END_TEST

START_TEST(a_result_that_is_not_finite_is_named_by_its_place)
{
	static const struct {
		const char *body;
		size_t context, weight;
		float value;
		const char *pointer;
	} cases[] = {
	    {"{'query': [[1,2],[3,4]]}", 1, 9, NAN, "/context/0/1"},
	    {"{'query': [[1,2],[3,4]]}", 2, 9, INFINITY, "/context/1/0"},
	    {"{'query': [[1,2],[3,4]]}", 9, 3, -INFINITY, "/weights/0/1/1"},
	    {"{'query': [[[1,2],[3,4]],[[5,6],[7,8]]], 'heads': 2}", 99, 13, NAN, "/weights/1/1/0/1"},
	    {"{'query': [[[[1],[2]]],[[[3],[4]]]]}", 3, 99, NAN, "/context/1/0/1/0"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct attention_request *request = request_of(cases[i].body);
		size_t length;
		if (cases[i].context < request->context.count)
			request->context.data[cases[i].context] = cases[i].value;
		if (cases[i].weight < request->weights_out.count)
			request->weights_out.data[cases[i].weight] = cases[i].value;
		problem = (struct problem){.code = PROBLEM_NONE};
		ck_assert_ptr_null(attention_reply_format(request, NULL, &length, &problem));
		ck_assert_int_eq(problem.code, PROBLEM_RESULT_NOT_FINITE);
		ck_assert_int_eq(problem_status(problem.code), 422);
		ck_assert_str_eq(problem.pointer, cases[i].pointer);
		attention_request_free(request);
	}
}
END_TEST

START_TEST(no_reply_is_longer_than_its_bound)
{
	static const char *const bodies[] = {
	    "{'query': {'shape': [1, 1], 'data': [1]}}",
	    "{'query': {'shape': [40, 1, 1], 'data': "
	    "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
	    "1,1,1,1,1,1,1,1,1]}}",
	    "{'query': {'shape': [1000, 0, 1], 'data': []}}",
	    "{'query': {'shape': [2, 0, 7], 'data': []}, 'heads': 7}",
	};
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		struct attention_request *request = request_of(bodies[i]);
		size_t length;
		for (size_t j = 0; j < request->context.count; j++)
			request->context.data[j] = -1.17549435e-38f;
		for (size_t j = 0; j < request->weights_out.count; j++)
			request->weights_out.data[j] = -1.17549435e-38f;
		char *text = attention_reply_format(request, NULL, &length, &problem);
		ck_assert_ptr_nonnull(text);
		ck_assert_uint_le(length, attention_request_reply_bytes(request));
		free(text);
		attention_request_free(request);
	}
}
END_TEST

START_TEST(a_row_may_fill_its_room_to_the_last_byte)
{
	static const float row[] = {-1.17549435e-38f, -1.17549435e-38f};
	const size_t dims[] = {2};
	size_t index[1];
	struct json_writer writer;
	ck_assert(json_writer_open(&writer, 2 * NUMBER_TEXT_MAX + 3, 0, NULL));
	ck_assert_int_eq(json_writer_tensor(&writer, row, dims, 1, index), JSON_WRITTEN);
	ck_assert(writer.text[0] == '[' && writer.text[writer.length - 1] == ']');
	free(writer.text);
}
END_TEST

/* ---- the other outputs */

#define EVERYTHING                                                                                           \
	"{'query': [[1,2]], 'key': [[1,2],[3,4]], 'statistics': ['entropy','logsumexp','max'], "             \
	"'projected': true, 'past_key': {'shape': [1,0,2], 'data': []}, "                                    \
	"'past_value': {'shape': [1,1,0,2], 'data': []}, "

/* Fills every output with one number, indices with 1. */
static void fill(struct attention_request *request, float number)
{
	struct reply_output outputs[ATTENTION_OUTPUTS_MAX];
	size_t count = attention_outputs_list(request, outputs);
	for (size_t i = 0; i < count; i++) {
		const struct reply_tensor *tensor = &outputs[i].tensor;
		for (size_t j = 0; j < tensor->count; j++) {
			if (tensor->indices != NULL)
				tensor->indices[j] = 1;
			else
				tensor->data[j] = number;
		}
	}
}

static void replies_with(const char *body, float number, const char *expected)
{
	struct attention_request *request = request_of(body);
	size_t length;
	fill(request, number);
	char *text = attention_reply_format(request, NULL, &length, &problem);
	ck_assert_ptr_nonnull(text);
	ck_assert_uint_le(length, attention_request_reply_bytes(request));
	size_t frame = (size_t)(strstr(text, ",\"shape\"") - text);
	ck_assert_msg(frame == strlen(expected) && memcmp(text, expected, frame) == 0, "%.*s", (int)frame,
	              text);
	free(text);
	attention_request_free(request);
}

START_TEST(outputs_stand_in_their_groups)
{
	replies_with(EVERYTHING "'weights': {'stage': ['softmax','scores']}}", 7,
	             "{\"context\":[[7,7]],\"stages\":{\"scores\":[[[7,7]]],\"softmax\":[[[7,7]]]},"
	             "\"statistics\":{\"entropy\":[[7]],\"logsumexp\":[[7]],\"max\":[[7]]},"
	             "\"projected\":{\"query\":[[[7,7]]],\"key\":[[[7,7],[7,7]]],\"value\":[[[7,7],[7,7]]]},"
	             "\"present_key\":[[[7,7],[7,7]]],\"present_value\":[[[[7,7],[7,7]]]]");
	replies_with("{'query': [[1]], 'weights': {'top_k': 3}}", 7,
	             "{\"context\":[[7]],\"weights\":{\"indices\":[[[1]]],\"values\":[[[7]]]}");
	replies_with("{'query': [[1]], 'weights': {'top_k': 1, 'stage': 'softmax'}}", 7,
	             "{\"context\":[[7]],\"stages\":{\"softmax\":{\"indices\":[[[1]]],\"values\":[[[7]]]}}");
}
END_TEST

START_TEST(minus_infinity_is_the_lowest_float32_where_it_means_no_key)
{
	static const char *const bodies[] = {
	    "{'query': [[1]], 'weights': {'stage': 'masked'}, 'statistics': ['logsumexp', 'max']}",
	    ("{'query': [[1]], 'weights': {'stage': 'masked'}, 'statistics': ['logsumexp', 'max'], "
	     "'precision': 4}"),
	    "{'query': [[1]], 'weights': {'stage': 'scores'}}",
	    "{'query': [[1]], 'weights': {'stage': 'capped'}}",
	    "{'query': [[1]], 'weights': {'top_k': 1}}",
	    "{'query': [[1]], 'weights': false, 'statistics': ['entropy']}",
	    "{'query': [[1]], 'weights': false, 'projected': true}",
	};
	static const char *const pointers[] = {NULL,
	                                       NULL,
	                                       "/stages/scores/0/0/0",
	                                       "/stages/capped/0/0/0",
	                                       "/weights/values/0/0/0",
	                                       "/statistics/entropy/0/0",
	                                       "/projected/query/0/0/0"};
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		struct attention_request *request = request_of(bodies[i]);
		size_t length;
		fill(request, -INFINITY);
		request->context.data[0] = 0;
		problem = (struct problem){.code = PROBLEM_NONE};
		char *text = attention_reply_format(request, NULL, &length, &problem);
		ck_assert((text == NULL) == (pointers[i] != NULL));
		if (text == NULL)
			ck_assert_str_eq(problem.pointer, pointers[i]);
		else
			ck_assert_ptr_nonnull(
			    strstr(text, "\"masked\":[[[-3.4028235e38]]]},\"statistics\":{"
			                 "\"logsumexp\":[[-3.4028235e38]],\"max\":[[-3.4028235e38]]}"));
		free(text);
		attention_request_free(request);
	}
}
END_TEST

START_TEST(infinity_and_nan_stop_every_text)
{
	struct attention_request *request =
	    request_of("{'query': [[1],[2]], 'weights': {'stage': 'masked'}}");
	static const float values[] = {NAN, INFINITY};
	for (size_t i = 0; i < 2; i++) {
		size_t length;
		problem = (struct problem){.code = PROBLEM_NONE};
		request->stages[ATTENTION_MASKED].data[3] = values[i];
		ck_assert_ptr_null(attention_reply_format(request, NULL, &length, &problem));
		ck_assert_str_eq(problem.pointer, "/stages/masked/0/1/1");
	}
	attention_request_free(request);
}
END_TEST

START_TEST(no_reply_of_everything_is_longer_than_its_bound)
{
	static const char *const bodies[] = {
	    EVERYTHING "'weights': {'stage': ['scores','capped','masked','softmax']}}",
	    EVERYTHING "'weights': {'stage': 'softmax', 'top_k': 2, 'heads': [0,0,0], 'queries': [-1,0]}}",
	    EVERYTHING "'weights': {'heads': [], 'top_k': 2}}",
	};
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		struct attention_request *request = request_of(bodies[i]);
		size_t length;
		fill(request, -1.17549435e-38f);
		char *text = attention_reply_format(request, NULL, &length, &problem);
		ck_assert_ptr_nonnull(text);
		ck_assert_uint_le(length, attention_request_reply_bytes(request));
		json_t *json = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
		ck_assert_ptr_nonnull(json);
		json_decref(json);
		free(text);
		attention_request_free(request);
	}
}
END_TEST

SUITE_MAIN("attention_reply", the_context_has_the_rank_of_the_query,
           weights_have_a_batch_dimension_only_where_the_query_has,
           empty_dimensions_print_as_nested_empty_arrays, precision_sets_the_digits_and_shortest_reads_back,
           a_result_that_is_not_finite_is_named_by_its_place, no_reply_is_longer_than_its_bound,
           a_row_may_fill_its_room_to_the_last_byte, outputs_stand_in_their_groups,
           minus_infinity_is_the_lowest_float32_where_it_means_no_key, infinity_and_nan_stop_every_text,
           no_reply_of_everything_is_longer_than_its_bound)
