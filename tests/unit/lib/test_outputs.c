#include "attn.h"
#include "kernel_sets.h"
#include "random_attention.h"
#include "small_attention.h"

#include <math.h>
#include <string.h>

#define INF INFINITY

/* Scores as products of a column of queries and one of keys. */
static struct small small_products(size_t queries, const float *query, size_t keys, const float *key)
{
	struct small small = small_flat(queries, keys, SMALL_COLUMN);
	memcpy(small.query, query, queries * sizeof(float));
	memcpy(small.key, key, keys * sizeof(float));
	return small;
}

/* ---- stages */

static void scores_and_capped_show_excluded_keys_and_masked_does_not(attn_kernels *kernels)
{
	float scores[6], capped[6], masked[6];
	struct small small = small_products(2, (const float[]){1, 2}, 3, (const float[]){1, 2, 4});
	small.options.softcap = 2;
	small.options.causal = ATTN_CAUSAL_TOP_LEFT;
	small.options.window_left = 0;
	small.sequence.bias = small_bias((const float[]){1, 1, 1}, 0);
	small.sequence.scores = scores;
	small.sequence.capped = capped;
	small.sequence.masked = masked;
	small_run(kernels, &small);
	SMALL_SAME(scores, 1, 2, 4, 2, 4, 8);
	SMALL_SAME(capped, .924234f, 1.523188f, 1.928055f, 1.523188f, 1.928055f, 1.998659f);
	SMALL_SAME(masked, 1.924234f, -INF, -INF, -INF, 2.928055f, -INF);
	SMALL_SAME(small.weights, 1, 0, 0, 0, 1, 0);
}
ON_EACH_SET(scores_and_capped_show_excluded_keys_and_masked_does_not)

static void capped_equals_scores_without_a_softcap(attn_kernels *kernels)
{
	float scores[6], capped[6];
	struct small small = small_products(2, (const float[]){1, 2}, 3, (const float[]){1, 2, 4});
	small.sequence.mask = small_mask((const uint8_t[]){0, 0, 1}, 0);
	small.sequence.capped = capped;
	small_run(kernels, &small);
	SMALL_SAME(capped, 1, 2, 4, 2, 4, 8);
	small.sequence.scores = scores;
	small_run(kernels, &small);
	ck_assert_mem_eq(scores, capped, sizeof(scores));
}
ON_EACH_SET(capped_equals_scores_without_a_softcap)

static void masked_excludes_by_every_mask(attn_kernels *kernels)
{
	float masked[6];
	struct small small = small_products(1, (const float[]){1}, 6, (const float[]){1, 2, 3, 4, 5, 6});
	small.options.causal = ATTN_CAUSAL_OFFSET;
	small.options.window_left = 4;
	small.sequence.causal_offset = 5;
	small.sequence.key_length = 5;
	small.sequence.mask = small_mask((const uint8_t[]){1, 1, 0, 1, 1, 1}, 6);
	small.sequence.bias = small_bias((const float[]){0, 0, 0, -INF, .5f, 0}, 6);
	small.sequence.masked = masked;
	small_run(kernels, &small);
	SMALL_SAME(masked, -INF, 2, -INF, -INF, 5.5f, -INF);
}
ON_EACH_SET(masked_excludes_by_every_mask)

static void stages_of_rows_without_keys_are_there(attn_kernels *kernels)
{
	float scores[2], masked[2];
	struct small small = small_products(1, (const float[]){3}, 2, (const float[]){1, 2});
	small.sequence.key_length = 0;
	small.sequence.scores = scores;
	small.sequence.masked = masked;
	small_run(kernels, &small);
	SMALL_SAME(scores, 3, 6);
	SMALL_SAME(masked, -INF, -INF);
	SMALL_SAME(small.weights, 0, 0);
}
ON_EACH_SET(stages_of_rows_without_keys_are_there)

/* ---- the largest weights */

static struct small small_top(const float *scores, size_t keys, attn_selection *selection, int64_t *indices,
                              float *values)
{
	struct small small = small_scores(scores, keys, SMALL_COLUMN);
	small.options.selection = selection;
	small.sequence.top_indices = indices;
	small.sequence.top_values = values;
	return small;
}

#define INDICES(found, ...)                                                                                  \
	ck_assert_mem_eq((found), ((const int64_t[]){__VA_ARGS__}), sizeof((const int64_t[]){__VA_ARGS__}))

static void top_weights_come_largest_first_and_ties_by_index(attn_kernels *kernels)
{
	int64_t indices[6];
	float values[6];
	attn_selection selection = {.top_k = 4};
	static const float SCORES[] = {0, .6931472f, 0, 1.0986123f, .6931472f, 0};
	struct small small = small_top(SCORES, 6, &selection, indices, values);
	small_run(kernels, &small);
	INDICES(indices, 3, 1, 4, 0);
	SMALL_SAME(values, .3f, .2f, .2f, .1f);
	selection.top_k = 6;
	small_run(kernels, &small);
	INDICES(indices, 3, 1, 4, 0, 2, 5);
	selection.top_k = 1;
	small.sequence.top_values = NULL; /* either alone will do */
	small_run(kernels, &small);
	INDICES(indices, 3);
}
ON_EACH_SET(top_weights_come_largest_first_and_ties_by_index)

static void excluded_keys_count_as_zero_among_the_top(attn_kernels *kernels)
{
	int64_t indices[4];
	float values[4];
	attn_selection selection = {.top_k = 4};
	static const float SCORES[] = {-INF, -200, 0, -INF}; /* exp(-200) is 0 too */
	struct small small = small_top(SCORES, 4, &selection, indices, values);
	small_run(kernels, &small);
	INDICES(indices, 2, 0, 1, 3);
	SMALL_SAME(values, 1, 0, 0, 0);
	small.sequence.key_length = 0;
	small_run(kernels, &small);
	INDICES(indices, 0, 1, 2, 3);
	SMALL_SAME(values, 0, 0, 0, 0);
}
ON_EACH_SET(excluded_keys_count_as_zero_among_the_top)

static void rule_11_nan_weights_come_before_any_number_among_the_top(attn_kernels *kernels)
{
	int64_t indices[3];
	float values[3];
	attn_selection selection = {.top_k = 3};
	static const float SCORES[] = {-INF, 0, NAN};
	struct small small = small_top(SCORES, 3, &selection, indices, values);
	small_run(kernels, &small);
	INDICES(indices, 1, 2, 0);
	small_close(values, (const float[]){NAN, NAN, 0}, 3, 0);
}
ON_EACH_SET(rule_11_nan_weights_come_before_any_number_among_the_top)

/* ---- statistics */

struct statistics {
	float entropy[4], logsumexp[4], maximum[4];
};

static void small_statistics(attn_kernels *kernels, struct small *small, struct statistics *out)
{
	small->sequence.entropy = out->entropy;
	small->sequence.logsumexp = out->logsumexp;
	small->sequence.maximum = out->maximum;
	small_run(kernels, small);
}

static void statistics_are_of_the_weights_and_the_masked_scores(attn_kernels *kernels)
{
	struct statistics found;
	struct small small = small_flat(2, 4, SMALL_COLUMN);
	small.sequence.mask = small_mask((const uint8_t[]){1, 1, 1, 1, 0, 0, 1, 0}, 4);
	small.sequence.bias = small_bias((const float[]){1, 1, 1, 1}, 0);
	small_statistics(kernels, &small, &found);
	SMALL_SAME(found.entropy, 1.386294f, 0);
	SMALL_SAME(found.logsumexp, 2.386294f, 1);
	SMALL_SAME(found.maximum, 1, 1);
	small = small_scores((const float[]){0, 1.0986123f}, 2, SMALL_COLUMN);
	small_statistics(kernels, &small, &found);
	SMALL_SAME(found.entropy, .562335f);
	SMALL_SAME(found.logsumexp, 1.386294f);
}
ON_EACH_SET(statistics_are_of_the_weights_and_the_masked_scores)

static void zero_log_zero_is_zero_in_the_entropy(attn_kernels *kernels)
{
	struct statistics found;
	struct small small = small_scores((const float[]){0, -1000, -INF}, 3, SMALL_COLUMN);
	small_statistics(kernels, &small, &found);
	ck_assert_float_eq(found.entropy[0], 0);
}
ON_EACH_SET(zero_log_zero_is_zero_in_the_entropy)

static void a_sink_is_in_the_logsumexp_and_not_in_the_maximum(attn_kernels *kernels)
{
	struct statistics found;
	struct small small = small_scores((const float[]){0, 0}, 2, SMALL_COLUMN);
	small.options.sink = (const float[]){2};
	small_statistics(kernels, &small, &found);
	SMALL_SAME(found.logsumexp, 2.239545f); /* ln(2 + e^2) */
	SMALL_SAME(found.maximum, 0);
	SMALL_SAME(found.entropy, .477054f); /* two weights of 1 / (2 + e^2) */
}
ON_EACH_SET(a_sink_is_in_the_logsumexp_and_not_in_the_maximum)

static void a_row_with_no_key_has_no_entropy_and_minus_infinity_else(attn_kernels *kernels)
{
	struct statistics found;
	struct small small = small_flat(2, 2, SMALL_COLUMN);
	small.sequence.mask = small_mask((const uint8_t[]){0, 0, 1, 1}, 2);
	small_statistics(kernels, &small, &found);
	SMALL_SAME(found.entropy, 0, .693147f);
	SMALL_SAME(found.logsumexp, -INF, .693147f);
	SMALL_SAME(found.maximum, -INF, 0);
	small.options.sink = (const float[]){3};
	small.sequence.key_length = 0;
	small_statistics(kernels, &small, &found);
	SMALL_SAME(found.logsumexp, -INF, -INF);
	SMALL_SAME(found.maximum, -INF, -INF);
}
ON_EACH_SET(a_row_with_no_key_has_no_entropy_and_minus_infinity_else)

static void rule_11_nan_shows_in_every_statistic(attn_kernels *kernels)
{
	static const float ROWS[][2] = {{0, NAN}, {-INF, NAN}, {INF, NAN}};
	struct statistics found;
	for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++) {
		struct small small = small_scores(ROWS[i], 2, SMALL_COLUMN);
		small_statistics(kernels, &small, &found);
		ck_assert(isnan(found.entropy[0]) && isnan(found.logsumexp[0]) && isnan(found.maximum[0]));
	}
}
ON_EACH_SET(rule_11_nan_shows_in_every_statistic)

static void infinite_scores_keep_their_maximum(attn_kernels *kernels)
{
	struct statistics found;
	struct small small = small_scores((const float[]){0, INF}, 2, SMALL_COLUMN);
	small_statistics(kernels, &small, &found);
	ck_assert(isnan(small.weights[0]) && isnan(found.entropy[0]));
	SMALL_SAME(found.logsumexp, INF);
	SMALL_SAME(found.maximum, INF);
	small =
	    small_products(1, (const float[]){-INF}, 2, (const float[]){1, 1}); /* allowed, unlike a mask */
	small_statistics(kernels, &small, &found);
	ck_assert(isnan(small.weights[0]) && isnan(found.entropy[0]));
	SMALL_SAME(found.logsumexp, -INF);
	SMALL_SAME(found.maximum, -INF);
}
ON_EACH_SET(infinite_scores_keep_their_maximum)

/* ---- selections */

static void a_selection_shows_rows_in_its_order_and_as_often_as_it_says(attn_kernels *kernels)
{
	enum { SHOWN = 3 * 4, KEYS = 3 };
	static const size_t HEADS[] = {1, 0, 1}, QUERIES[] = {2, 0, 0, 3};
	const attn_selection selection = {HEADS, 3, QUERIES, 4, 1};
	float all[4][2 * 4 * KEYS], some[4][SHOWN * KEYS], value[SHOWN];
	struct small small = small_make(2, 1, 4, KEYS, 5, 2), selected;
	small_fill(&small);
	small.options.softcap = 1;
	small.sequence.mask = small_mask((const uint8_t[]){1, 0, 1, 1, 1, 1, 0, 0, 1, 1, 1, 0}, KEYS);
	selected = small;
	selected.options.selection = &selection;
	struct small *calls[] = {&small, &selected};
	for (size_t i = 0; i < 2; i++) {
		small_point(calls[i]);
		calls[i]->sequence.weights = i == 0 ? all[0] : some[0];
		calls[i]->sequence.scores = i == 0 ? all[1] : some[1];
		calls[i]->sequence.capped = i == 0 ? all[2] : some[2];
		calls[i]->sequence.masked = i == 0 ? all[3] : some[3];
		calls[i]->sequence.top_values = i == 0 ? NULL : value;
		ck_assert_int_eq(small_attend(kernels, calls[i]), ATTN_OK);
	}
	for (size_t slot = 0; slot < SHOWN; slot++) {
		size_t row = HEADS[slot / 4] * 4 + QUERIES[slot % 4];
		for (size_t stage = 0; stage < 4; stage++)
			small_close(some[stage] + slot * KEYS, all[stage] + row * KEYS, KEYS, 1e-6);
		const float *w = all[0] + row * KEYS;
		ck_assert_float_eq(value[slot], fmaxf(w[0], fmaxf(w[1], w[2])));
	}
	ck_assert_mem_eq(small.context, selected.context, 2 * 4 * 2 * sizeof(float));
}
ON_EACH_SET(a_selection_shows_rows_in_its_order_and_as_often_as_it_says)

static void mean_and_statistics_are_not_narrowed(attn_kernels *kernels)
{
	static const size_t NONE[1] = {0};
	const attn_selection selection = {.heads = NONE, .queries = NONE};
	float mean[2][6], entropy[2][4];
	for (size_t i = 0; i < 2; i++) {
		struct small small = small_make(2, 2, 2, 3, 4, 1);
		small_fill(&small);
		small.options.selection = i == 0 ? NULL : &selection;
		small_point(&small);
		small.sequence.mean_weights = mean[i];
		small.sequence.entropy = entropy[i];
		ck_assert_int_eq(small_attend(kernels, &small), ATTN_OK);
		ck_assert(i == 0 || isnan(small.weights[0]));
	}
	ck_assert_mem_eq(mean[0], mean[1], sizeof(mean[0]));
	ck_assert_mem_eq(entropy[0], entropy[1], sizeof(entropy[0]));
}
ON_EACH_SET(mean_and_statistics_are_not_narrowed)

static void selections_out_of_range_are_refused(attn_kernels *kernels)
{
	static const size_t LIST[] = {0, 2};
	struct small small = small_make(2, 2, 2, 3, 1, 1);
	attn_selection selection = {.heads = LIST, .head_count = 2};
	small.options.selection = &selection;
	small_refused(kernels, small, ATTN_INVALID);
	selection = (attn_selection){.queries = LIST, .query_count = 2};
	small_refused(kernels, small, ATTN_INVALID);
	selection = (attn_selection){.top_k = 4};
	small_refused(kernels, small, ATTN_INVALID);
}
ON_EACH_SET(selections_out_of_range_are_refused)

/* ---- scratch */

static void scratch_keeps_its_bound_where_values_are_not_finite(attn_kernels *kernels)
{
	enum { KEYS = 3000 };
	int64_t index[1];
	const attn_selection selection = {.top_k = 1};
	struct small small = small_make(1, 1, 1, KEYS, 1, 1);
	small.value[KEYS - 1] = NAN;
	small.options.selection = &selection;
	small_point(&small);
	small.sequence.top_indices = index;
	attn_arena *scratch = attn_arena_new(0);
	attn_executor executor = attn_executor_serial(scratch);
	ck_assert_int_eq(attn_attend(kernels, &executor, &small.shape, &small.options, &small.sequence, 1),
	                 ATTN_OK);
	ck_assert(isnan(small.context[0]));
	ck_assert_uint_le(attn_arena_peak(scratch), attn_attend_tile_bytes(&small.shape));
	attn_arena_free(scratch);
}
ON_EACH_SET(scratch_keeps_its_bound_where_values_are_not_finite)

static void places_without_keys_take_no_time(attn_kernels *kernels)
{
	enum { PLACES = 1 << 20 };
	size_t *zeros = calloc(PLACES, sizeof(*zeros));
	float stages[2][1];
	int64_t indices[1];
	const attn_selection selection = {zeros, PLACES, zeros, PLACES, 0};
	struct small small = small_make(2, 2, 3, 0, 1, 1);
	small.options.selection = &selection;
	small_point(&small);
	small.sequence.scores = stages[0];
	small.sequence.masked = stages[1];
	small.sequence.top_indices = indices;
	ck_assert_ptr_nonnull(zeros);
	ck_assert_int_eq(small_attend(kernels, &small), ATTN_OK);
	SMALL_SAME(small.context, 0, 0, 0, 0, 0, 0);
	free(zeros);
}
ON_EACH_SET(places_without_keys_take_no_time)

/* Counts the tiles of a call and runs none. */
struct counting {
	attn_executor face; /* first, so that self can be cast back */
	size_t tiles;
};

static attn_status count_tiles(attn_executor *self, size_t tiles, attn_tile_fn *run, void *arg)
{
	(void)run;
	(void)arg;
	((struct counting *)self)->tiles = tiles;
	return ATTN_CANCELLED;
}

static void tiles_stay_short_when_a_selection_is_long(attn_kernels *kernels)
{
	enum { PLACES = 1000 * 1000, HEADS = 4, QUERIES = 9 };
	size_t *zeros = calloc(PLACES, sizeof(*zeros));
	attn_selection selection = {.heads = zeros, .head_count = PLACES, .queries = zeros};
	struct small small = small_make(HEADS, HEADS, QUERIES, 1, 1, 1);
	struct counting counting = {
	    .face = {.parallel_for = count_tiles, .scratch = attn_arena_new(0)},
	};
	small_point(&small);
	ck_assert_int_eq(
	    attn_attend(kernels, &counting.face, &small.shape, &small.options, &small.sequence, 1),
	    ATTN_CANCELLED);
	ck_assert_uint_eq(counting.tiles, 1);
	small.options.selection = &selection;
	ck_assert_int_eq(
	    attn_attend(kernels, &counting.face, &small.shape, &small.options, &small.sequence, 1),
	    ATTN_CANCELLED);
	ck_assert_uint_eq(counting.tiles, HEADS);
	attn_arena_free(counting.face.scratch);
	free(zeros);
}
ON_EACH_SET(tiles_stay_short_when_a_selection_is_long)

/* ---- rule 8 */

/* Asks for one output alone. */
static void ask(attn_sequence *sequence, size_t which, float *room, int64_t *indices)
{
	float **const outputs[] = {&sequence->weights,      &sequence->scores,     &sequence->capped,
	                           &sequence->masked,       &sequence->top_values, &sequence->entropy,
	                           &sequence->logsumexp,    &sequence->maximum,    &sequence->used_query,
	                           &sequence->mean_weights, &sequence->used_key,   &sequence->used_value};
	if (which < sizeof(outputs) / sizeof(outputs[0]))
		*outputs[which] = room;
	else
		sequence->top_indices = indices;
}

enum { OUTPUTS = 13 };

static void check_alone(attn_kernels *kernels, struct draw *draw, size_t longest)
{
	attn_arena *scratch = attn_arena_new(0);
	attn_executor executor = attn_executor_serial(scratch);
	attn_shape shape = draw_shape(draw, longest);
	attn_options options = draw_options(draw, &shape);
	attn_sequence sequence = draw_sequence(draw, &shape, &options);
	size_t most = (shape.heads + 2) * (shape.queries + 2) * (shape.keys + 1);
	size_t wide = (shape.heads * (shape.queries + shape.keys)) * (shape.head_width + shape.value_width);
	float *room = draw_floats(draw, most + wide);
	int64_t *indices = attn_arena_alloc(draw->arena, most * sizeof(int64_t));
	size_t count = shape.heads * shape.queries * shape.value_width;
	float *first = draw_floats(draw, count);
	ck_assert_ptr_nonnull(indices);
	ck_assert_int_eq(attn_attend(kernels, &executor, &shape, &options, &sequence, 1), ATTN_OK);
	memcpy(first, sequence.context, count * sizeof(float));
	for (size_t which = 0; which < OUTPUTS; which++) {
		attn_sequence alone = sequence;
		float *none[OUTPUTS] = {NULL};
		for (size_t i = 0; i < OUTPUTS; i++)
			ask(&alone, i, none[i], NULL);
		ask(&alone, which, room, indices);
		ck_assert_int_eq(attn_attend(kernels, &executor, &shape, &options, &alone, 1), ATTN_OK);
		if (memcmp(first, alone.context, count * sizeof(float)) != 0)
			ck_abort_msg("output %zu changes the context", which);
	}
	attn_arena_free(scratch);
}

static void rule_8_no_output_changes_a_bit_of_the_context(attn_kernels *kernels)
{
	struct draw draw = {.state = 21, .arena = attn_arena_new((size_t)64 << 20)};
	attn_arena_mark empty = attn_arena_here(draw.arena);
	for (size_t i = 0; i < 60; i++) {
		check_alone(kernels, &draw, i == 0 ? 300 : 20);
		attn_arena_rewind(draw.arena, empty);
	}
	attn_arena_free(draw.arena);
}
ON_EACH_SET(rule_8_no_output_changes_a_bit_of_the_context)

SUITE_MAIN("outputs", EACH_SET(scores_and_capped_show_excluded_keys_and_masked_does_not),
           EACH_SET(capped_equals_scores_without_a_softcap), EACH_SET(masked_excludes_by_every_mask),
           EACH_SET(stages_of_rows_without_keys_are_there),
           EACH_SET(top_weights_come_largest_first_and_ties_by_index),
           EACH_SET(excluded_keys_count_as_zero_among_the_top),
           EACH_SET(rule_11_nan_weights_come_before_any_number_among_the_top),
           EACH_SET(statistics_are_of_the_weights_and_the_masked_scores),
           EACH_SET(zero_log_zero_is_zero_in_the_entropy),
           EACH_SET(a_sink_is_in_the_logsumexp_and_not_in_the_maximum),
           EACH_SET(a_row_with_no_key_has_no_entropy_and_minus_infinity_else),
           EACH_SET(rule_11_nan_shows_in_every_statistic), EACH_SET(infinite_scores_keep_their_maximum),
           EACH_SET(a_selection_shows_rows_in_its_order_and_as_often_as_it_says),
           EACH_SET(mean_and_statistics_are_not_narrowed), EACH_SET(selections_out_of_range_are_refused),
           EACH_SET(scratch_keeps_its_bound_where_values_are_not_finite),
           EACH_SET(places_without_keys_take_no_time), EACH_SET(tiles_stay_short_when_a_selection_is_long),
           EACH_SET(rule_8_no_output_changes_a_bit_of_the_context))
