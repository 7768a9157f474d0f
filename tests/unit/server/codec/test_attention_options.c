/* What positions, the past, weights and binary tensors of a request become. */
#include "codec/attention_outputs.h"

#include "attention_body.h"
#include "suite.h"

#include <math.h>
#include <string.h>

static const struct attention_limits roomy = {
    .sequence_length = 1000, .elements = 1000000, .reply_bytes = 1000000, .timeout_ms = 30000};

static struct problem problem;

/* A request of one sequence [2, 4] of two heads with `more` fields. */
static struct attention_request *accept(const char *more)
{
	char text[2048];
	snprintf(text, sizeof(text), "{'query': [[1,2,3,4],[5,6,7,8]], 'heads': 2, %s}", more);
	struct attention_request *request = attention_body_parse(text, NULL, &roomy, &problem);
	ck_assert_msg(request != NULL, "%s: %s %s", text, problem.pointer, problem.detail);
	return request;
}

static void refuse(const char *more, enum problem_code code, const char *pointer)
{
	char text[2048];
	snprintf(text, sizeof(text), "{'query': [[1,2,3,4],[5,6,7,8]], 'heads': 2, %s}", more);
	struct attention_request *request = attention_body_parse(text, NULL, &roomy, &problem);
	ck_assert_msg(request == NULL, "%s: accepted", text);
	ck_assert_msg(problem.code == code && strcmp(problem.pointer, pointer) == 0, "%s: %s at %s (%s)",
	              text, problem_code_text(problem.code), problem.pointer, problem.detail);
}

#define PAST "'past_key': [[[1,2]],[[3,4]]], 'past_value': [[[1,2]],[[3,4]]]"

START_TEST(positions_set_the_options_that_they_are)
{
	static const struct {
		const char *fields;
		attn_rotation rotation;
		bool sinusoidal, alibi;
		int64_t offset;
		double theta;
	} cases[] = {
	    {"'positions': 'none', 'position_offset': 5", ATTN_ROTATE_NONE, false, false, 0, 10000},
	    {"'positions': 'rope'", ATTN_ROTATE_HALVES, false, false, 0, 10000},
	    {"'positions': 'rope', " PAST, ATTN_ROTATE_HALVES, false, false, 1, 10000},
	    {"'positions': 'rope', 'position_offset': -7, 'rope_theta': 0.1, " PAST, ATTN_ROTATE_HALVES,
	     false, false, -7, 0.1},
	    {"'positions': 'rope_interleaved', 'rope_theta': 500000", ATTN_ROTATE_PAIRS, false, false, 0,
	     500000},
	    {"'positions': 'sinusoidal', 'position_offset': 3", ATTN_ROTATE_NONE, true, false, 3, 10000},
	    {"'positions': 'alibi', 'position_offset': 3", ATTN_ROTATE_NONE, false, true, 0, 10000},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct attention_request *request = accept(cases[i].fields);
		const attn_options *options = &request->options;
		ck_assert_int_eq(options->rotation, cases[i].rotation);
		ck_assert_int_eq(options->sinusoidal, cases[i].sinusoidal);
		ck_assert_int_eq(options->slopes != NULL, cases[i].alibi);
		ck_assert_int_eq(options->position_offset, cases[i].offset);
		ck_assert_double_eq(options->rope_theta, cases[i].theta);
		attention_request_free(request);
	}
}
END_TEST

START_TEST(the_past_counts_among_the_keys)
{
	struct attention_request *request = accept(PAST ", 'key_lengths': 3, 'mask': [[true,true,false]]");
	ck_assert(request->has_past);
	ck_assert_uint_eq(request->shape.past, 1);
	ck_assert_uint_eq(request->shape.keys, 3);
	ck_assert_uint_eq(request->weights_out.dims[2], 3);
	attention_request_free(request);
	request = accept(
	    "'past_key': {'shape': [1,2,0,2], 'data': []}, 'past_value': {'shape': [2,0,2], 'data': []}");
	ck_assert(request->has_past && request->shape.past == 0 && request->shape.keys == 2);
	attention_request_free(request);
	refuse("'past_key': [[[1,2]],[[3,4]]]", PROBLEM_MISSING_FIELD, "/past_value");
	refuse("'past_key': [[[1,2]]], 'past_value': [[[1,2]]]", PROBLEM_SHAPE_MISMATCH, "/past_key");
}
END_TEST

START_TEST(negative_indices_count_from_the_end)
{
	struct attention_request *request = accept("'weights': {'heads': [-1, 0], 'queries': [-2, 1, 1]}");
	const attn_selection *selection = request->options.selection;
	ck_assert_ptr_eq(selection, &request->selection);
	ck_assert_uint_eq(selection->head_count, 2);
	ck_assert(selection->heads[0] == 1 && selection->heads[1] == 0);
	ck_assert_uint_eq(selection->query_count, 3);
	ck_assert(selection->queries[0] == 0 && selection->queries[1] == 1 && selection->queries[2] == 1);
	ck_assert(request->weights_out.dims[0] == 2 && request->weights_out.dims[1] == 3);
	attention_request_free(request);
	request = accept("'weights': {'top_k': 9}");
	ck_assert_int_eq(request->weights, WEIGHTS_TOP);
	ck_assert_uint_eq(request->options.selection->top_k, 2);
	ck_assert_ptr_null(request->options.selection->heads);
	attention_request_free(request);
	request = accept("'weights': {}");
	ck_assert_ptr_null(request->options.selection);
	attention_request_free(request);
}
END_TEST

static void outputs_are(const char *fields, const char *expected)
{
	struct attention_request *request = accept(fields);
	struct reply_output outputs[ATTENTION_OUTPUTS_MAX];
	char paths[512] = "";
	size_t count = attention_outputs_list(request, outputs), length = 0;
	for (size_t i = 0; i < count; i++)
		length += (size_t)snprintf(paths + length, sizeof(paths) - length, "%s ", outputs[i].path);
	ck_assert_str_eq(paths, expected);
	attention_request_free(request);
}

START_TEST(only_what_is_asked_for_is_in_the_reply)
{
	outputs_are("'weights': false", "context ");
	outputs_are("'weights': true", "context weights ");
	outputs_are("'weights': {'top_k': 1}", "context weights.indices weights.values ");
	outputs_are("'weights': {'stage': 'softmax'}", "context stages.softmax ");
	outputs_are("'weights': {'stage': ['softmax'], 'top_k': 1}",
	            "context stages.softmax.indices stages.softmax.values ");
	outputs_are("'weights': {'stage': ['masked', 'scores', 'masked']}",
	            "context stages.scores stages.masked ");
	outputs_are("'weights': false, 'statistics': ['max', 'entropy']",
	            "context statistics.entropy statistics.max ");
	outputs_are("'weights': false, 'statistics': []", "context ");
	outputs_are("'weights': false, 'projected': true",
	            "context projected.query projected.key projected.value ");
	outputs_are("'weights': false, " PAST, "context present_key present_value ");
}
END_TEST

START_TEST(bytes_are_of_all_that_is_held)
{
	struct attention_request *request =
	    accept("'positions': 'alibi', 'weights': {'heads': [0], 'top_k': 1}, 'statistics': ['max'], "
	           "'projected': true, 'bias': [[1,2,3]], " PAST);
	size_t floats = 8 + 2 * 4 + 3 + 2; /* query, past, bias, slopes */
	ck_assert_uint_eq(attention_request_input_bytes(request),
	                  sizeof(*request) + floats * sizeof(float) + sizeof(size_t));
	/* context, top values, max, query, key and value used; top indices */
	floats = 8 + 2 + 4 + 8 + 12 + 12;
	ck_assert_uint_eq(attention_request_output_bytes(request),
	                  floats * sizeof(float) + 2 * sizeof(int64_t));
	/* the present is printed a second time */
	size_t numbers = floats + 2 + 24;
	ck_assert_uint_gt(attention_request_reply_bytes(request), numbers * 16);
	ck_assert(attention_request_reserve(request));
	ck_assert_ptr_nonnull(request->top_indices.indices);
	ck_assert_ptr_null(request->weights_out.data);
	attention_request_free(request);
}
END_TEST

START_TEST(weights_that_would_not_fit_are_asked_for_no_more)
{
	struct attention_request *request = accept("'weights': {'stage': ['scores', 'softmax']}");
	size_t before = attention_request_reply_bytes(request);
	attention_outputs_ask(request, WEIGHTS_NONE);
	ck_assert_uint_lt(attention_request_reply_bytes(request), before);
	ck_assert_uint_eq(attention_request_output_bytes(request), 8 * sizeof(float));
	attention_request_free(request);
}
END_TEST

START_TEST(base64_carries_what_text_cannot)
{
	struct attention_request *request =
	    accept("'bias': {'shape': [1,2], 'dtype': 'float16', 'base64': 'APwAfg=='}, " /* -infinity, NaN */
	           "'mask': {'shape': [1,2], 'dtype': 'bool', 'base64': 'AQA='}");
	ck_assert(request->bias.data[0] == -INFINITY && isnan(request->bias.data[1]));
	ck_assert(request->mask.data[0] == 1 && request->mask.data[1] == 0);
	attention_request_free(request);
}
END_TEST

START_TEST(binary_elements_count_towards_the_limit)
{
	struct attention_limits limits = roomy;
	limits.elements = 3;
	const char *body =
	    "{'query': {'shape': [1,1], 'dtype': 'float32', 'base64': 'AACAPw=='}, 'key': [[1]], "
	    "'value': {'shape': [1,%d], 'dtype': 'float16', 'base64': '%s'}}";
	char text[512];
	snprintf(text, sizeof(text), body, 1, "AAA=");
	struct attention_request *request = attention_body_parse(text, NULL, &limits, &problem);
	ck_assert_ptr_nonnull(request);
	attention_request_free(request);
	snprintf(text, sizeof(text), body, 2, "AAAAAA==");
	ck_assert_ptr_null(attention_body_parse(text, NULL, &limits, &problem));
	ck_assert_int_eq(problem.code, PROBLEM_TOO_MANY_ELEMENTS);
	ck_assert_str_eq(problem.pointer, "/value");
}
END_TEST

START_TEST(a_wrong_base64_is_told_before_what_follows_from_it)
{
	refuse("'key': {'shape': [2,4], 'dtype': 'float32', 'base64': 'AAA'}", PROBLEM_BAD_VALUE,
	       "/key/base64");
	refuse("'key': {'shape': [2,4], 'dtype': 'int64', 'base64': 'AAAA'}", PROBLEM_BAD_VALUE,
	       "/key/dtype");
	refuse("'key': {'shape': [2,4], 'dtype': 'float32', 'base64': 'AAAA'}", PROBLEM_SHAPE_MISMATCH,
	       "/key/base64");
	refuse("'output_dtype': 'float16'", PROBLEM_BAD_VALUE, "/output_dtype");
}
END_TEST

SUITE_MAIN("attention_options", positions_set_the_options_that_they_are, the_past_counts_among_the_keys,
           negative_indices_count_from_the_end, only_what_is_asked_for_is_in_the_reply,
           bytes_are_of_all_that_is_held, weights_that_would_not_fit_are_asked_for_no_more,
           base64_carries_what_text_cannot, binary_elements_count_towards_the_limit,
           a_wrong_base64_is_told_before_what_follows_from_it)
