#include "attn.h"
#include "kernel_sets.h"
#include "kernels.h"
#include "random_attention.h"
#include "reference.h"

#include <math.h>
#include <string.h>

/* ---- the textbook */

static const float EMBEDDINGS[] = {0, 1, 0, 1, 0, 1, 0, 1, 1, 1, 1, 0};
static const float WQ[] = {.1f, .2f, .3f, .4f, .5f, .6f, .7f, .8f, .9f};
static const float WK[] = {.9f, .8f, .7f, .6f, .5f, .4f, .3f, .2f, .1f};
static const float WV[] = {.2f, .4f, .6f, .8f, 1.0f, 1.2f, 1.4f, 1.6f, 1.8f};

static attn_linear linear(const float *weight, size_t in, size_t out)
{
	return (attn_linear){.weight = weight, .in = in, .out = out, .stride = out, .layout = ATTN_IN_OUT};
}

static attn_layer textbook(void)
{
	return (attn_layer){
	    .query = linear(WQ, 3, 3),
	    .key = linear(WK, 3, 3),
	    .value = linear(WV, 3, 3),
	    .output = linear(NULL, 3, 3),
	    .heads = 1,
	    .kv_heads = 1,
	    .head_width = 3,
	    .value_width = 3,
	};
}

struct lengths {
	size_t queries, keys, past;
};

static void run_options(attn_kernels *kernels, const attn_layer *layer, struct lengths lengths,
                        const attn_options *options, const attn_layer_sequence *sequences, size_t count)
{
	attn_arena *scratch = attn_arena_new(0);
	attn_executor executor = attn_executor_serial(scratch);
	ck_assert_int_eq(attn_layer_run(kernels, &executor, layer, lengths.queries, lengths.keys,
	                                lengths.past, options, sequences, count),
	                 ATTN_OK);
	ck_assert_uint_le(
	    attn_arena_peak(scratch),
	    attn_layer_scratch_bytes(layer, lengths.queries, lengths.keys, lengths.past, options, count));
	attn_arena_free(scratch);
}

static void run_layer(attn_kernels *kernels, const attn_layer *layer, size_t queries, size_t keys,
                      const attn_layer_sequence *sequences, size_t count)
{
	attn_options options = attn_options_default(layer->head_width);
	run_options(kernels, layer, (struct lengths){queries, keys, 0}, &options, sequences, count);
}

static void same(const float *found, const float *wanted, size_t count, double limit)
{
	for (size_t i = 0; i < count; i++)
		if (!(fabs((double)found[i] - (double)wanted[i]) <= limit))
			ck_abort_msg("number %zu is %.9g, should be %.9g", i, (double)found[i],
			             (double)wanted[i]);
}

static const float TEXTBOOK_WEIGHTS[] = {.176179f, .268531f, .207091f, .348199f, .116131f, .269791f,
                                         .160458f, .453621f, .087223f, .262751f, .133715f, .516311f,
                                         .151182f, .270862f, .188270f, .389686f};
static const float TEXTBOOK_CONTEXT[] = {1.374392f, 1.739156f, 2.103920f, 1.331198f, 1.707972f, 2.084746f,
                                         1.300664f, 1.683219f, 2.065775f, 1.358205f, 1.727969f, 2.097732f};

static void the_textbook_case_is_right_to_its_last_digit(attn_kernels *kernels)
{
	float output[12], weights[16];
	attn_layer layer = textbook();
	attn_layer_sequence sequence = {
	    EMBEDDINGS, EMBEDDINGS, EMBEDDINGS, output, {.key_length = 4, .weights = weights}};
	run_layer(kernels, &layer, 4, 4, &sequence, 1);
	same(weights, TEXTBOOK_WEIGHTS, 16, 1e-6);
	same(output, TEXTBOOK_CONTEXT, 12, 1.2e-6);
}
ON_EACH_SET(the_textbook_case_is_right_to_its_last_digit)

static void transpose(float *out, const float *in, size_t rows, size_t columns)
{
	for (size_t i = 0; i < rows; i++)
		for (size_t j = 0; j < columns; j++)
			out[j * rows + i] = in[i * columns + j];
}

static void both_layouts_give_the_textbook(attn_kernels *kernels)
{
	float output[12], weights[16], transposed[3][9];
	attn_layer layer = textbook();
	attn_linear *linears[] = {&layer.query, &layer.key, &layer.value};
	for (size_t i = 0; i < 3; i++) {
		transpose(transposed[i], linears[i]->weight, 3, 3);
		linears[i]->weight = transposed[i];
		linears[i]->layout = ATTN_OUT_IN;
	}
	attn_layer_sequence sequence = {
	    EMBEDDINGS, EMBEDDINGS, EMBEDDINGS, output, {.key_length = 4, .weights = weights}};
	run_layer(kernels, &layer, 4, 4, &sequence, 1);
	same(weights, TEXTBOOK_WEIGHTS, 16, 1e-6);
	same(output, TEXTBOOK_CONTEXT, 12, 1.2e-6);
}
ON_EACH_SET(both_layouts_give_the_textbook)

static void a_conv1d_of_gpt2_multiplies_from_the_left(attn_kernels *kernels)
{
	static const float X[] = {1, 2}, W[] = {1, 2, 3, 4};
	float output[2];
	attn_layer layer = {.query = linear(NULL, 2, 2),
	                    .key = linear(NULL, 2, 2),
	                    .value = linear(W, 2, 2),
	                    .output = linear(NULL, 2, 2),
	                    .heads = 1,
	                    .kv_heads = 1,
	                    .head_width = 2,
	                    .value_width = 2};
	attn_layer_sequence sequence = {X, X, X, output, {.key_length = 1}};
	run_layer(kernels, &layer, 1, 1, &sequence, 1);
	ck_assert(output[0] == 7 && output[1] == 10);
}
ON_EACH_SET(a_conv1d_of_gpt2_multiplies_from_the_left)

/* ---- random layers against the reference in double */

struct made {
	attn_layer layer;
	attn_shape shape;
	attn_options options;
	bool self; /* key and value are the query */
};

/* A projection, NULL by chance where the widths allow; weights small, so that sums stay near 1. */
static attn_linear draw_linear(struct draw *draw, size_t in, size_t out)
{
	attn_linear made = {
	    .in = in, .out = out, .layout = draw_chance(draw, 50) ? ATTN_OUT_IN : ATTN_IN_OUT};
	if (in == out && draw_chance(draw, 20))
		return made;
	size_t rows = made.layout == ATTN_IN_OUT ? in : out;
	made.stride = (made.layout == ATTN_IN_OUT ? out : in) + draw_size(draw, 0, 3);
	float *weight = draw_floats(draw, rows * made.stride);
	for (size_t i = 0; i < rows * made.stride; i++)
		weight[i] /= sqrtf((float)in);
	made.weight = weight;
	made.bias = draw_chance(draw, 50) ? draw_floats(draw, out) : NULL;
	return made;
}

/* Makes key and value continue the query's matrix in memory. */
static void join(struct draw *draw, attn_layer *layer)
{
	attn_linear *linears[] = {&layer->query, &layer->key, &layer->value};
	size_t total = layer->query.out + layer->key.out + layer->value.out, in = layer->query.in;
	bool rows = draw_chance(draw, 50);
	float *weight = draw_floats(draw, total * in);
	for (size_t i = 0; i < total * in; i++)
		weight[i] /= sqrtf((float)in);
	for (size_t i = 0; i < 3; i++) {
		linears[i]->weight = weight;
		linears[i]->stride = rows ? in : total;
		linears[i]->layout = rows ? ATTN_OUT_IN : ATTN_IN_OUT;
		weight += rows ? linears[i]->out * in : linears[i]->out;
	}
}

static struct made draw_layer(struct draw *draw, size_t longest)
{
	attn_shape shape = draw_shape(draw, longest);
	struct made made = {.self = draw_chance(draw, 50)};
	size_t query = shape.heads * shape.head_width, key = shape.kv_heads * shape.head_width;
	size_t value = shape.kv_heads * shape.value_width, context = shape.heads * shape.value_width;
	size_t in = draw_chance(draw, 50) ? query : draw_size(draw, 1, 40);
	if (made.self)
		shape.keys = shape.queries + shape.past;
	made.shape = shape;
	made.options = draw_options(draw, &shape);
	made.options.sinusoidal = draw_chance(draw, 30);
	made.layer = (attn_layer){
	    .query = draw_linear(draw, in, query),
	    .key = draw_linear(draw, made.self ? in : draw_size(draw, 1, 40), key),
	    .value = draw_linear(draw, made.self ? in : draw_size(draw, 1, 40), value),
	    .output = draw_linear(draw, context, draw_chance(draw, 50) ? context : draw_size(draw, 1, 40)),
	    .heads = shape.heads,
	    .kv_heads = shape.kv_heads,
	    .head_width = shape.head_width,
	    .value_width = shape.value_width,
	};
	if (made.self && draw_chance(draw, 50))
		join(draw, &made.layer);
	return made;
}

static attn_layer_sequence draw_layer_sequence(struct draw *draw, const struct made *made)
{
	const attn_layer *layer = &made->layer;
	const size_t new_keys = made->shape.keys - made->shape.past;
	attn_layer_sequence sequence = {
	    .query = draw_floats(draw, made->shape.queries * layer->query.in),
	    .output = draw_floats(draw, made->shape.queries * layer->output.out),
	    .attend = draw_sequence(draw, &made->shape, &made->options),
	};
	sequence.key = sequence.value = sequence.query;
	if (!made->self) {
		sequence.key = draw_floats(draw, new_keys * layer->key.in);
		sequence.value = draw_floats(draw, new_keys * layer->value.in);
	}
	return sequence;
}

static double *doubles(struct draw *draw, size_t count)
{
	double *out = attn_arena_alloc(draw->arena, count * sizeof(double));
	ck_assert_ptr_nonnull(out);
	return out;
}

/* x W + b in double, then rounded for reference_attend; the rounding is part of the limit below. */
static attn_heads project(struct draw *draw, const struct made *made, const attn_linear *linear_of,
                          const float *x, size_t rows, size_t width)
{
	double *wide = doubles(draw, rows * linear_of->in), *y = doubles(draw, rows * linear_of->out);
	for (size_t i = 0; i < rows * linear_of->in; i++) {
		double position = (double)made->options.position_offset + (double)(i / linear_of->in);
		wide[i] = (double)x[i];
		if (made->options.sinusoidal)
			wide[i] += reference_sinusoid(position, i % linear_of->in, linear_of->in);
	}
	reference_linear(linear_of, wide, rows, y);
	float *out = draw_floats(draw, rows * linear_of->out);
	for (size_t i = 0; i < rows * linear_of->out; i++)
		out[i] = (float)y[i];
	return (attn_heads){out, width, linear_of->out};
}

/* Output in double of one sequence through a layer. */
static double *reference_layer(struct draw *draw, const struct made *made,
                               const attn_layer_sequence *sequence)
{
	const attn_layer *layer = &made->layer;
	const size_t queries = made->shape.queries, new_keys = made->shape.keys - made->shape.past;
	attn_sequence attend = sequence->attend;
	attend.query = project(draw, made, &layer->query, sequence->query, queries, layer->head_width);
	attend.key = project(draw, made, &layer->key, sequence->key, new_keys, layer->head_width);
	attend.value = project(draw, made, &layer->value, sequence->value, new_keys, layer->value_width);
	size_t rows = layer->heads * queries;
	double *joined = doubles(draw, rows * layer->value_width);
	double *output = doubles(draw, queries * layer->output.out);
	struct reference wanted = reference_attend(draw->arena, &made->shape, &made->options, &attend);
	for (size_t row = 0; row < rows; row++) {
		size_t to = row % queries * layer->heads + row / queries;
		memcpy(joined + to * layer->value_width, wanted.context + row * layer->value_width,
		       layer->value_width * sizeof(double));
	}
	reference_linear(&layer->output, joined, queries, output);
	return output;
}

static void check_layer(attn_kernels *kernels, struct draw *draw, size_t longest)
{
	enum { MOST = 4 };
	struct made made = draw_layer(draw, longest);
	attn_layer_sequence sequences[MOST];
	size_t count = draw_size(draw, 1, MOST);
	for (size_t s = 0; s < count; s++)
		sequences[s] = draw_layer_sequence(draw, &made);
	attn_shape shape;
	ck_assert(
	    attn_layer_shape(&made.layer, made.shape.queries, made.shape.keys, made.shape.past, &shape));
	ck_assert_mem_eq(&shape, &made.shape, sizeof(shape));
	run_options(kernels, &made.layer, (struct lengths){shape.queries, shape.keys, shape.past},
	            &made.options, sequences, count);
	for (size_t s = 0; s < count; s++) {
		const double *wanted = reference_layer(draw, &made, &sequences[s]);
		double largest = 1;
		for (size_t i = 0; i < made.shape.queries * made.layer.output.out; i++)
			largest = fabs(wanted[i]) > largest ? fabs(wanted[i]) : largest;
		for (size_t i = 0; i < made.shape.queries * made.layer.output.out; i++)
			if (!(fabs((double)sequences[s].output[i] - wanted[i]) <= 1e-5 * largest))
				ck_abort_msg("sequence %zu, number %zu is %.9g, should be %.9g", s, i,
				             (double)sequences[s].output[i], wanted[i]);
	}
}

static void check_layers(attn_kernels *kernels, uint64_t seed, size_t cases, size_t longest)
{
	struct draw draw = {.state = seed, .arena = attn_arena_new((size_t)64 << 20)};
	attn_arena_mark empty = attn_arena_here(draw.arena);
	for (size_t i = 0; i < cases; i++) {
		check_layer(kernels, &draw, longest);
		attn_arena_rewind(draw.arena, empty);
	}
	attn_arena_free(draw.arena);
}

static void layers_of_any_form_agree_with_the_definition(attn_kernels *kernels)
{
	check_layers(kernels, 3, 200, 20);
	check_layers(kernels, 4, 5, 600);
}
ON_EACH_SET(layers_of_any_form_agree_with_the_definition)

static void layers_agree_with_the_definition_without_stacking(attn_kernels *kernels)
{
	kernels->gemm_rows = NULL;
	check_layers(kernels, 5, 50, 20);
}
ON_EACH_SET(layers_agree_with_the_definition_without_stacking)

static void layers_agree_with_the_definition_under_any_row_tile(attn_kernels *kernels)
{
	kernels->row_tile = 12;
	check_layers(kernels, 6, 50, 20);
	kernels->small_product = 20000;
	check_layers(kernels, 7, 50, 20);
}
ON_EACH_SET(layers_agree_with_the_definition_under_any_row_tile)

/* ---- strides */

static void permuted_heads_equal_their_contiguous_copy(attn_kernels *kernels)
{
	enum { HEADS = 3, LENGTH = 21, WIDTH = 10 };
	struct draw draw = {.state = 9, .arena = attn_arena_new(0)};
	const attn_shape shape = {HEADS, HEADS, LENGTH, LENGTH, 0, WIDTH, WIDTH};
	const attn_options options = attn_options_default(WIDTH);
	float *rows = draw_floats(&draw, HEADS * LENGTH * WIDTH), heads[HEADS * LENGTH * WIDTH];
	for (size_t at = 0; at < HEADS * LENGTH; at++)
		memcpy(heads + (at % HEADS * LENGTH + at / HEADS) * WIDTH, rows + at * WIDTH,
		       WIDTH * sizeof(float));
	float context[2][HEADS * LENGTH * WIDTH];
	const attn_heads views[2] = {{rows, WIDTH, HEADS * WIDTH}, {heads, LENGTH * WIDTH, WIDTH}};
	attn_executor executor = attn_executor_serial(draw.arena);
	for (size_t i = 0; i < 2; i++) {
		attn_sequence sequence = {.query = views[i],
		                          .key = views[i],
		                          .value = views[i],
		                          .key_length = LENGTH,
		                          .context = context[i],
		                          .context_head_stride = LENGTH * WIDTH,
		                          .context_row_stride = WIDTH};
		ck_assert_int_eq(attn_attend(kernels, &executor, &shape, &options, &sequence, 1), ATTN_OK);
	}
	ck_assert_mem_eq(context[0], context[1], sizeof(context[0]));
	attn_arena_free(draw.arena);
}
ON_EACH_SET(permuted_heads_equal_their_contiguous_copy)

/* ---- arguments */

static size_t scratch_bytes(const attn_layer *layer, size_t queries, size_t keys, size_t count)
{
	const attn_options options = attn_options_default(layer->head_width);
	return attn_layer_scratch_bytes(layer, queries, keys, 0, &options, count);
}

START_TEST(parts_that_do_not_fit_each_other_are_refused)
{
	attn_shape shape;
	attn_layer layer = textbook();
	ck_assert(attn_layer_shape(&layer, 5, 6, 0, &shape));
	ck_assert(shape.heads == 1 && shape.queries == 5 && shape.keys == 6 && shape.value_width == 3);
	layer.heads = 2;
	ck_assert(!attn_layer_shape(&layer, 5, 6, 0, &shape));
	layer = textbook();
	layer.kv_heads = 0;
	ck_assert(!attn_layer_shape(&layer, 5, 6, 0, &shape));
	layer = textbook();
	layer.output.in = 4;
	ck_assert(!attn_layer_shape(&layer, 5, 6, 0, &shape));
	layer = textbook();
	layer.key.weight = NULL;
	layer.key.in = 4;
	ck_assert(!attn_layer_shape(&layer, 5, 6, 0, &shape));
	layer = textbook();
	layer.query.stride = 2;
	ck_assert(!attn_layer_shape(&layer, 5, 6, 0, &shape));
	ck_assert_uint_eq(scratch_bytes(&layer, 5, 6, 1), SIZE_MAX);
}
END_TEST

START_TEST(sizes_that_overflow_are_refused)
{
	attn_layer layer = textbook();
	ck_assert_uint_eq(scratch_bytes(&layer, (size_t)1 << 40, (size_t)1 << 40, 1 << 20), SIZE_MAX);
	ck_assert_uint_eq(scratch_bytes(&layer, 1, 1, SIZE_MAX / 2), SIZE_MAX);
	ck_assert_uint_lt(scratch_bytes(&layer, 4, 4, 1), 1 << 17);
}
END_TEST

static void a_layer_without_queries_or_keys_is_legal(attn_kernels *kernels)
{
	float output[6] = {1, 1, 1, 1, 1, 1};
	attn_layer layer = textbook();
	attn_layer_sequence sequence = {EMBEDDINGS, EMBEDDINGS, EMBEDDINGS, output, {.key_length = 0}};
	run_layer(kernels, &layer, 0, 4, &sequence, 1);
	ck_assert_float_eq(output[0], 1);
	run_layer(kernels, &layer, 2, 0, &sequence, 1);
	for (size_t i = 0; i < 6; i++)
		ck_assert_float_eq(output[i], 0);
}
ON_EACH_SET(a_layer_without_queries_or_keys_is_legal)

SUITE_MAIN("layer", EACH_SET(the_textbook_case_is_right_to_its_last_digit),
           EACH_SET(both_layouts_give_the_textbook), EACH_SET(a_conv1d_of_gpt2_multiplies_from_the_left),
           EACH_SET(layers_of_any_form_agree_with_the_definition),
           EACH_SET(layers_agree_with_the_definition_without_stacking),
           EACH_SET(layers_agree_with_the_definition_under_any_row_tile),
           EACH_SET(permuted_heads_equal_their_contiguous_copy), parts_that_do_not_fit_each_other_are_refused,
           sizes_that_overflow_are_refused, EACH_SET(a_layer_without_queries_or_keys_is_legal))
