#include "attn.h"
#include "kernel_sets.h"
#include "random_attention.h"
#include "reference.h"

#include <math.h>

/* Raw tensors in [-1, 1]: the bounds that ATTENTION rule 9 sets. */
#define WEIGHT_LIMIT 2e-6
#define CONTEXT_LIMIT 4e-6

/* libcheck writes to a file at every assertion that holds: too slow for one a number. */
static void close_to(const char *what, size_t at, double found, double wanted, double limit)
{
	if (!(fabs(found - wanted) <= limit))
		ck_abort_msg("%s %zu is %.9g, should be %.9g", what, at, found, wanted);
}

static void check_weights(const attn_shape *shape, const attn_sequence *sequence, const double *weights)
{
	size_t count = shape->heads * shape->queries * shape->keys;
	for (size_t i = 0; sequence->weights != NULL && i < count; i++)
		close_to("weight", i, (double)sequence->weights[i], weights[i], WEIGHT_LIMIT);
	for (size_t at = 0; sequence->mean_weights != NULL && at < shape->queries * shape->keys; at++) {
		double mean = 0;
		for (size_t h = 0; h < shape->heads; h++)
			mean += weights[h * shape->queries * shape->keys + at] / (double)shape->heads;
		close_to("mean weight", at, (double)sequence->mean_weights[at], mean, WEIGHT_LIMIT);
	}
}

static double context_at(const attn_sequence *sequence, size_t h, size_t i, size_t d)
{
	return (double)
	    sequence->context[h * sequence->context_head_stride + i * sequence->context_row_stride + d];
}

static void check_context(const attn_shape *shape, const attn_sequence *sequence, const double *context)
{
	for (size_t at = 0; at < shape->heads * shape->queries * shape->value_width; at++) {
		size_t d = at % shape->value_width, row = at / shape->value_width;
		double found = context_at(sequence, row / shape->queries, row % shape->queries, d);
		close_to("context", at, found, context[at], CONTEXT_LIMIT);
	}
}

/* The weights that were returned times the values give the context that was returned; rows sum to 1, to 0
 * without a key, to less with a sink. */
static void check_consistent(const attn_shape *shape, const attn_options *options,
                             const attn_sequence *sequence)
{
	const size_t group = shape->heads / shape->kv_heads;
	for (size_t row = 0; sequence->weights != NULL && row < shape->heads * shape->queries; row++) {
		const float *weights = sequence->weights + row * shape->keys;
		const size_t h = row / shape->queries;
		double sum = 0;
		for (size_t j = 0; j < shape->keys; j++)
			sum += (double)weights[j];
		if (!(sum == 0 || (options->sink != NULL && sum > 0 && sum < 1)))
			close_to("sum of row", row, sum, 1, 2e-6);
		for (size_t d = 0; d < shape->value_width; d++) {
			double context = 0;
			const float *value =
			    sequence->value.data + h / group * sequence->value.head_stride + d;
			for (size_t j = 0; j < shape->keys; j++)
				if (weights[j] != 0)
					context += (double)weights[j] *
					           (double)value[j * sequence->value.row_stride];
			close_to("weights times values", row,
			         context_at(sequence, h, row % shape->queries, d), context, CONTEXT_LIMIT);
		}
	}
}

static void run_case(attn_kernels *kernels, struct draw *draw, size_t longest)
{
	attn_arena *scratch = attn_arena_new(0);
	attn_executor executor = attn_executor_serial(scratch);
	attn_shape shape = draw_shape(draw, longest);
	attn_options options = draw_options(draw, &shape);
	attn_sequence sequence = draw_sequence(draw, &shape);
	size_t rows = shape.heads * shape.queries;
	double *weights = attn_arena_alloc(draw->arena, rows * shape.keys * sizeof(double));
	double *context = attn_arena_alloc(draw->arena, rows * shape.value_width * sizeof(double));
	ck_assert(weights != NULL && context != NULL);
	reference_attend(&shape, &options, &sequence, weights, context);
	ck_assert_int_eq(attn_attend(kernels, &executor, &shape, &options, &sequence, 1), ATTN_OK);
	check_weights(&shape, &sequence, weights);
	check_context(&shape, &sequence, context);
	check_consistent(&shape, &options, &sequence);
	ck_assert_uint_le(attn_arena_peak(scratch), attn_attend_tile_bytes(&shape));
	attn_arena_free(scratch);
}

static void run_cases(attn_kernels *kernels, uint64_t seed, size_t cases, size_t longest)
{
	struct draw draw = {.state = seed, .arena = attn_arena_new((size_t)256 << 20)};
	attn_arena_mark empty = attn_arena_here(draw.arena);
	for (size_t i = 0; i < cases; i++) {
		run_case(kernels, &draw, longest);
		attn_arena_rewind(draw.arena, empty);
	}
	attn_arena_free(draw.arena);
}

static void any_combination_of_options_agrees_with_the_definition(attn_kernels *kernels)
{
	run_cases(kernels, 1, 500, 24);
}
ON_EACH_SET(any_combination_of_options_agrees_with_the_definition)

static void lengths_of_several_panels_agree_with_the_definition(attn_kernels *kernels)
{
	run_cases(kernels, 2, 4, 700);
}
ON_EACH_SET(lengths_of_several_panels_agree_with_the_definition)

SUITE_MAIN("attention_random", EACH_SET(any_combination_of_options_agrees_with_the_definition),
           EACH_SET(lengths_of_several_panels_agree_with_the_definition))
