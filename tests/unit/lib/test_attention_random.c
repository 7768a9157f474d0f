#include "attn.h"
#include "kernel_sets.h"
#include "random_attention.h"
#include "reference.h"

#include <math.h>

/* Raw tensors in [-1, 1]: the bounds that ATTENTION rule 9 sets. */
#define WEIGHT_LIMIT 2e-6
#define CONTEXT_LIMIT 4e-6
/* Scores and statistics, relative where they are over 1. */
#define SCORE_LIMIT 4e-6
#define ENTROPY_LIMIT 2e-5

/* One call on one sequence and what it should give. */
struct random_case {
	attn_shape shape;
	attn_options options;
	attn_sequence sequence;
	struct reference wanted;
};

/* libcheck writes to a file at every assertion that holds: too slow for one a number. */
static void close_to(const char *what, size_t at, double found, double wanted, double limit)
{
	if (found != wanted && !(fabs(found - wanted) <= limit))
		ck_abort_msg("%s %zu is %.9g, should be %.9g", what, at, found, wanted);
}

static void close_relative(const char *what, size_t at, double found, double wanted, double limit)
{
	close_to(what, at, found, wanted, limit * (1 + fabs(wanted)));
}

/* [H', Lq', keys] against the rows of [heads, queries, keys] that it shows. */
static void check_shown(const struct random_case *c, const char *what, const float *found,
                        const double *wanted, double limit)
{
	const size_t keys = c->shape.keys;
	for (size_t i = 0; found != NULL && i < shown_rows(&c->shape, &c->options) * keys; i++) {
		size_t row = shown_row(&c->shape, &c->options, i / keys);
		double value = wanted[row * keys + i % keys];
		if (isinf(value) && !isinf(found[i]))
			ck_abort_msg("%s %zu is %.9g, should be %g", what, i, (double)found[i], value);
		close_to(what, i, (double)found[i], value,
		         limit == WEIGHT_LIMIT || isinf(value) ? limit : limit * (1 + fabs(value)));
	}
}

static void check_stages(const struct random_case *c)
{
	const attn_sequence *sequence = &c->sequence;
	check_shown(c, "score", sequence->scores, c->wanted.scores, SCORE_LIMIT);
	check_shown(c, "capped score", sequence->capped, c->wanted.capped, SCORE_LIMIT);
	check_shown(c, "masked score", sequence->masked, c->wanted.masked, SCORE_LIMIT);
	check_shown(c, "weight", sequence->weights, c->wanted.weights, WEIGHT_LIMIT);
}

static void check_mean(const struct random_case *c)
{
	const attn_shape *shape = &c->shape;
	const float *found = c->sequence.mean_weights;
	for (size_t at = 0; found != NULL && at < shape->queries * shape->keys; at++) {
		double mean = 0;
		for (size_t h = 0; h < shape->heads; h++)
			mean +=
			    c->wanted.weights[h * shape->queries * shape->keys + at] / (double)shape->heads;
		close_to("mean weight", at, (double)found[at], mean, WEIGHT_LIMIT);
	}
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x < y) - (x > y);
}

/* The largest of one row: sorted values, and indices that have them, no index twice. */
static void check_top_row(const struct random_case *c, size_t slot, double *sorted)
{
	const size_t keys = c->shape.keys, count = shown_top(&c->options);
	const double *weights = c->wanted.weights + shown_row(&c->shape, &c->options, slot) * keys;
	const int64_t *indices =
	    c->sequence.top_indices == NULL ? NULL : c->sequence.top_indices + slot * count;
	const float *values = c->sequence.top_values == NULL ? NULL : c->sequence.top_values + slot * count;
	for (size_t j = 0; j < keys; j++)
		sorted[j] = weights[j];
	qsort(sorted, keys, sizeof(*sorted), by_size);
	for (size_t i = 0; i < count; i++) {
		if (values != NULL)
			close_to("top value", i, (double)values[i], sorted[i], WEIGHT_LIMIT);
		if (indices == NULL)
			continue;
		ck_assert(indices[i] >= 0 && (size_t)indices[i] < keys);
		close_to("weight of a top index", i, weights[indices[i]], sorted[i], WEIGHT_LIMIT);
		for (size_t before = 0; before < i; before++)
			if (indices[before] == indices[i])
				ck_abort_msg("index %lld twice", (long long)indices[i]);
		if (i > 0 && values != NULL && values[i] == values[i - 1])
			ck_assert_int_gt(indices[i], indices[i - 1]);
	}
}

static void check_top(const struct random_case *c, attn_arena *arena)
{
	double *sorted = attn_arena_alloc(arena, (c->shape.keys + 1) * sizeof(double));
	ck_assert_ptr_nonnull(sorted);
	if (c->sequence.top_indices == NULL && c->sequence.top_values == NULL)
		return;
	for (size_t slot = 0; slot < shown_rows(&c->shape, &c->options); slot++)
		check_top_row(c, slot, sorted);
}

static void check_statistics(const struct random_case *c)
{
	const attn_sequence *sequence = &c->sequence;
	for (size_t row = 0; row < c->shape.heads * c->shape.queries; row++) {
		if (sequence->entropy != NULL)
			close_to("entropy", row, (double)sequence->entropy[row], c->wanted.entropy[row],
			         ENTROPY_LIMIT);
		if (sequence->logsumexp != NULL)
			close_relative("logsumexp", row, (double)sequence->logsumexp[row],
			               c->wanted.logsumexp[row], SCORE_LIMIT);
		if (sequence->maximum != NULL)
			close_relative("maximum", row, (double)sequence->maximum[row], c->wanted.maximum[row],
			               SCORE_LIMIT);
	}
}

static void check_used(const struct random_case *c)
{
	const attn_shape *shape = &c->shape;
	const size_t rows = shape->heads * shape->queries, kv_rows = shape->kv_heads * shape->keys;
	const struct {
		const char *what;
		const float *found;
		const double *wanted;
		size_t count;
	} all[] = {{"used query", c->sequence.used_query, c->wanted.query, rows * shape->head_width},
	           {"used key", c->sequence.used_key, c->wanted.key, kv_rows * shape->head_width},
	           {"used value", c->sequence.used_value, c->wanted.value, kv_rows * shape->value_width}};
	for (size_t a = 0; a < sizeof(all) / sizeof(all[0]); a++)
		for (size_t i = 0; all[a].found != NULL && i < all[a].count; i++)
			close_to(all[a].what, i, (double)all[a].found[i], all[a].wanted[i], 1.2e-7);
}

static double context_at(const struct random_case *c, size_t row, size_t d)
{
	const size_t h = row / c->shape.queries, i = row % c->shape.queries;
	return (double)
	    c->sequence.context[h * c->sequence.context_head_stride + i * c->sequence.context_row_stride + d];
}

static void check_context(const struct random_case *c)
{
	const size_t width = c->shape.value_width;
	for (size_t at = 0; at < c->shape.heads * c->shape.queries * width; at++)
		close_to("context", at, context_at(c, at / width, at % width), c->wanted.context[at],
		         CONTEXT_LIMIT);
}

/* The weights that were returned times the values give the context that was returned; rows sum to 1, to 0
 * without a key, to less with a sink. */
static void check_consistent(const struct random_case *c)
{
	const attn_shape *shape = &c->shape;
	const size_t group = shape->heads / shape->kv_heads, keys = shape->keys;
	for (size_t slot = 0; c->sequence.weights != NULL && slot < shown_rows(shape, &c->options); slot++) {
		const float *weights = c->sequence.weights + slot * keys;
		const size_t row = shown_row(shape, &c->options, slot),
		             kv_head = row / shape->queries / group;
		double sum = 0;
		for (size_t j = 0; j < keys; j++)
			sum += (double)weights[j];
		if (!(sum == 0 || (c->options.sink != NULL && sum > 0 && sum < 1)))
			close_to("sum of row", row, sum, 1, 2e-6);
		for (size_t d = 0; d < shape->value_width; d++) {
			double context = 0;
			for (size_t j = 0; j < keys; j++)
				context += (double)weights[j] *
				           c->wanted.value[(kv_head * keys + j) * shape->value_width + d];
			close_to("weights times values", row, context_at(c, row, d), context, CONTEXT_LIMIT);
		}
	}
}

static void run_case(attn_kernels *kernels, struct draw *draw, size_t longest)
{
	attn_arena *scratch = attn_arena_new(0);
	attn_executor executor = attn_executor_serial(scratch);
	struct random_case c = {.shape = draw_shape(draw, longest)};
	c.options = draw_options(draw, &c.shape);
	c.sequence = draw_sequence(draw, &c.shape, &c.options);
	c.wanted = reference_attend(draw->arena, &c.shape, &c.options, &c.sequence);
	ck_assert_int_eq(attn_attend(kernels, &executor, &c.shape, &c.options, &c.sequence, 1), ATTN_OK);
	check_stages(&c);
	check_mean(&c);
	check_top(&c, draw->arena);
	check_statistics(&c);
	check_used(&c);
	check_context(&c);
	check_consistent(&c);
	ck_assert_uint_le(attn_arena_peak(scratch), attn_attend_scratch_bytes(&c.shape, &c.options, 1));
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
	run_cases(kernels, 1, 1200, 24);
}
ON_EACH_SET(any_combination_of_options_agrees_with_the_definition)

static void lengths_of_several_panels_agree_with_the_definition(attn_kernels *kernels)
{
	run_cases(kernels, 2, 6, 700);
}
ON_EACH_SET(lengths_of_several_panels_agree_with_the_definition)

SUITE_MAIN("attention_random", EACH_SET(any_combination_of_options_agrees_with_the_definition),
           EACH_SET(lengths_of_several_panels_agree_with_the_definition))
