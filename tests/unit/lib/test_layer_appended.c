#include "attn.h"
#include "kernel_sets.h"
#include "random_attention.h"
#include "reference.h"

#include <math.h>
#include <string.h>

enum { APPENDED = 2, ROUNDS = 60 };

/* A layer without projections, and one sequence of it. */
struct made {
	attn_layer layer;
	attn_shape shape; /* without the appended keys */
	attn_options options;
	attn_layer_sequence sequence;
	const float *behind[2]; /* appended keys and values, as the layer has them */
};

static attn_linear identity(size_t width)
{
	return (attn_linear){.in = width, .out = width};
}

static attn_heads rows_of(const float *data, size_t heads, size_t width)
{
	return (attn_heads){data, width, heads * width};
}

static struct made make(struct draw *draw)
{
	struct made made = {.shape = draw_shape(draw, 9)};
	attn_shape *shape = &made.shape;
	shape->keys -= shape->past;
	shape->past = 0;
	made.options = draw_options(draw, shape);
	made.options.rotation = ATTN_ROTATE_NONE;
	made.options.slopes = made.options.relative = made.options.sink = NULL;
	made.options.selection = NULL;
	const size_t query = shape->heads * shape->head_width, key = shape->kv_heads * shape->head_width;
	const size_t value = shape->kv_heads * shape->value_width;
	made.behind[0] = draw_floats(draw, APPENDED * key);
	made.behind[1] = draw_floats(draw, APPENDED * value);
	made.layer = (attn_layer){.query = identity(query),
	                          .key = identity(key),
	                          .value = identity(value),
	                          .output = identity(shape->heads * shape->value_width),
	                          .heads = shape->heads,
	                          .kv_heads = shape->kv_heads,
	                          .head_width = shape->head_width,
	                          .value_width = shape->value_width,
	                          .appended = APPENDED,
	                          .appended_key = made.behind[0],
	                          .appended_value = made.behind[1]};
	attn_sequence attend = draw_sequence(draw, shape, &made.options);
	made.sequence = (attn_layer_sequence){
	    .query = draw_floats(draw, shape->queries * query),
	    .key = draw_floats(draw, shape->keys * key),
	    .value = draw_floats(draw, shape->keys * value),
	    .output = draw_floats(draw, shape->queries * shape->heads * shape->value_width),
	    .attend = {.key_length = attend.key_length,
	               .causal_offset = attend.causal_offset,
	               .mask = attend.mask,
	               .bias = attend.bias},
	};
	return made;
}

/* ------------------------------------------------------------------ the definition */

static double cap(const attn_options *options, double score)
{
	return options->softcap > 0 ? (double)options->softcap * tanh(score / (double)options->softcap)
	                            : score;
}

/* Masked scores of a row and then those of the appended keys, [keys + APPENDED], become weights. */
static void weigh(const struct made *made, const double *masked, size_t head, size_t query, double *weights)
{
	const attn_shape *shape = &made->shape;
	const size_t width = shape->head_width, kv_head = head / (shape->heads / shape->kv_heads);
	const float *q = made->sequence.query + (query * shape->heads + head) * width;
	const size_t keys = shape->keys + APPENDED;
	for (size_t j = 0; j < keys; j++) {
		weights[j] = j < shape->keys ? masked[j] : 0;
		for (size_t d = 0; j >= shape->keys && d < width; d++)
			weights[j] +=
			    (double)q[d] *
			    (double)
			        made->behind[0][((j - shape->keys) * shape->kv_heads + kv_head) * width + d];
		if (j >= shape->keys)
			weights[j] = cap(&made->options, (double)made->options.scale * weights[j]);
	}
	double most = -INFINITY, sum = 0;
	for (size_t j = 0; j < keys; j++)
		most = fmax(most, weights[j]);
	for (size_t j = 0; j < keys; j++)
		sum += weights[j] = exp(weights[j] - most);
	for (size_t j = 0; j < keys; j++)
		weights[j] /= sum;
}

static double value_of(const struct made *made, size_t head, size_t key, size_t column)
{
	const attn_shape *shape = &made->shape;
	const size_t kv_head = head / (shape->heads / shape->kv_heads);
	const float *rows = key < shape->keys ? made->sequence.value : made->behind[1];
	const size_t row = key < shape->keys ? key : key - shape->keys;
	return (double)rows[(row * shape->kv_heads + kv_head) * shape->value_width + column];
}

static void compare(const struct made *made, const float *weights, attn_arena *arena)
{
	const attn_shape *shape = &made->shape;
	const size_t keys = shape->keys + APPENDED;
	attn_sequence before = made->sequence.attend;
	before.query = rows_of(made->sequence.query, shape->heads, shape->head_width);
	before.key = rows_of(made->sequence.key, shape->kv_heads, shape->head_width);
	before.value = rows_of(made->sequence.value, shape->kv_heads, shape->value_width);
	const struct reference reference = reference_attend(arena, shape, &made->options, &before);
	double *wanted = attn_arena_alloc(arena, keys * sizeof(double));
	for (size_t row = 0; row < shape->heads * shape->queries; row++) {
		const size_t head = row / shape->queries, query = row % shape->queries;
		weigh(made, reference.masked + row * shape->keys, head, query, wanted);
		for (size_t j = 0; j < keys; j++)
			ck_assert_double_eq_tol((double)weights[row * keys + j], wanted[j], 1e-5);
		for (size_t c = 0; c < shape->value_width; c++) {
			double sum = 0;
			for (size_t j = 0; j < keys; j++)
				sum += wanted[j] * value_of(made, head, j, c);
			const size_t at = (query * shape->heads + head) * shape->value_width + c;
			ck_assert_double_eq_tol((double)made->sequence.output[at], sum, 1e-5);
		}
	}
}

static void appended_keys_come_last_and_are_always_allowed(attn_kernels *kernels)
{
	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		struct draw draw = {.state = seed, .arena = attn_arena_new(0)};
		struct made made = make(&draw);
		attn_arena *scratch = attn_arena_new(0);
		attn_executor executor = attn_executor_serial(scratch);
		const size_t queries = made.shape.queries, keys = made.shape.keys + APPENDED;
		float *weights = made.sequence.attend.weights =
		    draw_floats(&draw, made.shape.heads * queries * keys);
		ck_assert_int_eq(attn_layer_run(kernels, &executor, &made.layer, queries, keys, 0,
		                                &made.options, &made.sequence, 1),
		                 ATTN_OK);
		compare(&made, weights, draw.arena);
		ck_assert_uint_le(attn_arena_peak(scratch),
		                  attn_layer_scratch_bytes(&made.layer, queries, keys, 0, &made.options, 1));
		attn_arena_free(scratch);
		attn_arena_free(draw.arena);
	}
}
ON_EACH_SET(appended_keys_come_last_and_are_always_allowed)

/* ------------------------------------------------------------------ arguments */

static attn_status status_of(const attn_kernels *kernels, const struct made *made, size_t keys, size_t past)
{
	attn_arena *scratch = attn_arena_new(0);
	attn_executor executor = attn_executor_serial(scratch);
	attn_status status = attn_layer_run(kernels, &executor, &made->layer, made->shape.queries, keys, past,
	                                    &made->options, &made->sequence, 1);
	attn_arena_free(scratch);
	return status;
}

static void what_appended_keys_do_not_go_with_is_refused(attn_kernels *kernels)
{
	struct draw draw = {.state = 3, .arena = attn_arena_new(0)};
	struct made made = make(&draw);
	const size_t keys = made.shape.keys + APPENDED;
	ck_assert_int_eq(status_of(kernels, &made, keys, 0), ATTN_OK);
	ck_assert_int_eq(status_of(kernels, &made, APPENDED - 1, 0), ATTN_INVALID);
	ck_assert_int_eq(status_of(kernels, &made, keys, 1), ATTN_INVALID);
	struct made bad = made;
	bad.options.slopes = draw_floats(&draw, made.shape.heads);
	ck_assert_int_eq(status_of(kernels, &bad, keys, 0), ATTN_INVALID);
	bad = made;
	bad.options.window_left = -2;
	ck_assert_int_eq(status_of(kernels, &bad, keys, 0), ATTN_INVALID);
	bad = made;
	bad.sequence.attend.key_length = keys + 1;
	ck_assert_int_eq(status_of(kernels, &bad, keys, 0), ATTN_INVALID);
	attn_arena_free(draw.arena);
}
ON_EACH_SET(what_appended_keys_do_not_go_with_is_refused)

SUITE_MAIN("layer with appended keys", EACH_SET(appended_keys_come_last_and_are_always_allowed),
           EACH_SET(what_appended_keys_do_not_go_with_is_refused))
