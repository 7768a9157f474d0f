#include "codec/attention_request.h"

#include "attention_body.h"
#include "suite.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* A model of the test's own: two layers of self-attention of width 4, causal and turned, and if it has any,
 * one of cross-attention to width 6. */
struct attn_model {
	attn_layer self, cross;
	size_t cross_layers;
};

attn_model_info attn_model_info_of(const attn_model *model)
{
	return (attn_model_info){.architecture = "test",
	                         .layers = 2,
	                         .cross_layers = model->cross_layers,
	                         .heads = model->self.heads};
}

const attn_layer *attn_model_layer(const attn_model *model, size_t layer, attn_layer_kind kind)
{
	if (kind == ATTN_SELF)
		return layer < 2 ? &model->self : NULL;
	return layer < model->cross_layers ? &model->cross : NULL;
}

attn_options attn_model_options(const attn_model *model, size_t layer, attn_layer_kind kind)
{
	attn_options options = attn_options_default(attn_model_layer(model, layer, kind)->head_width);
	options.scale = 1;
	options.rotation = kind == ATTN_SELF ? ATTN_ROTATE_HALVES : ATTN_ROTATE_NONE;
	options.causal = kind == ATTN_SELF ? ATTN_CAUSAL_BOTTOM_RIGHT : ATTN_CAUSAL_NONE;
	options.window_left = kind == ATTN_SELF ? 3 : -1;
	return options;
}

static const float weights[64];
#define LINEAR(matrix, inputs, outputs)                                                                      \
	{                                                                                                    \
		.weight = (matrix), .in = (inputs), .out = (outputs), .stride = (outputs)                    \
	}
static const attn_model model = {
    .self = {.query = LINEAR(weights, 4, 4),
             .key = LINEAR(weights, 4, 4),
             .value = LINEAR(weights, 4, 8),
             .output = LINEAR(weights, 8, 5),
             .heads = 2,
             .kv_heads = 2,
             .head_width = 2,
             .value_width = 4},
    .cross = {.query = LINEAR(weights, 4, 4),
              .key = LINEAR(weights, 6, 4),
              .value = LINEAR(weights, 6, 4),
              .output = LINEAR(NULL, 4, 4),
              .heads = 1,
              .kv_heads = 1,
              .head_width = 4,
              .value_width = 4},
    .cross_layers = 1,
};

static const struct attention_limits roomy = {
    .sequence_length = 1000, .elements = 1000000, .reply_bytes = 1000000, .timeout_ms = 30000};

static struct problem problem;

static struct attention_request *accept_with(const char *text, const attn_model *with)
{
	struct attention_request *request = attention_body_parse(text, with, &roomy, &problem);
	ck_assert_msg(request != NULL, "%s: %s %s %s", text, problem_code_text(problem.code), problem.pointer,
	              problem.detail);
	return request;
}

static struct attention_request *accept(const char *text)
{
	return accept_with(text, NULL);
}

static void refuse_with(const char *text, const attn_model *with, const struct attention_limits *limits,
                        enum problem_code code, const char *pointer)
{
	struct attention_request *request = attention_body_parse(text, with, limits, &problem);
	ck_assert_msg(request == NULL, "%s: accepted", text);
	ck_assert_msg(problem.code == code && strcmp(problem.pointer, pointer) == 0, "%s: %s at %s (%s)",
	              text, problem_code_text(problem.code), problem.pointer, problem.detail);
	ck_assert_msg(problem.detail[0] != '\0', "%s: no detail", text);
}

static void refuse(const char *text, enum problem_code code, const char *pointer)
{
	refuse_with(text, NULL, &roomy, code, pointer);
}

static void refuse_model(const char *text, enum problem_code code, const char *pointer)
{
	refuse_with(text, &model, &roomy, code, pointer);
}

/* A request of one sequence [2, 4] with `more` fields. */
static void refuse_field(const char *more, enum problem_code code, const char *pointer)
{
	char text[2048];
	snprintf(text, sizeof(text), "{'query': [[1,2,3,4],[5,6,7,8]], %s}", more);
	refuse(text, code, pointer);
}

static struct attention_request *accept_field(const char *more)
{
	char text[2048];
	snprintf(text, sizeof(text), "{'query': [[1,2,3,4],[5,6,7,8]], %s}", more);
	return accept(text);
}

static void shape_is(const struct attention_request *request, size_t heads, size_t kv_heads, size_t queries,
                     size_t keys, size_t head_width, size_t value_width)
{
	const attn_shape *shape = &request->shape;
	ck_assert_uint_eq(shape->heads, heads);
	ck_assert_uint_eq(shape->kv_heads, kv_heads);
	ck_assert_uint_eq(shape->queries, queries);
	ck_assert_uint_eq(shape->keys, keys);
	ck_assert_uint_eq(shape->head_width, head_width);
	ck_assert_uint_eq(shape->value_width, value_width);
}

static void context_is(const struct attention_request *request, size_t rank, const size_t *dims)
{
	ck_assert_uint_eq(request->context.rank, rank);
	for (size_t i = 0; i < rank; i++)
		ck_assert_uint_eq(request->context.dims[i], dims[i]);
}

#define DIMS(...)                                                                                            \
	(const size_t[])                                                                                     \
	{                                                                                                    \
		__VA_ARGS__                                                                                  \
	}

/* ---- what is accepted */

START_TEST(a_query_alone_attends_to_itself_with_the_defaults)
{
	struct attention_request *request = accept("{'query': [[1,2],[3,4],[5,6]]}");
	shape_is(request, 1, 1, 3, 3, 2, 2);
	context_is(request, 2, DIMS(3, 2));
	ck_assert_uint_eq(request->batch, 1);
	ck_assert_ptr_null(request->key.data);
	ck_assert_ptr_null(request->value.data);
	ck_assert(!request->split_heads && !request->model);
	ck_assert_int_eq(request->weights, WEIGHTS_PER_HEAD);
	ck_assert_int_eq(request->precision, 0);
	ck_assert_int_eq(request->options.causal, ATTN_CAUSAL_NONE);
	ck_assert(fabsf(request->options.scale - 0.70710678f) < 1e-7f);
	ck_assert(request->options.softcap == 0 && request->options.sink == NULL);
	ck_assert_int_eq(request->options.window_left, -1);
	ck_assert_int_eq(request->options.window_right, -1);
	ck_assert(request->timeout_ms == 0 && request->key_lengths == NULL &&
	          request->causal_offsets == NULL);
	ck_assert(request->layer.query.weight == NULL && request->layer.output.out == 2);
	attention_request_free(request);
}
END_TEST

START_TEST(embeddings_are_the_query)
{
	struct attention_request *request = accept("{'embeddings': {'shape': [1, 2, 2], 'data': [1,2,3,4]}}");
	ck_assert_uint_eq(request->query.rank, 3);
	ck_assert_uint_eq(request->query.count, 4);
	ck_assert(request->query.data[3] == 4);
	attention_request_free(request);
	refuse("{'query': [[1]], 'embeddings': [[1]]}", PROBLEM_BAD_VALUE, "/embeddings");
}
END_TEST

START_TEST(keys_and_values_may_have_lengths_and_widths_of_their_own)
{
	struct attention_request *request =
	    accept("{'query': [[1,2]], 'key': [[1,2],[3,4],[5,6]], 'value': [[1,2,3],[4,5,6],[7,8,9]]}");
	shape_is(request, 1, 1, 1, 3, 2, 3);
	context_is(request, 2, DIMS(1, 3));
	attention_request_free(request);
	request = accept("{'query': [[1,2]], 'key': [[1,2],[3,4]]}");
	shape_is(request, 1, 1, 1, 2, 2, 2);
	attention_request_free(request);
	request = accept("{'query': [[1,2]], 'value': [[1,2,3]]}");
	shape_is(request, 1, 1, 1, 1, 2, 3);
	attention_request_free(request);
}
END_TEST

START_TEST(projections_are_applied_in_either_layout)
{
	struct attention_request *request = accept(
	    "{'query': [[1,2]], 'key': [[1,2,3]], 'heads': 2, 'projections': {'query': [[1,2,3,4],[5,6,7,8]],"
	    "'key': [[1,2,3,4],[1,2,3,4],[1,2,3,4]], 'value': {'shape': [3, 2], 'data': [1,2,3,4,5,6]},"
	    "'output': [[1,2,3],[4,5,6]], 'query_bias': [1,2,3,4], 'output_bias': [7,8,9]}}");
	shape_is(request, 2, 2, 1, 1, 2, 1);
	context_is(request, 2, DIMS(1, 3));
	ck_assert_ptr_eq(request->layer.query.weight, request->projections[0].data);
	ck_assert_ptr_eq(request->layer.query.bias, request->projections[4].data);
	ck_assert_uint_eq(request->layer.query.stride, 4);
	ck_assert_uint_eq(request->layer.key.in, 3);
	ck_assert_int_eq(request->layer.key.layout, ATTN_IN_OUT);
	attention_request_free(request);
	request = accept("{'query': [[1,2]], 'projection_layout': 'out_in',"
	                 "'projections': {'output': [[1,2],[3,4],[5,6]]}}");
	ck_assert_int_eq(request->layer.output.layout, ATTN_OUT_IN);
	ck_assert_uint_eq(request->layer.output.in, 2);
	ck_assert_uint_eq(request->layer.output.out, 3);
	ck_assert_uint_eq(request->layer.output.stride, 2);
	attention_request_free(request);
	attention_request_free(
	    accept("{'query': [[1,2]], 'projections': {}, 'projection_layout': 'in_out'}"));
}
END_TEST

START_TEST(four_dimensions_set_the_heads)
{
	struct attention_request *request =
	    accept("{'query': {'shape': [1,4,1,2], 'data': [1,2,3,4,5,6,7,8]},"
	           "'key': [[[[1,2],[3,4]],[[5,6],[7,8]]]], 'value': [[[[1],[2]],[[3],[4]]]], 'heads': 4, "
	           "'kv_heads': 2}");
	ck_assert(request->split_heads);
	shape_is(request, 4, 2, 1, 2, 2, 1);
	context_is(request, 4, DIMS(1, 4, 1, 1));
	attention_request_free(request);
}
END_TEST

START_TEST(grouped_heads_share_narrower_keys)
{
	struct attention_request *request =
	    accept("{'query': [[1,2,3,4]], 'key': [[1,2]], 'value': [[1,2]], 'heads': 4, 'kv_heads': 2}");
	shape_is(request, 4, 2, 1, 1, 1, 1);
	context_is(request, 2, DIMS(1, 4));
	attention_request_free(request);
}
END_TEST

START_TEST(empty_sequences_and_batches_are_legal)
{
	struct attention_request *request = accept("{'query': {'shape': [0, 2], 'data': []}}");
	shape_is(request, 1, 1, 0, 0, 2, 2);
	attention_request_free(request);
	request =
	    accept("{'query': [[1,2]], 'key': {'shape': [0, 2], 'data': []}, 'causal': 3, 'key_lengths': 0}");
	shape_is(request, 1, 1, 1, 0, 2, 2);
	ck_assert_int_eq(request->options.causal, ATTN_CAUSAL_NONE);
	attention_request_free(request);
	request = accept("{'query': {'shape': [0, 5, 2], 'data': []}, 'causal': [], 'key_lengths': []}");
	ck_assert_uint_eq(request->batch, 0);
	shape_is(request, 1, 1, 5, 5, 2, 2);
	attention_request_free(request);
	request = accept("{'query': {'shape': [2, 0, 2], 'data': []}, 'causal': 1}");
	ck_assert_uint_eq(request->batch, 2);
	context_is(request, 3, DIMS(2, 0, 2));
	attention_request_free(request);
}
END_TEST

START_TEST(causal_has_all_its_forms)
{
	static const struct {
		const char *text;
		attn_causal causal;
	} cases[] = {
	    {"'causal': false", ATTN_CAUSAL_NONE},
	    {"'causal': true", ATTN_CAUSAL_BOTTOM_RIGHT},
	    {"'causal': 'bottom_right'", ATTN_CAUSAL_BOTTOM_RIGHT},
	    {"'causal': 'top_left'", ATTN_CAUSAL_TOP_LEFT},
	    {"'causal': 1", ATTN_CAUSAL_OFFSET},
	    {"'causal': [1]", ATTN_CAUSAL_OFFSET},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct attention_request *request = accept_field(cases[i].text);
		ck_assert_int_eq(request->options.causal, cases[i].causal);
		ck_assert_int_eq(request->causal_offsets != NULL, cases[i].causal == ATTN_CAUSAL_OFFSET);
		if (request->causal_offsets != NULL)
			ck_assert_int_eq(request->causal_offsets[0], 1);
		attention_request_free(request);
	}
	struct attention_request *request =
	    accept("{'query': [[[1]],[[2]],[[3]]], 'causal': [-5, 0, 9223372036854775807]}");
	ck_assert_int_eq(request->causal_offsets[0], -5);
	ck_assert_int_eq(request->causal_offsets[1], 0);
	ck_assert_int_gt(request->causal_offsets[2], 1000000);
	attention_request_free(request);
	request = accept("{'query': [[[1]],[[2]]], 'causal': -1.0}");
	ck_assert_int_eq(request->causal_offsets[0], -1);
	ck_assert_int_eq(request->causal_offsets[1], -1);
	attention_request_free(request);
}
END_TEST

START_TEST(key_lengths_are_one_or_one_a_sequence)
{
	struct attention_request *request = accept("{'query': [[[1],[2]],[[3],[4]]], 'key_lengths': 1}");
	ck_assert_int_eq(request->key_lengths[0], 1);
	ck_assert_int_eq(request->key_lengths[1], 1);
	attention_request_free(request);
	request = accept("{'query': [[[1],[2]],[[3],[4]]], 'key_lengths': [0, 2]}");
	ck_assert_int_eq(request->key_lengths[0], 0);
	ck_assert_int_eq(request->key_lengths[1], 2);
	attention_request_free(request);
}
END_TEST

START_TEST(scalars_are_read)
{
	struct attention_request *request = accept_field(
	    "'heads': 2, 'scale': 17000000000000000000, 'softcap': 2.5, 'window': [3, -1], 'sink': [1, -2.5],"
	    "'weights': 'mean', 'precision': 6, 'timeout_ms': 30000");
	ck_assert(request->options.scale == 17000000000000000000.0f);
	ck_assert(request->options.softcap == 2.5f);
	ck_assert_int_eq(request->options.window_left, 3);
	ck_assert_int_eq(request->options.window_right, -1);
	ck_assert(request->options.sink[0] == 1 && request->options.sink[1] == -2.5f);
	ck_assert_int_eq(request->weights, WEIGHTS_MEAN);
	ck_assert_int_eq(request->precision, 6);
	ck_assert_uint_eq(request->timeout_ms, 30000);
	attention_request_free(request);
	request =
	    accept_field("'heads': 4, 'scale': -0.5, 'sink': 3, 'weights': false, 'precision': 'shortest'");
	ck_assert(request->options.scale == -0.5f);
	ck_assert(request->options.sink[0] == 3 && request->options.sink[3] == 3);
	ck_assert_int_eq(request->weights, WEIGHTS_NONE);
	attention_request_free(request);
	request = accept_field("'weights': true, 'scale': 0");
	ck_assert(request->options.scale == 0);
	attention_request_free(request);
}
END_TEST

START_TEST(masks_and_biases_broadcast_as_numpy_does)
{
	/* [2, 2, 3, 2] of batch, heads, queries, keys */
	const char *query =
	    "{'query': {'shape': [2,3,4], 'data': [0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]},"
	    "'key': {'shape': [2,2,4], 'data': [0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}, 'heads': 2, %s}";
	static const struct {
		const char *field;
		size_t batch, head, query, key;
	} cases[] = {
	    {"[[1,2],[3,4],[5,6]]", 0, 0, 2, 1},   {"[[1,2]]", 0, 0, 0, 1},
	    {"[[1],[2],[3]]", 0, 0, 1, 0},         {"[[[1]],[[2]]]", 0, 1, 0, 0},
	    {"[[[[1,2]]],[[[3,4]]]]", 2, 0, 0, 1}, {"[[[[1,2]],[[3,4]]],[[[5,6]],[[7,8]]]]", 4, 2, 0, 1},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char field[512], text[1024], booleans[256] = "";
		size_t length = 0;
		for (const char *c = cases[i].field; *c != '\0'; c++)
			length +=
			    (size_t)sprintf(booleans + length, *c >= '0' && *c <= '9' ? "true" : "%c", *c);
		snprintf(field, sizeof(field), "'bias': %s, 'mask': %s", cases[i].field, booleans);
		snprintf(text, sizeof(text), query, field);
		struct attention_request *request = accept(text);
		attn_bias bias = attention_request_bias(request, 1);
		attn_mask mask = attention_request_mask(request, 1);
		ck_assert_ptr_eq(bias.data, request->bias.data + cases[i].batch);
		ck_assert_ptr_eq(mask.data, request->mask.data + cases[i].batch);
		ck_assert_uint_eq(bias.head_stride, cases[i].head);
		ck_assert_uint_eq(mask.query_stride, cases[i].query);
		ck_assert_uint_eq(bias.query_stride, cases[i].query);
		ck_assert_uint_eq(bias.key_stride, cases[i].key);
		attention_request_free(request);
	}
	struct attention_request *request = accept("{'query': [[1]]}");
	ck_assert_ptr_null(attention_request_mask(request, 0).data);
	ck_assert_ptr_null(attention_request_bias(request, 0).data);
	attention_request_free(request);
}
END_TEST

START_TEST(sizes_count_what_is_held)
{
	struct attention_request *request =
	    accept_field("'heads': 2, 'mask': [[true,false]], 'key_lengths': 2");
	ck_assert_uint_eq(attention_request_input_bytes(request), sizeof(*request) + 8 * 4 + 2 + 8);
	ck_assert_uint_eq(attention_request_output_bytes(request), (8 + 8) * sizeof(float));
	ck_assert_uint_gt(attention_request_reply_bytes(request), 16 * 16);
	ck_assert(attention_request_reserve(request));
	ck_assert_uint_eq(request->context.count, 8);
	ck_assert_ptr_nonnull(request->weights_out.data);
	attention_request_free(request);
}
END_TEST

/* ---- the body */

START_TEST(a_body_that_is_not_json_is_a_syntax_problem)
{
	refuse("", PROBLEM_SYNTAX, "");
	refuse("{'query': [[1,2]", PROBLEM_SYNTAX, "/query/0");
	refuse("{'query': [[1,2]]} x", PROBLEM_SYNTAX, "");
	refuse("{'query': [[1,nan]]}", PROBLEM_SYNTAX, "/query/0/1");
}
END_TEST

START_TEST(a_body_nested_too_deeply_is_refused)
{
	char *text = malloc(100001);
	memset(text, '[', 100000);
	text[100000] = '\0';
	struct attention_request *request = attention_body_parse(text, NULL, &roomy, &problem);
	ck_assert_ptr_null(request);
	ck_assert_int_eq(problem.code, PROBLEM_TOO_DEEP);
	ck_assert_int_eq(problem_status(problem.code), 400);
	free(text);
}
END_TEST

START_TEST(a_body_that_is_no_object_is_told_so)
{
	refuse("[1, 2]", PROBLEM_NOT_AN_OBJECT, "");
	refuse("3", PROBLEM_NOT_AN_OBJECT, "");
	refuse("null", PROBLEM_NOT_AN_OBJECT, "");
}
END_TEST

START_TEST(duplicate_keys_are_refused_wherever_they_stand)
{
	refuse("{'query': [[1]], 'query': [[1]]}", PROBLEM_DUPLICATE_KEY, "/query");
	refuse("{'query': [[1]], '\\u0071uery': [[1]]}", PROBLEM_DUPLICATE_KEY, "/query");
	refuse("{'query': [[1]], 'heads': 1, 'heads': 1}", PROBLEM_DUPLICATE_KEY, "/heads");
	refuse("{'query': [[1]], 'weights': {'a': {'b': 1, 'b': 2}}}", PROBLEM_DUPLICATE_KEY, "/weights/a/b");
	refuse("{'query': {'shape': [1,1], 'shape': [1,1], 'data': [1]}}", PROBLEM_DUPLICATE_KEY,
	       "/query/shape");
	refuse("{'query': {'shape': [1,1], 'data': [1], 'data': [1]}}", PROBLEM_DUPLICATE_KEY, "/query/data");
	refuse("{'query': [[1]], 'projections': {'key': [[1]], 'key': [[1]]}}", PROBLEM_DUPLICATE_KEY,
	       "/projections/key");
	refuse("{'query': 3, 'heads': 1, 'heads': 1}", PROBLEM_DUPLICATE_KEY, "/heads");
}
END_TEST

START_TEST(escaped_nuls_are_refused)
{
	refuse("{'query': [[1]], 'weights': 'me\\u0000an'}", PROBLEM_NUL_ESCAPE, "/weights");
}
END_TEST

START_TEST(numbers_that_float32_cannot_hold_are_named)
{
	refuse("{'query': [[1, 1e39]]}", PROBLEM_BEYOND_FLOAT32, "/query/0/1");
	refuse("{'query': [[1, NaN]]}", PROBLEM_NOT_FINITE, "/query/0/1");
	refuse("{'query': [[1, 2, 3, -Infinity]]}", PROBLEM_NOT_FINITE, "/query/0/3");
	refuse_field("'scale': 1e39", PROBLEM_BEYOND_FLOAT32, "/scale");
	refuse_field("'scale': 1e999", PROBLEM_BEYOND_FLOAT32, "/scale");
	refuse_field("'scale': Infinity", PROBLEM_NOT_FINITE, "/scale");
	refuse_field("'sink': [1e40]", PROBLEM_BEYOND_FLOAT32, "/sink/0");
	attention_request_free(accept("{'query': [[1, 1e-400]]}"));
	struct attention_request *most = accept_field("'scale': -3.4028235677973366e38, 'softcap': "
	                                              "340282356779733661637539395458142568447");
	ck_assert_float_eq(most->options.scale, -FLT_MAX);
	ck_assert_float_eq(most->options.softcap, FLT_MAX);
	attention_request_free(most);
}
END_TEST

START_TEST(an_unknown_field_is_refused_with_the_nearest_known_name)
{
	refuse_field("'head': 2", PROBLEM_UNKNOWN_FIELD, "/head");
	ck_assert_ptr_nonnull(strstr(problem.detail, "`heads`"));
	refuse("{'querry': [[1]]}", PROBLEM_UNKNOWN_FIELD, "/querry");
	ck_assert_ptr_nonnull(strstr(problem.detail, "`query`"));
	refuse_field("'zzzzzzzzzz': 2", PROBLEM_UNKNOWN_FIELD, "/zzzzzzzzzz");
	ck_assert_ptr_null(strstr(problem.detail, "nearest"));
	refuse_field("'a/b': 2", PROBLEM_UNKNOWN_FIELD, "/a~1b");
	refuse_field("'projections': {'keys': [[1]]}", PROBLEM_UNKNOWN_FIELD, "/projections/keys");
	ck_assert_ptr_nonnull(strstr(problem.detail, "`key`"));
	refuse("{'query': {'shape': [1,1], 'data': [1], 'base46': 'AA=='}}", PROBLEM_UNKNOWN_FIELD,
	       "/query/base46");
	ck_assert_ptr_nonnull(strstr(problem.detail, "`base64`"));
	refuse_field("'projections': {'key': {'shape': [4,4], 'date': [1]}}", PROBLEM_MISSING_FIELD,
	             "/projections/key/data");
	refuse_field("'layer': 0", PROBLEM_UNKNOWN_FIELD, "/layer");
}
END_TEST

START_TEST(a_refused_value_is_told_as_sent_with_all_that_may_stand_there)
{
	refuse_field("'position_offset': 9223372036854775807", PROBLEM_BAD_VALUE, "/position_offset");
	ck_assert_ptr_nonnull(strstr(problem.detail, "the integer 9223372036854775807 is out of range"));
	refuse_field("'heads': 2e30", PROBLEM_BAD_VALUE, "/heads");
	ck_assert_ptr_nonnull(strstr(problem.detail, "the integer 2e+30 is out of range"));
	refuse_field("'weights': 'Mean'", PROBLEM_BAD_VALUE, "/weights");
	ck_assert_ptr_nonnull(strstr(problem.detail, "true, false, \"mean\" or an object"));
	refuse_field("'precision': 'long'", PROBLEM_BAD_VALUE, "/precision");
	ck_assert_ptr_nonnull(strstr(problem.detail, "1 to 9"));
	refuse_field("'positions': 'rope', 'rope_theta': 1e-50", PROBLEM_BAD_VALUE, "/rope_theta");
	ck_assert_ptr_nonnull(strstr(problem.detail, "in float32"));
}
END_TEST

START_TEST(a_large_unknown_field_is_unknown_before_it_is_large)
{
	enum { COUNT = 600000 };
	char *text = malloc(2 * COUNT + 64);
	size_t length = (size_t)sprintf(text, "{'query': [[1]], 'quary': [1");
	for (int i = 0; i < COUNT; i++) {
		text[length++] = ',';
		text[length++] = '1';
	}
	sprintf(text + length, "]}");
	refuse(text, PROBLEM_UNKNOWN_FIELD, "/quary");
	memcpy(strstr(text, "quary"), "scale", 5);
	struct attention_request *request = attention_body_parse(text, NULL, &roomy, &problem);
	ck_assert_ptr_null(request);
	ck_assert_int_eq(problem.code, PROBLEM_BODY_TOO_LARGE);
	ck_assert_int_eq(problem_status(problem.code), 413);
	free(text);
}
END_TEST

/* ---- tensors */

START_TEST(the_query_is_required)
{
	refuse("{}", PROBLEM_MISSING_FIELD, "/query");
	refuse("{'key': [[1]]}", PROBLEM_MISSING_FIELD, "/query");
}
END_TEST

START_TEST(null_and_other_types_are_no_tensors)
{
	refuse("{'query': null}", PROBLEM_WRONG_TYPE, "/query");
	refuse("{'query': [[1]], 'key': 0}", PROBLEM_WRONG_TYPE, "/key");
	refuse("{'query': [[1]], 'mask': true}", PROBLEM_WRONG_TYPE, "/mask");
	refuse("{'query': [[1]], 'bias': [[true]]}", PROBLEM_WRONG_TYPE, "/bias/0/0");
	refuse("{'query': [[1]], 'projections': {'query': null}}", PROBLEM_WRONG_TYPE, "/projections/query");
	refuse("{'query': [[1]], 'projections': null}", PROBLEM_WRONG_TYPE, "/projections");
	refuse("{'query': [[1]], 'projections': [[1]]}", PROBLEM_WRONG_TYPE, "/projections");
	refuse("{'query': [[1, null]]}", PROBLEM_WRONG_TYPE, "/query/0/1");
	refuse("{'query': [[1]], 'mask': [[0]]}", PROBLEM_WRONG_TYPE, "/mask/0/0");
	ck_assert_ptr_nonnull(strstr(problem.detail, "`bias`"));
}
END_TEST

START_TEST(ragged_nesting_is_refused)
{
	refuse("{'query': [[1,2],[3]]}", PROBLEM_RAGGED, "/query/1");
	refuse("{'query': [[1]], 'mask': [[true],[true,false]]}", PROBLEM_RAGGED, "/mask/1");
	refuse("{'query': []}", PROBLEM_BAD_VALUE, "/query");
}
END_TEST

START_TEST(a_shape_must_be_a_list_of_dimensions)
{
	refuse("{'query': {'data': [1]}}", PROBLEM_MISSING_FIELD, "/query/shape");
	refuse("{'query': {'shape': [1,1]}}", PROBLEM_MISSING_FIELD, "/query/data");
	refuse("{'query': {}}", PROBLEM_MISSING_FIELD, "/query/shape");
	refuse("{'query': {'shape': 1, 'data': [1]}}", PROBLEM_WRONG_TYPE, "/query/shape");
	refuse("{'query': {'shape': [1, 'a'], 'data': [1]}}", PROBLEM_WRONG_TYPE, "/query/shape/1");
	refuse("{'query': {'shape': [1, 1.5], 'data': [1]}}", PROBLEM_WRONG_TYPE, "/query/shape/1");
	refuse("{'query': {'shape': [1, -1], 'data': [1]}}", PROBLEM_BAD_VALUE, "/query/shape/1");
	refuse("{'query': {'shape': [], 'data': [1]}}", PROBLEM_SHAPE_MISMATCH, "/query/shape");
	refuse("{'query': {'shape': [1,1,1,1,1], 'data': [1]}}", PROBLEM_SHAPE_MISMATCH, "/query/shape");
	refuse("{'query': {'shape': [1,1], 'data': 1}}", PROBLEM_WRONG_TYPE, "/query/data");
	refuse("{'query': {'shape': [1,1], 'data': [[1]]}}", PROBLEM_SHAPE_MISMATCH, "/query/data");
	refuse("{'query': {'shape': [2,3], 'data': [1,2,3,4,5]}}", PROBLEM_SHAPE_MISMATCH, "/query/data");
	refuse("{'query': {'shape': [0,3], 'data': [1]}}", PROBLEM_SHAPE_MISMATCH, "/query/data");
	refuse("{'query': [[[[[1]]]]]}", PROBLEM_SHAPE_MISMATCH, "/query");
}
END_TEST

START_TEST(a_shape_whose_product_overflows_is_refused)
{
	refuse("{'query': {'shape': [4294967296, 4294967296], 'data': [1]}}", PROBLEM_SHAPE_OVERFLOW,
	       "/query/shape");
	refuse("{'query': {'shape': [0, 4294967296, 4294967296], 'data': []}}", PROBLEM_SHAPE_OVERFLOW,
	       "/query/shape");
	refuse("{'query': {'shape': [99999999999999999999, 1], 'data': [1]}}", PROBLEM_SHAPE_OVERFLOW,
	       "/query/shape/0");
	refuse("{'query': {'shape': [9223372036854775807, 3], 'data': [1]}}", PROBLEM_SHAPE_OVERFLOW,
	       "/query/shape");
	refuse("{'query': {'shape': [1e30, 0], 'data': []}}", PROBLEM_SHAPE_OVERFLOW, "/query/shape/0");
}
END_TEST

START_TEST(a_tensor_without_width_is_refused)
{
	refuse("{'query': {'shape': [2,0], 'data': []}}", PROBLEM_ZERO_WIDTH, "/query");
	refuse("{'embeddings': {'shape': [2,0], 'data': []}}", PROBLEM_ZERO_WIDTH, "/embeddings");
	refuse("{'query': [[1]], 'value': {'shape': [1,0], 'data': []}}", PROBLEM_ZERO_WIDTH, "/value");
	refuse("{'query': {'shape': [1,0,1,1], 'data': []}}", PROBLEM_ZERO_WIDTH, "/query");
	refuse("{'query': [[1]], 'projections': {'key': {'shape': [1,0], 'data': []}}}", PROBLEM_ZERO_WIDTH,
	       "/projections/key");
}
END_TEST

START_TEST(shapes_that_do_not_fit_each_other_are_refused)
{
	refuse("{'query': [1, 2]}", PROBLEM_SHAPE_MISMATCH, "/query");
	refuse("{'query': [[1]], 'key': [[[1]]]}", PROBLEM_SHAPE_MISMATCH, "/key");
	refuse("{'query': [[[1]],[[2]]], 'key': [[[1]]]}", PROBLEM_SHAPE_MISMATCH, "/key");
	refuse("{'query': [[[1]],[[2]]], 'value': [[[1]]]}", PROBLEM_SHAPE_MISMATCH, "/value");
	refuse("{'query': [[1]], 'key': [[1, 2]]}", PROBLEM_SHAPE_MISMATCH, "/key");
	refuse("{'query': [[1]], 'key': [[1],[2]], 'value': [[1]]}", PROBLEM_SHAPE_MISMATCH, "/value");
	refuse("{'query': [[1]], 'value': [[1],[2]]}", PROBLEM_SHAPE_MISMATCH, "/value");
	refuse_field("'projections': {'query': [[1,2],[3,4]]}", PROBLEM_SHAPE_MISMATCH, "/projections/query");
	refuse_field("'projections': {'query': [1,2,3,4]}", PROBLEM_SHAPE_MISMATCH, "/projections/query");
	refuse_field("'projections': {'query': [[1,2],[3,4],[5,6],[7,8]]}", PROBLEM_SHAPE_MISMATCH, "/key");
	refuse_field("'projections': {'key': [[1,2],[3,4],[5,6],[7,8]]}", PROBLEM_SHAPE_MISMATCH,
	             "/projections/key");
	refuse_field("'projections': {'output': [[1,2],[3,4]]}", PROBLEM_SHAPE_MISMATCH,
	             "/projections/output");
	refuse_field("'projections': {'value': [[1],[2],[3],[4]], 'value_bias': [1, 2]}",
	             PROBLEM_SHAPE_MISMATCH, "/projections/value_bias");
	refuse_field("'projections': {'query_bias': [1,2,3,4]}", PROBLEM_MISSING_FIELD, "/projections/query");
}
END_TEST

START_TEST(heads_that_do_not_divide_are_refused)
{
	refuse_field("'heads': 3", PROBLEM_HEADS, "/heads");
	refuse_field("'heads': 5", PROBLEM_HEADS, "/heads");
	refuse_field("'heads': 9223372036854775807", PROBLEM_HEADS, "/heads");
	refuse_field("'heads': 4, 'kv_heads': 3", PROBLEM_HEADS, "/kv_heads");
	refuse_field("'heads': 2, 'kv_heads': 4", PROBLEM_HEADS, "/kv_heads");
	refuse_field("'heads': 4, 'kv_heads': 2", PROBLEM_SHAPE_MISMATCH, "/key");
	refuse_field("'heads': 2, 'value': [[1,2,3],[4,5,6]]", PROBLEM_HEADS, "/heads");
	refuse_field("'heads': 0", PROBLEM_BAD_VALUE, "/heads");
	refuse_field("'heads': -1", PROBLEM_BAD_VALUE, "/heads");
	refuse_field("'heads': 1e30", PROBLEM_BAD_VALUE, "/heads");
	refuse_field("'heads': 1.5", PROBLEM_WRONG_TYPE, "/heads");
	refuse_field("'heads': '2'", PROBLEM_WRONG_TYPE, "/heads");
	refuse_field("'heads': null", PROBLEM_WRONG_TYPE, "/heads");
	refuse_field("'heads': true", PROBLEM_WRONG_TYPE, "/heads");
	refuse_field("'kv_heads': 0", PROBLEM_BAD_VALUE, "/kv_heads");
}
END_TEST

START_TEST(split_heads_allow_no_other_heads_and_no_projections)
{
	refuse("{'query': [[[[1]],[[2]]]], 'heads': 1}", PROBLEM_HEADS, "/heads");
	refuse("{'query': [[[[1]],[[2]]]], 'kv_heads': 1}", PROBLEM_HEADS, "/kv_heads");
	refuse("{'query': [[[[1]],[[2]]]], 'projections': {'output': [[1,2],[3,4]]}}", PROBLEM_SHAPE_MISMATCH,
	       "/projections");
	refuse("{'query': [[[[1]],[[2]],[[3]]]], 'key': [[[[1]],[[2]]]]}", PROBLEM_HEADS, "/key");
	refuse("{'query': [[[[1]],[[2]]]], 'key': [[[[1,2]],[[2,3]]]]}", PROBLEM_SHAPE_MISMATCH, "/key");
	refuse("{'query': [[[[1]],[[2]]]], 'value': [[[[1]]]]}", PROBLEM_SHAPE_MISMATCH, "/value");
	refuse("{'query': [[[[1]]]], 'key': {'shape': [1,0,1,1], 'data': []}}", PROBLEM_ZERO_WIDTH, "/key");
}
END_TEST

START_TEST(masks_that_do_not_broadcast_are_refused)
{
	refuse_field("'mask': [true, false]", PROBLEM_SHAPE_MISMATCH, "/mask");
	refuse_field("'mask': [[true, false, true]]", PROBLEM_SHAPE_MISMATCH, "/mask");
	refuse_field("'mask': [[true],[true],[true]]", PROBLEM_SHAPE_MISMATCH, "/mask");
	refuse_field("'mask': [[[true]],[[true]]]", PROBLEM_SHAPE_MISMATCH, "/mask");
	refuse_field("'mask': [[[[true]]],[[[true]]]]", PROBLEM_SHAPE_MISMATCH, "/mask");
	refuse_field("'bias': [[1, 2, 3]]", PROBLEM_SHAPE_MISMATCH, "/bias");
	refuse_field("'mask': {'shape': [0, 2], 'data': []}", PROBLEM_SHAPE_MISMATCH, "/mask");
}
END_TEST

/* ---- fields */

START_TEST(fields_out_of_range_or_of_another_type_are_refused)
{
	refuse_field("'causal': 'left'", PROBLEM_BAD_VALUE, "/causal");
	refuse_field("'causal': null", PROBLEM_WRONG_TYPE, "/causal");
	refuse_field("'causal': {}", PROBLEM_WRONG_TYPE, "/causal");
	refuse_field("'causal': 0.5", PROBLEM_WRONG_TYPE, "/causal");
	refuse_field("'causal': [true]", PROBLEM_WRONG_TYPE, "/causal/0");
	refuse_field("'causal': [1, 2]", PROBLEM_SHAPE_MISMATCH, "/causal");
	refuse_field("'causal': 1e19", PROBLEM_BAD_VALUE, "/causal");
	refuse_field("'key_lengths': 3", PROBLEM_BAD_VALUE, "/key_lengths");
	refuse_field("'key_lengths': -1", PROBLEM_BAD_VALUE, "/key_lengths");
	refuse_field("'key_lengths': [3]", PROBLEM_BAD_VALUE, "/key_lengths/0");
	refuse_field("'key_lengths': [1, 1]", PROBLEM_SHAPE_MISMATCH, "/key_lengths");
	refuse_field("'key_lengths': 'all'", PROBLEM_WRONG_TYPE, "/key_lengths");
	refuse_field("'key_lengths': null", PROBLEM_WRONG_TYPE, "/key_lengths");
	refuse_field("'scale': 'x'", PROBLEM_WRONG_TYPE, "/scale");
	refuse_field("'scale': null", PROBLEM_WRONG_TYPE, "/scale");
	refuse_field("'softcap': 0", PROBLEM_BAD_VALUE, "/softcap");
	refuse_field("'softcap': -2", PROBLEM_BAD_VALUE, "/softcap");
	refuse_field("'softcap': 1e-60", PROBLEM_BAD_VALUE, "/softcap");
	refuse_field("'softcap': null", PROBLEM_WRONG_TYPE, "/softcap");
	refuse_field("'window': [1]", PROBLEM_BAD_VALUE, "/window");
	refuse_field("'window': [1, -2]", PROBLEM_BAD_VALUE, "/window/1");
	refuse_field("'window': [1, 0.5]", PROBLEM_WRONG_TYPE, "/window/1");
	refuse_field("'window': 1", PROBLEM_WRONG_TYPE, "/window");
	refuse_field("'sink': [1, 2]", PROBLEM_SHAPE_MISMATCH, "/sink");
	refuse_field("'sink': ['a']", PROBLEM_WRONG_TYPE, "/sink/0");
	refuse_field("'sink': null", PROBLEM_WRONG_TYPE, "/sink");
	refuse_field("'weights': 'max'", PROBLEM_BAD_VALUE, "/weights");
	refuse_field("'weights': 1", PROBLEM_WRONG_TYPE, "/weights");
	refuse_field("'weights': null", PROBLEM_WRONG_TYPE, "/weights");
	refuse_field("'precision': 0", PROBLEM_BAD_VALUE, "/precision");
	refuse_field("'precision': 10", PROBLEM_BAD_VALUE, "/precision");
	refuse_field("'precision': 'long'", PROBLEM_BAD_VALUE, "/precision");
	refuse_field("'precision': true", PROBLEM_WRONG_TYPE, "/precision");
	refuse_field("'timeout_ms': 0", PROBLEM_BAD_VALUE, "/timeout_ms");
	refuse_field("'timeout_ms': 30001", PROBLEM_BAD_VALUE, "/timeout_ms");
	refuse_field("'timeout_ms': '5'", PROBLEM_WRONG_TYPE, "/timeout_ms");
	refuse_field("'projection_layout': 'io'", PROBLEM_BAD_VALUE, "/projection_layout");
	refuse_field("'projection_layout': 1", PROBLEM_WRONG_TYPE, "/projection_layout");
}
END_TEST

/* ---- limits */

START_TEST(what_is_over_a_limit_is_refused_with_the_limit)
{
	struct attention_limits limits = roomy;
	limits.sequence_length = 2;
	refuse_with("{'query': [[1],[2],[3]]}", NULL, &limits, PROBLEM_SEQUENCE_TOO_LONG, "/query");
	ck_assert_ptr_nonnull(strstr(problem.detail, "limit is 2"));
	refuse_with("{'query': [[[[1],[2],[3]]]]}", NULL, &limits, PROBLEM_SEQUENCE_TOO_LONG, "/query");
	refuse_with("{'query': [[1]], 'key': [[1],[2],[3]]}", NULL, &limits, PROBLEM_SEQUENCE_TOO_LONG,
	            "/key");
	limits = roomy;
	limits.elements = 5;
	refuse_with("{'query': [[1,2],[3,4]], 'key': [[5,6]]}", NULL, &limits, PROBLEM_TOO_MANY_ELEMENTS,
	            "/key");
	refuse_with("{'query': {'shape': [3,2], 'data': [1,2,3,4,5,6]}}", NULL, &limits,
	            PROBLEM_TOO_MANY_ELEMENTS, "/query");
	refuse_with("{'query': {'shape': [0,6], 'data': []}}", NULL, &limits, PROBLEM_TOO_MANY_ELEMENTS,
	            "/query");
	refuse_with("{'query': {'shape': [6,0,1], 'data': []}, 'key_lengths': 0}", NULL, &limits,
	            PROBLEM_TOO_MANY_ELEMENTS, "/query");
	ck_assert_int_eq(problem_status(problem.code), 413);
}
END_TEST

START_TEST(a_reply_that_just_fits_is_accepted)
{
	struct attention_limits limits = roomy;
	struct attention_request *request = accept("{'query': [[1,2],[3,4]]}");
	limits.reply_bytes = attention_request_reply_bytes(request);
	attention_request_free(request);
	request = attention_body_parse("{'query': [[1,2],[3,4]]}", NULL, &limits, &problem);
	ck_assert_ptr_nonnull(request);
	attention_request_free(request);
	limits.reply_bytes--;
	refuse_with("{'query': [[1,2],[3,4]]}", NULL, &limits, PROBLEM_REPLY_TOO_LARGE, "/weights");
}
END_TEST

START_TEST(a_reply_over_its_limit_is_refused_with_what_would_fit)
{
	struct attention_limits limits = roomy;
	const char *text =
	    "{'query': {'shape': [8,8], 'data': [0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,"
	    "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}, 'heads': 8}";
	limits.reply_bytes = 5000;
	refuse_with(text, NULL, &limits, PROBLEM_REPLY_TOO_LARGE, "/weights");
	ck_assert_ptr_nonnull(strstr(problem.detail, "limit is 5000"));
	ck_assert_ptr_nonnull(strstr(problem.detail, "\"weights\":\"mean\" would take"));
	limits.reply_bytes = 2000;
	refuse_with(text, NULL, &limits, PROBLEM_REPLY_TOO_LARGE, "/weights");
	ck_assert_ptr_nonnull(strstr(problem.detail, "\"weights\":false would take"));
	ck_assert_ptr_null(strstr(problem.detail, "mean"));
	limits.reply_bytes = 600;
	refuse_with(text, NULL, &limits, PROBLEM_REPLY_TOO_LARGE, "");
	ck_assert_ptr_nonnull(strstr(problem.detail, "even without weights it would take"));
	refuse_with("{'query': {'shape': [100000,0,1], 'data': []}, 'weights': false}", NULL, &limits,
	            PROBLEM_REPLY_TOO_LARGE, "");
	ck_assert_ptr_null(strstr(problem.detail, "without weights"));
	ck_assert_ptr_nonnull(strstr(problem.detail, "fewer or shorter sequences"));
}
END_TEST

START_TEST(problems_are_told_in_the_order_of_the_contract)
{
	struct attention_limits limits = roomy;
	limits.elements = 3;
	/* syntax, then overflow, then count, then limits, then meaning */
	refuse_with("{'query': {'shape': [1e30,1], 'data': [1,2,3,4]}, 'heads': 'x'", NULL, &limits,
	            PROBLEM_SYNTAX, "/heads");
	refuse_with("{'key': {'shape': [2,2], 'data': [1]}, 'query': {'shape': [1e30,1], 'data': [1,2,3,4]}, "
	            "'heads': 'x'}",
	            NULL, &limits, PROBLEM_SHAPE_OVERFLOW, "/query/shape/0");
	refuse_with("{'query': {'shape': [2,3], 'data': [1,2,3,4]}, 'heads': 'x'}", NULL, &limits,
	            PROBLEM_SHAPE_MISMATCH, "/query/data");
	refuse_with("{'heads': 'x', 'query': {'shape': [2,2], 'data': [1,2,3,4]}}", NULL, &limits,
	            PROBLEM_TOO_MANY_ELEMENTS, "/query");
	refuse_with("{'heads': 'x', 'query': [[1,2,3,1e39]]}", NULL, &limits, PROBLEM_TOO_MANY_ELEMENTS,
	            "/query");
	refuse_with("{'heads': 'x', 'query': [[1,1e39]]}", NULL, &limits, PROBLEM_BEYOND_FLOAT32,
	            "/query/0/1");
	refuse_with("{'heads': 'x', 'query': [[1]]}", NULL, &limits, PROBLEM_WRONG_TYPE, "/heads");
}
END_TEST

/* ---- the route of a model */

START_TEST(a_model_gives_its_layer)
{
	struct attention_request *request =
	    accept_with("{'query': [[1,2,3,4],[5,6,7,8]], 'causal': true}", &model);
	ck_assert(request->model && !request->split_heads);
	ck_assert_uint_eq(request->model_layer, 0);
	ck_assert_int_eq(request->model_kind, ATTN_SELF);
	shape_is(request, 2, 2, 2, 2, 2, 4);
	context_is(request, 2, DIMS(2, 5));
	ck_assert(request->layer.query.weight == weights);
	attention_request_free(request);
	request =
	    accept_with("{'query': [[[1,2,3,4]]], 'layer': 0, 'kind': 'cross', 'key': [[[1,2,3,4,5,6]]],"
	                "'weights': false}",
	                &model);
	ck_assert_int_eq(request->model_kind, ATTN_CROSS);
	shape_is(request, 1, 1, 1, 1, 4, 4);
	context_is(request, 3, DIMS(1, 1, 4));
	attention_request_free(request);
}
END_TEST

START_TEST(what_is_not_sent_is_as_the_model_has_it)
{
	struct attention_request *request = accept_with("{'query': [[1,2,3,4],[5,6,7,8]]}", &model);
	ck_assert(request->options.scale == 1 && request->options.causal == ATTN_CAUSAL_BOTTOM_RIGHT);
	ck_assert(request->options.window_left == 3 && request->options.window_right == -1);
	ck_assert(request->options.rotation == ATTN_ROTATE_HALVES && request->options.position_offset == 0);
	attention_request_free(request);
	request = accept_with("{'query': [[1,2,3,4]], 'causal': false, 'window': [0, 0], 'softcap': 2,"
	                      "'sink': 1, 'position_offset': 9}",
	                      &model);
	ck_assert(request->options.causal == ATTN_CAUSAL_NONE && request->options.window_left == 0);
	ck_assert(request->options.softcap == 2 && request->options.sink[1] == 1);
	ck_assert(request->options.position_offset == 9);
	attention_request_free(request);
	request = accept_with("{'query': [[1,2,3,4]], 'past_key': [[[1,2],[3,4]],[[5,6],[7,8]]],"
	                      "'past_value': [[[1,2,3,4],[1,2,3,4]],[[1,2,3,4],[1,2,3,4]]]}",
	                      &model);
	ck_assert(request->options.position_offset == 2);
	attention_request_free(request);
}
END_TEST

START_TEST(masks_and_lengths_count_a_models_appended_keys_not)
{
	static const float appended[16];
	attn_model appending = model;
	appending.self.appended = 2;
	appending.self.appended_key = appending.self.appended_value = appended;
	struct attention_request *request =
	    accept_with("{'query': [[1,2,3,4],[5,6,7,8]], 'mask': [[true,false],[true,true]],"
	                "'key_lengths': 2, 'weights': {'top_k': 3}}",
	                &appending);
	ck_assert_uint_eq(request->shape.keys, 4);
	ck_assert_uint_eq(attention_request_own_keys(request), 2);
	ck_assert_uint_eq(request->selection.top_k, 3);
	attention_request_free(request);
	refuse_with("{'query': [[1,2,3,4]], 'key_lengths': 2}", &appending, &roomy, PROBLEM_BAD_VALUE,
	            "/key_lengths");
	refuse_with("{'query': [[1,2,3,4]], 'mask': [[true,true,true]]}", &appending, &roomy,
	            PROBLEM_SHAPE_MISMATCH, "/mask");
	refuse_with("{'query': [[1,2,3,4]], 'past_key': [[[1,2]],[[3,4]]],"
	            "'past_value': [[[1,2,3,4]],[[1,2,3,4]]]}",
	            &appending, &roomy, PROBLEM_BAD_VALUE, "/past_key");
}
END_TEST

START_TEST(what_a_model_has_not_is_refused)
{
	refuse_model("{'query': [[1,2,3,4]], 'layer': 2}", PROBLEM_BAD_VALUE, "/layer");
	refuse_model("{'query': [[1,2,3,4]], 'layer': -1}", PROBLEM_BAD_VALUE, "/layer");
	refuse_model("{'query': [[1,2,3,4]], 'layer': 'a'}", PROBLEM_WRONG_TYPE, "/layer");
	refuse_model("{'query': [[1,2,3,4]], 'kind': 'cross', 'layer': 1}", PROBLEM_BAD_VALUE, "/layer");
	attn_model without = model;
	without.cross_layers = 0;
	refuse_with("{'query': [[1,2,3,4]], 'kind': 'cross'}", &without, &roomy, PROBLEM_BAD_VALUE, "/kind");
	refuse_model("{'query': [[1,2,3,4]], 'kind': 'both'}", PROBLEM_BAD_VALUE, "/kind");
	refuse_model("{'query': [[1,2,3]]}", PROBLEM_SHAPE_MISMATCH, "/query");
	refuse_model("{'query': [[1,2,3,4]], 'kind': 'cross'}", PROBLEM_SHAPE_MISMATCH, "/key");
	refuse_model("{'query': [[1,2,3,4]], 'value': [[1,2]]}", PROBLEM_SHAPE_MISMATCH, "/value");
	refuse_model("{'query': [[[[1,2,3,4]]]]}", PROBLEM_SHAPE_MISMATCH, "/query");
}
END_TEST

START_TEST(what_is_the_models_own_cannot_be_sent)
{
	static const char *const fields[] = {"'heads': 2", "'kv_heads': 2", "'scale': 1",
	                                     "'projections': {'query': [[1]]}",
	                                     "'projection_layout': 'in_out'"};
	static const char *const pointers[] = {"/heads", "/kv_heads", "/scale", "/projections",
	                                       "/projection_layout"};
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		char text[256];
		snprintf(text, sizeof(text), "{'query': [[1,2,3,4]], %s}", fields[i]);
		refuse_model(text, PROBLEM_UNKNOWN_FIELD, pointers[i]);
		ck_assert_ptr_nonnull(strstr(problem.detail, "model's own"));
	}
}
END_TEST

SUITE_MAIN("attention_parse", a_refused_value_is_told_as_sent_with_all_that_may_stand_there,
           a_query_alone_attends_to_itself_with_the_defaults, embeddings_are_the_query,
           keys_and_values_may_have_lengths_and_widths_of_their_own, projections_are_applied_in_either_layout,
           four_dimensions_set_the_heads, grouped_heads_share_narrower_keys,
           empty_sequences_and_batches_are_legal, causal_has_all_its_forms,
           key_lengths_are_one_or_one_a_sequence, scalars_are_read, masks_and_biases_broadcast_as_numpy_does,
           sizes_count_what_is_held, a_body_that_is_not_json_is_a_syntax_problem,
           a_body_nested_too_deeply_is_refused, a_body_that_is_no_object_is_told_so,
           duplicate_keys_are_refused_wherever_they_stand, escaped_nuls_are_refused,
           numbers_that_float32_cannot_hold_are_named,
           an_unknown_field_is_refused_with_the_nearest_known_name,
           a_large_unknown_field_is_unknown_before_it_is_large, the_query_is_required,
           null_and_other_types_are_no_tensors, ragged_nesting_is_refused,
           a_shape_must_be_a_list_of_dimensions, a_shape_whose_product_overflows_is_refused,
           a_tensor_without_width_is_refused, shapes_that_do_not_fit_each_other_are_refused,
           heads_that_do_not_divide_are_refused, split_heads_allow_no_other_heads_and_no_projections,
           masks_that_do_not_broadcast_are_refused, fields_out_of_range_or_of_another_type_are_refused,
           what_is_over_a_limit_is_refused_with_the_limit, a_reply_that_just_fits_is_accepted,
           a_reply_over_its_limit_is_refused_with_what_would_fit,
           problems_are_told_in_the_order_of_the_contract, a_model_gives_its_layer,
           what_is_not_sent_is_as_the_model_has_it, masks_and_lengths_count_a_models_appended_keys_not,
           what_a_model_has_not_is_refused, what_is_the_models_own_cannot_be_sent)
