#include "attn.h"
#include "kernel_sets.h"
#include "small_attention.h"

#include <math.h>
#include <string.h>

/* ---- rule 1 */

static void rule_1_true_means_may_attend(attn_kernels *kernels)
{
	struct small small = small_flat(1, 3, SMALL_COLUMN);
	small.sequence.mask = small_mask((const uint8_t[]){1, 0, 0}, 3);
	small_run(kernels, &small);
	SMALL_SAME(small.context, 10);
	SMALL_SAME(small.weights, 1, 0, 0);
}
ON_EACH_SET(rule_1_true_means_may_attend)

static void rule_1_any_byte_but_zero_is_true(attn_kernels *kernels)
{
	struct small small = small_flat(1, 3, SMALL_COLUMN);
	small.sequence.mask = small_mask((const uint8_t[]){255, 2, 0}, 3);
	small_run(kernels, &small);
	SMALL_SAME(small.context, 15);
}
ON_EACH_SET(rule_1_any_byte_but_zero_is_true)

static void rule_1_masks_combine_by_and(attn_kernels *kernels)
{
	struct small small = small_flat(2, 2, SMALL_COLUMN);
	small.options.causal = ATTN_CAUSAL_BOTTOM_RIGHT;
	small.sequence.mask = small_mask((const uint8_t[]){1, 1, 1, 1}, 2);
	small_run(kernels, &small);
	SMALL_SAME(small.weights, 1, 0, .5f, .5f);

	/* the window drops key 0, the mask key 1, the length key 4 and causal key 5 */
	small = small_flat(1, 6, (const float[]){1, 2, 4, 8, 16, 32});
	small.options.causal = ATTN_CAUSAL_OFFSET;
	small.sequence.causal_offset = 4;
	small.options.window_left = 3;
	small.sequence.key_length = 4;
	small.sequence.mask = small_mask((const uint8_t[]){1, 0, 1, 1, 1, 1}, 6);
	small_run(kernels, &small);
	SMALL_SAME(small.weights, 0, 0, .5f, .5f, 0, 0);
	SMALL_SAME(small.context, 6);
}
ON_EACH_SET(rule_1_masks_combine_by_and)

static void rule_1_mask_strides_broadcast(attn_kernels *kernels)
{
	struct small small = small_make(2, 2, 2, 3, 1, 1);
	memcpy(small.value, (const float[]){10, 20, 60, 1, 2, 4}, 6 * sizeof(float));
	small.sequence.mask =
	    (attn_mask){(const uint8_t[]){1, 0, 1, 0, 1, 1}, 3, 0, 1}; /* [heads, 1, keys] */
	small_run(kernels, &small);
	SMALL_SAME(small.context, 35, 35, 3, 3);
	small.sequence.mask = (attn_mask){(const uint8_t[]){1, 0}, 0, 1, 0}; /* [1, queries, 1] */
	small_run(kernels, &small);
	SMALL_SAME(small.context, 30, 0, 7.0f / 3, 0);
}
ON_EACH_SET(rule_1_mask_strides_broadcast)

/* ---- rule 2 */

static const float ODD[] = {NAN, INFINITY, -INFINITY};

/* Puts each of ODD into key and value number 3 of a call that excludes it. */
static void check_odd_key_excluded(attn_kernels *kernels, struct small *small)
{
	const attn_shape *shape = &small->shape;
	small_run(kernels, small);
	for (size_t i = 0; i < sizeof(ODD) / sizeof(ODD[0]); i++) {
		struct small odd = *small;
		for (size_t h = 0; h < shape->kv_heads; h++) {
			odd.key[(h * shape->keys + 3) * shape->head_width] = ODD[i];
			odd.value[(h * shape->keys + 3) * shape->value_width] = ODD[i];
		}
		small_run(kernels, &odd);
		small_same(small, &odd);
	}
}

static void rule_2_excluded_keys_and_values_change_no_bit(attn_kernels *kernels)
{
	static const uint8_t MASK[] = {1, 1, 1, 0, 1};
	static const float BIAS[] = {1, 0, 1, -INFINITY, 0};
	struct small small = small_make(2, 1, 3, 5, 4, 6);
	small_fill(&small);
	struct small masked = small, biased = small, padded = small, causal = small, window = small;
	masked.sequence.mask = small_mask(MASK, 0);
	check_odd_key_excluded(kernels, &masked);
	biased.sequence.bias = small_bias(BIAS, 0);
	check_odd_key_excluded(kernels, &biased);
	padded.sequence.key_length = 3;
	check_odd_key_excluded(kernels, &padded);
	causal.options.causal = ATTN_CAUSAL_TOP_LEFT;
	check_odd_key_excluded(kernels, &causal);
	window.options.window_right = 0;
	window.options.causal = ATTN_CAUSAL_TOP_LEFT;
	check_odd_key_excluded(kernels, &window);
}
ON_EACH_SET(rule_2_excluded_keys_and_values_change_no_bit)

static void rule_2_a_key_that_is_not_finite_touches_only_rows_that_may_see_it(attn_kernels *kernels)
{
	struct small small = small_flat(3, 3, (const float[]){10, 20, NAN});
	small.options.causal = ATTN_CAUSAL_TOP_LEFT;
	small_run(kernels, &small);
	SMALL_SAME(small.context, 10, 15);
	ck_assert(isnan(small.context[2]));
	SMALL_SAME(small.weights, 1, 0, 0, .5f, .5f, 0, 1.0f / 3, 1.0f / 3, 1.0f / 3);
}
ON_EACH_SET(rule_2_a_key_that_is_not_finite_touches_only_rows_that_may_see_it)

static void rule_2_a_bias_of_minus_infinity_excludes_as_a_mask_does(attn_kernels *kernels)
{
	struct small masked = small_make(2, 2, 3, 5, 4, 6);
	small_fill(&masked);
	struct small biased = masked;
	masked.sequence.mask = small_mask((const uint8_t[]){1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1}, 5);
	float bias[15];
	for (size_t i = 0; i < 15; i++)
		bias[i] = masked.sequence.mask.data[i] != 0 ? 0 : -INFINITY;
	biased.sequence.bias = small_bias(bias, 5);
	small_run(kernels, &masked);
	small_run(kernels, &biased);
	small_same(&masked, &biased);
}
ON_EACH_SET(rule_2_a_bias_of_minus_infinity_excludes_as_a_mask_does)

static void rule_2_a_large_finite_bias_is_a_bias(attn_kernels *kernels)
{
	struct small small = small_scores((const float[]){-1e9f, -1e9f}, 2, SMALL_COLUMN);
	small_run(kernels, &small);
	SMALL_SAME(small.weights, .5f, .5f);
	SMALL_SAME(small.context, 15);
}
ON_EACH_SET(rule_2_a_large_finite_bias_is_a_bias)

static void rule_2_padded_values_may_be_nan(attn_kernels *kernels)
{
	struct small small = small_flat(1, 3, (const float[]){10, 20, NAN});
	small.sequence.key_length = 2;
	small_run(kernels, &small);
	SMALL_SAME(small.context, 15);
	SMALL_SAME(small.weights, .5f, .5f, 0);
}
ON_EACH_SET(rule_2_padded_values_may_be_nan)

/* ---- rule 3 */

static void rule_3_a_row_with_no_allowed_key_has_zero_weights_and_context(attn_kernels *kernels)
{
	struct small small = small_make(1, 1, 2, 2, 2, 2);
	const float eye[] = {1, 0, 0, 1}, value[] = {1, 2, 3, 4};
	memcpy(small.query, eye, sizeof(eye));
	memcpy(small.key, eye, sizeof(eye));
	memcpy(small.value, value, sizeof(value));
	small.sequence.mask = small_mask((const uint8_t[]){0, 0, 1, 1}, 2);
	small_run(kernels, &small);
	SMALL_SAME(small.weights, 0, 0, .330238f, .669762f);
	SMALL_SAME(small.context, 0, 0, 2.339523f, 3.339523f);

	struct small without = small;
	small_point(&without);
	without.sequence.weights = NULL;
	ck_assert_int_eq(small_attend(kernels, &without), ATTN_OK);
	ck_assert_mem_eq(small.context, without.context, 4 * sizeof(float));
}
ON_EACH_SET(rule_3_a_row_with_no_allowed_key_has_zero_weights_and_context)

static void rule_3_holds_with_a_sink_and_values_that_are_not_finite(attn_kernels *kernels)
{
	struct small small = small_flat(2, 3, (const float[]){NAN, INFINITY, 1});
	small.options.sink = (const float[]){2};
	small.sequence.mask = small_mask((const uint8_t[]){0, 0, 0, 0, 0, 1}, 3);
	small_run(kernels, &small);
	SMALL_SAME(small.weights, 0, 0, 0, 0, 0, .119203f);
	SMALL_SAME(small.context, 0, .119203f);
	small.sequence.key_length = 0;
	small_run(kernels, &small);
	SMALL_SAME(small.weights, 0, 0, 0, 0, 0, 0);
	SMALL_SAME(small.context, 0, 0);
	small_run_mean(kernels, &small);
	SMALL_SAME(small.mean, 0, 0, 0, 0, 0, 0);
}
ON_EACH_SET(rule_3_holds_with_a_sink_and_values_that_are_not_finite)

/* ---- rules 4 and 5 */

static struct small small_causal(size_t queries, size_t keys, attn_causal causal, int64_t offset)
{
	struct small small = small_flat(queries, keys, SMALL_COLUMN);
	small.options.causal = causal;
	small.sequence.causal_offset = offset;
	return small;
}

static void rule_4_causal_aligns_bottom_right_or_top_left(attn_kernels *kernels)
{
	struct small small = small_causal(2, 3, ATTN_CAUSAL_BOTTOM_RIGHT, 0);
	small_run(kernels, &small);
	SMALL_SAME(small.context, 15, 30);
	small = small_causal(2, 3, ATTN_CAUSAL_TOP_LEFT, 0);
	small_run(kernels, &small);
	SMALL_SAME(small.context, 10, 15);
	small = small_causal(1, 3, ATTN_CAUSAL_BOTTOM_RIGHT, 0);
	small_run(kernels, &small);
	SMALL_SAME(small.context, 30);
	small = small_causal(1, 3, ATTN_CAUSAL_TOP_LEFT, 0);
	small_run(kernels, &small);
	SMALL_SAME(small.context, 10);
	small = small_causal(3, 2, ATTN_CAUSAL_BOTTOM_RIGHT, 0);
	small_run(kernels, &small);
	SMALL_SAME(small.context, 0, 10, 15);
}
ON_EACH_SET(rule_4_causal_aligns_bottom_right_or_top_left)

static void rule_4_an_offset_moves_the_diagonal_any_distance(attn_kernels *kernels)
{
	struct small small = small_causal(2, 3, ATTN_CAUSAL_OFFSET, 1);
	small_run(kernels, &small);
	SMALL_SAME(small.context, 15, 30);
	small = small_causal(2, 3, ATTN_CAUSAL_OFFSET, -1);
	small_run(kernels, &small);
	SMALL_SAME(small.context, 0, 10);
	small = small_causal(2, 3, ATTN_CAUSAL_OFFSET, INT64_MAX);
	small_run(kernels, &small);
	SMALL_SAME(small.context, 30, 30);
	small = small_causal(2, 3, ATTN_CAUSAL_OFFSET, INT64_MIN);
	small_run(kernels, &small);
	SMALL_SAME(small.context, 0, 0);
}
ON_EACH_SET(rule_4_an_offset_moves_the_diagonal_any_distance)

static void rule_4_bottom_right_aligns_to_keys_whatever_their_length(attn_kernels *kernels)
{
	struct small small = small_causal(2, 3, ATTN_CAUSAL_BOTTOM_RIGHT, 0);
	small.sequence.key_length = 1;
	small_run(kernels, &small);
	SMALL_SAME(small.weights, 1, 0, 0, 1, 0, 0);
}
ON_EACH_SET(rule_4_bottom_right_aligns_to_keys_whatever_their_length)

static void rule_5_a_window_counts_from_the_aligned_diagonal(attn_kernels *kernels)
{
	struct small small = small_flat(3, 3, SMALL_COLUMN);
	small.options.window_left = 1;
	small.options.window_right = 0;
	small_run(kernels, &small);
	SMALL_SAME(small.context, 10, 15, 40);
	small.options.window_left = -1;
	small.options.window_right = 1;
	small_run(kernels, &small);
	SMALL_SAME(small.context, 15, 30, 30);
	small = small_flat(2, 3, SMALL_COLUMN); /* bottom right when not causal: queries at 1 and 2 */
	small.options.window_left = 0;
	small.options.window_right = 0;
	small_run(kernels, &small);
	SMALL_SAME(small.context, 20, 60);
	small.options.causal = ATTN_CAUSAL_TOP_LEFT;
	small_run(kernels, &small);
	SMALL_SAME(small.context, 10, 20);
	small.options.window_left = INT64_MAX;
	small.options.window_right = INT64_MAX;
	small_run(kernels, &small);
	SMALL_SAME(small.context, 10, 15);
}
ON_EACH_SET(rule_5_a_window_counts_from_the_aligned_diagonal)

/* ---- rules 6 and 7 */

static void rule_6_query_heads_share_key_heads_in_groups(attn_kernels *kernels)
{
	struct small small = small_make(4, 2, 1, 1, 1, 1);
	small.value[0] = 10;
	small.value[1] = 20;
	small_run(kernels, &small);
	SMALL_SAME(small.context, 10, 10, 20, 20);
}
ON_EACH_SET(rule_6_query_heads_share_key_heads_in_groups)

static void rule_6_the_scale_is_of_one_head(attn_kernels *kernels)
{
	struct small small = small_make(4, 4, 1, 2, 4, 1);
	for (size_t h = 0; h < 4; h++) {
		small.query[h * 4] = 2;
		small.key[h * 8] = 2; /* dot products 4 and 0 */
	}
	small_run(kernels, &small);
	for (size_t h = 0; h < 4; h++)
		SMALL_SAME(small.weights + 2 * h, .880797f, .119203f);
}
ON_EACH_SET(rule_6_the_scale_is_of_one_head)

static struct small small_opposed(void)
{
	struct small small = small_make(2, 2, 1, 2, 1, 1);
	memcpy(small.value, (const float[]){10, 20, 10, 20}, 4 * sizeof(float));
	static const uint8_t MASK[] = {1, 0, 0, 1};
	small.sequence.mask = (attn_mask){MASK, 2, 2, 1};
	return small;
}

static void rule_7_weights_are_per_head_and_mean_only_when_asked(attn_kernels *kernels)
{
	struct small small = small_opposed();
	small_run(kernels, &small);
	SMALL_SAME(small.weights, 1, 0, 0, 1);
	ck_assert(isnan(small.mean[0]));
	small_run_mean(kernels, &small);
	SMALL_SAME(small.mean, .5f, .5f);
	SMALL_SAME(small.context, 10, 20);
	ck_assert(isnan(small.weights[0]));
}
ON_EACH_SET(rule_7_weights_are_per_head_and_mean_only_when_asked)

static void rule_7_padded_columns_are_there_as_zeros(attn_kernels *kernels)
{
	struct small small = small_flat(1, 6, SMALL_COLUMN);
	small.sequence.key_length = 1;
	small_run(kernels, &small);
	SMALL_SAME(small.weights, 1, 0, 0, 0, 0, 0);
	ck_assert(isnan(small.weights[6]));
	SMALL_SAME(small.context, 10);
}
ON_EACH_SET(rule_7_padded_columns_are_there_as_zeros)

/* ---- rule 8 */

static void rule_8_context_is_the_same_whatever_is_asked_for(attn_kernels *kernels)
{
	struct small small = small_make(4, 2, 9, 21, 8, 6);
	small_fill(&small);
	small.options.causal = ATTN_CAUSAL_BOTTOM_RIGHT;
	small_run(kernels, &small);
	struct small mean = small, none = small;
	small_run_mean(kernels, &mean);
	ck_assert_mem_eq(small.context, mean.context, 4 * 9 * 6 * sizeof(float));
	small_point(&none);
	none.sequence.weights = NULL;
	ck_assert_int_eq(small_attend(kernels, &none), ATTN_OK);
	ck_assert_mem_eq(small.context, none.context, 4 * 9 * 6 * sizeof(float));
}
ON_EACH_SET(rule_8_context_is_the_same_whatever_is_asked_for)

/* ---- rule 9 */

static void rule_9_softmax_subtracts_the_row_maximum(attn_kernels *kernels)
{
	struct small small = small_scores((const float[]){1000, 999}, 2, SMALL_COLUMN);
	small_run(kernels, &small);
	SMALL_SAME(small.weights, .731059f, .268941f);
	small = small_scores((const float[]){-1000, -1001}, 2, SMALL_COLUMN);
	small_run(kernels, &small);
	SMALL_SAME(small.weights, .731059f, .268941f);
}
ON_EACH_SET(rule_9_softmax_subtracts_the_row_maximum)

static void rule_9_large_inputs_do_not_overflow(attn_kernels *kernels)
{
	struct small small = small_make(1, 1, 1, 2, 128, 1);
	for (size_t i = 0; i < 256; i++)
		small.query[i] = small.key[i] = 256;
	small.value[0] = 1;
	small.value[1] = 3;
	small_run(kernels, &small); /* both scores are 741455.2 */
	SMALL_SAME(small.weights, .5f, .5f);
	SMALL_SAME(small.context, 2);
}
ON_EACH_SET(rule_9_large_inputs_do_not_overflow)

static void rule_9_long_rows_sum_to_one(attn_kernels *kernels)
{
	enum { KEYS = 65536 };
	struct small small = small_make(1, 1, 1, KEYS, 1, 1);
	float *tensors = calloc(4 * KEYS, sizeof(float));
	ck_assert_ptr_nonnull(tensors);
	for (size_t i = 0; i < 2 * KEYS; i++)
		tensors[i] = sinf((float)i);
	small_point(&small);
	small.query[0] = 1;
	small.sequence.key.data = tensors;
	small.sequence.value.data = tensors + KEYS;
	small.sequence.weights = tensors + 2 * (size_t)KEYS;
	ck_assert_int_eq(small_attend(kernels, &small), ATTN_OK);
	double sum = 0, context = 0;
	for (size_t j = 0; j < KEYS; j++) {
		sum += (double)small.sequence.weights[j];
		context += (double)small.sequence.weights[j] * (double)small.sequence.value.data[j];
	}
	ck_assert_double_le(fabs(sum - 1), 2e-6);
	ck_assert_double_le(fabs(context - (double)small.context[0]), 4e-6);
	free(tensors);
}
ON_EACH_SET(rule_9_long_rows_sum_to_one)

/* ---- rule 11 */

static void rule_11_nan_in_a_query_makes_that_row_nan(attn_kernels *kernels)
{
	struct small small = small_make(1, 1, 3, 2, 2, 2);
	small_fill(&small);
	small.query[2] = NAN;
	small_run(kernels, &small);
	for (size_t row = 0; row < 3; row++)
		for (size_t d = 0; d < 2; d++) {
			ck_assert_int_eq(isnan(small.context[row * 2 + d]) != 0, row == 1);
			ck_assert_int_eq(isnan(small.weights[row * 2 + d]) != 0, row == 1);
		}
}
ON_EACH_SET(rule_11_nan_in_a_query_makes_that_row_nan)

static void rule_11_nan_in_an_allowed_key_or_bias_makes_rows_nan(attn_kernels *kernels)
{
	struct small small = small_flat(1, 3, SMALL_COLUMN);
	small.key[1] = NAN;
	small_run(kernels, &small);
	ck_assert(isnan(small.context[0]) && isnan(small.weights[0]) && isnan(small.weights[1]));
	small.sequence.mask = small_mask((const uint8_t[]){0, 1, 0}, 3); /* the only key, and a NaN */
	small_run(kernels, &small);
	ck_assert(isnan(small.context[0]) && isnan(small.weights[1]));
	ck_assert(small.weights[0] == 0 && small.weights[2] == 0);
	small = small_scores((const float[]){0, NAN, -INFINITY}, 3, SMALL_COLUMN);
	small_run(kernels, &small);
	ck_assert(isnan(small.context[0]) && isnan(small.weights[0]) && small.weights[2] == 0);
	small_run_mean(kernels, &small);
	ck_assert(isnan(small.mean[0]) && small.mean[2] == 0);
}
ON_EACH_SET(rule_11_nan_in_an_allowed_key_or_bias_makes_rows_nan)

static void rule_11_nan_in_an_allowed_value_shows_even_under_no_weight(attn_kernels *kernels)
{
	struct small small = small_make(1, 1, 1, 2, 1, 2);
	memcpy(small.value, (const float[]){1, 2, 3, NAN}, 4 * sizeof(float));
	small.sequence.bias = small_bias((const float[]){0, -1000}, 2);
	small_run(kernels, &small);
	SMALL_SAME(small.weights, 1, 0);
	SMALL_SAME(small.context, 1);
	ck_assert(isnan(small.context[1]));
}
ON_EACH_SET(rule_11_nan_in_an_allowed_value_shows_even_under_no_weight)

static void rule_11_scale_zero_does_not_hide_nan(attn_kernels *kernels)
{
	struct small small = small_flat(2, 2, SMALL_COLUMN);
	small.options.scale = 0;
	small.query[0] = NAN;
	small_run(kernels, &small);
	ck_assert(isnan(small.context[0]));
	SMALL_SAME(small.context + 1, 15);
}
ON_EACH_SET(rule_11_scale_zero_does_not_hide_nan)

static void rule_11_scores_that_are_all_minus_infinity_are_not_a_masked_row(attn_kernels *kernels)
{
	struct small small = small_flat(1, 2, SMALL_COLUMN);
	small.query[0] = -INFINITY;
	small.key[0] = small.key[1] = 1;
	small_run(kernels, &small);
	ck_assert(isnan(small.context[0]) && isnan(small.weights[0]));
}
ON_EACH_SET(rule_11_scores_that_are_all_minus_infinity_are_not_a_masked_row)

static void values_near_the_largest_float_do_not_overflow_the_sum(attn_kernels *kernels)
{
	struct small small = small_flat(1, 4, (const float[]){3e38f, 3e38f, 3e38f, 3e38f});
	small_run(kernels, &small);
	ck_assert_float_eq(small.context[0], 3e38f);
}
ON_EACH_SET(values_near_the_largest_float_do_not_overflow_the_sum)

/* ---- rules 14 and 15 */

static void rule_14_repeated_calls_are_bit_equal(attn_kernels *kernels)
{
	struct small small = small_make(2, 2, 17, 33, 7, 5);
	small_fill(&small);
	small_run(kernels, &small);
	for (int i = 0; i < 5; i++) {
		struct small again = small;
		small_run(kernels, &again);
		small_same(&small, &again);
	}
}
ON_EACH_SET(rule_14_repeated_calls_are_bit_equal)

static void rule_15_one_key_weighs_exactly_one(attn_kernels *kernels)
{
	struct small small = small_make(2, 2, 3, 1, 5, 7);
	small_fill(&small);
	small_run(kernels, &small);
	for (size_t row = 0; row < 6; row++) {
		ck_assert_float_eq(small.weights[row], 1);
		ck_assert_mem_eq(small.context + 7 * row, small.value + row / 3 * 7, 7 * sizeof(float));
	}
}
ON_EACH_SET(rule_15_one_key_weighs_exactly_one)

static void rule_15_no_keys_give_zeros_and_no_queries_nothing(attn_kernels *kernels)
{
	struct small small = small_make(2, 1, 3, 0, 4, 2);
	small_run(kernels, &small);
	SMALL_SAME(small.context, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	ck_assert(isnan(small.weights[0]));
	small = small_make(2, 1, 0, 3, 4, 2);
	small_run(kernels, &small);
	ck_assert(isnan(small.context[0]) && isnan(small.weights[0]));
}
ON_EACH_SET(rule_15_no_keys_give_zeros_and_no_queries_nothing)

/* ---- the other options */

static void a_bias_is_added_to_the_scores(attn_kernels *kernels)
{
	struct small small = small_scores((const float[]){0, 1.0986123f}, 2, SMALL_COLUMN);
	small_run(kernels, &small);
	SMALL_SAME(small.weights, .25f, .75f);
}
ON_EACH_SET(a_bias_is_added_to_the_scores)

static void softcap_bends_scores_before_any_bias(attn_kernels *kernels)
{
	struct small small = small_flat(1, 2, SMALL_COLUMN);
	small.query[0] = 1;
	small.key[0] = 2;
	small.options.softcap = 2;
	small_run(kernels, &small);
	SMALL_SAME(small.weights, .821007f, .178993f);
	small.sequence.bias = small_bias((const float[]){0, 1.523188f}, 2); /* 2 tanh 1 */
	small_run(kernels, &small);
	SMALL_SAME(small.weights, .5f, .5f);
}
ON_EACH_SET(softcap_bends_scores_before_any_bias)

static void rule_13_the_scale_may_be_one_as_t5_has_it(attn_kernels *kernels)
{
	struct small small = small_make(1, 1, 1, 2, 64, 1);
	small.query[0] = 8;
	small.key[0] = 1;
	small.options.scale = 1;
	small_run(kernels, &small);
	SMALL_SAME(small.weights, .999665f, .000335f);
}
ON_EACH_SET(rule_13_the_scale_may_be_one_as_t5_has_it)

static void a_sink_takes_weight_and_has_no_value(attn_kernels *kernels)
{
	struct small small = small_make(2, 2, 1, 2, 1, 1);
	memcpy(small.value, (const float[]){10, 20, 10, 20}, 4 * sizeof(float));
	small.options.sink = (const float[]){0, 1000};
	small_run(kernels, &small);
	SMALL_SAME(small.weights, 1.0f / 3, 1.0f / 3, 0, 0);
	SMALL_SAME(small.context, 10, 0);
}
ON_EACH_SET(a_sink_takes_weight_and_has_no_value)

static void slopes_lower_scores_by_distance_from_the_diagonal(attn_kernels *kernels)
{
	struct small small = small_flat(2, 3, SMALL_COLUMN); /* queries at 1 and 2 */
	small.options.slopes = (const float[]){0.6931472f};  /* each step halves */
	small_run(kernels, &small);
	SMALL_SAME(small.weights, .25f, .5f, .25f, 1.0f / 7, 2.0f / 7, 4.0f / 7);
}
ON_EACH_SET(slopes_lower_scores_by_distance_from_the_diagonal)

static void relative_biases_add_by_distance_up_to_their_reach(attn_kernels *kernels)
{
	float masked[3 * 4];
	struct small small = small_make(1, 1, 3, 4, 2, 1); /* query 0 stands at key 1 */
	small.options.relative = (const float[]){10, 1, 20};
	small.options.relative_reach = 1;
	small.sequence.masked = masked;
	small_run(kernels, &small);
	SMALL_SAME(masked, 10, 1, 20, 20, 10, 10, 1, 20, 10, 10, 10, 1);
	small.options.relative_reach = ((size_t)1 << 30) + 1;
	small_refused(kernels, small, ATTN_INVALID);
}
ON_EACH_SET(relative_biases_add_by_distance_up_to_their_reach)

/* ---- arguments */

static void options_out_of_range_are_refused(attn_kernels *kernels)
{
	struct small small = small_make(4, 2, 2, 2, 2, 2), bad = small;
	bad.shape.kv_heads = 3;
	small_refused(kernels, bad, ATTN_INVALID);
	bad.shape.kv_heads = 0;
	small_refused(kernels, bad, ATTN_INVALID);
	bad = small;
	bad.shape.head_width = 0;
	small_refused(kernels, bad, ATTN_INVALID);
	bad = small;
	bad.options.softcap = -1;
	small_refused(kernels, bad, ATTN_INVALID);
	bad = small;
	bad.options.window_left = -2;
	small_refused(kernels, bad, ATTN_INVALID);
	bad = small;
	bad.options.window_right = INT64_MIN;
	small_refused(kernels, bad, ATTN_INVALID);
	bad = small;
	bad.options.scale = NAN;
	small_refused(kernels, bad, ATTN_INVALID);
	bad = small;
	bad.sequence.key_length = 3;
	small_refused(kernels, bad, ATTN_INVALID);
	bad = small;
	bad.shape.queries = bad.shape.keys = (size_t)1 << 40;
	small_refused(kernels, bad, ATTN_OVERFLOW);
}
ON_EACH_SET(options_out_of_range_are_refused)

static void an_empty_batch_is_legal(attn_kernels *kernels)
{
	struct small small = small_make(1, 1, 2, 2, 2, 2);
	ck_assert_int_eq(attn_attend(kernels, NULL, &small.shape, &small.options, NULL, 0), ATTN_OK);
}
ON_EACH_SET(an_empty_batch_is_legal)

SUITE_MAIN("attention", EACH_SET(rule_1_true_means_may_attend), EACH_SET(rule_1_any_byte_but_zero_is_true),
           EACH_SET(rule_1_masks_combine_by_and), EACH_SET(rule_1_mask_strides_broadcast),
           EACH_SET(rule_2_excluded_keys_and_values_change_no_bit),
           EACH_SET(rule_2_a_key_that_is_not_finite_touches_only_rows_that_may_see_it),
           EACH_SET(rule_2_a_bias_of_minus_infinity_excludes_as_a_mask_does),
           EACH_SET(rule_2_a_large_finite_bias_is_a_bias), EACH_SET(rule_2_padded_values_may_be_nan),
           EACH_SET(rule_3_a_row_with_no_allowed_key_has_zero_weights_and_context),
           EACH_SET(rule_3_holds_with_a_sink_and_values_that_are_not_finite),
           EACH_SET(rule_4_causal_aligns_bottom_right_or_top_left),
           EACH_SET(rule_4_an_offset_moves_the_diagonal_any_distance),
           EACH_SET(rule_4_bottom_right_aligns_to_keys_whatever_their_length),
           EACH_SET(rule_5_a_window_counts_from_the_aligned_diagonal),
           EACH_SET(rule_6_query_heads_share_key_heads_in_groups), EACH_SET(rule_6_the_scale_is_of_one_head),
           EACH_SET(rule_7_weights_are_per_head_and_mean_only_when_asked),
           EACH_SET(rule_7_padded_columns_are_there_as_zeros),
           EACH_SET(rule_8_context_is_the_same_whatever_is_asked_for),
           EACH_SET(rule_9_softmax_subtracts_the_row_maximum), EACH_SET(rule_9_large_inputs_do_not_overflow),
           EACH_SET(rule_9_long_rows_sum_to_one), EACH_SET(rule_11_nan_in_a_query_makes_that_row_nan),
           EACH_SET(rule_11_nan_in_an_allowed_key_or_bias_makes_rows_nan),
           EACH_SET(rule_11_nan_in_an_allowed_value_shows_even_under_no_weight),
           EACH_SET(rule_11_scale_zero_does_not_hide_nan),
           EACH_SET(rule_11_scores_that_are_all_minus_infinity_are_not_a_masked_row),
           EACH_SET(values_near_the_largest_float_do_not_overflow_the_sum),
           EACH_SET(rule_14_repeated_calls_are_bit_equal), EACH_SET(rule_15_one_key_weighs_exactly_one),
           EACH_SET(rule_15_no_keys_give_zeros_and_no_queries_nothing),
           EACH_SET(a_bias_is_added_to_the_scores), EACH_SET(softcap_bends_scores_before_any_bias),
           EACH_SET(rule_13_the_scale_may_be_one_as_t5_has_it),
           EACH_SET(a_sink_takes_weight_and_has_no_value),
           EACH_SET(slopes_lower_scores_by_distance_from_the_diagonal),
           EACH_SET(relative_biases_add_by_distance_up_to_their_reach),
           EACH_SET(options_out_of_range_are_refused), EACH_SET(an_empty_batch_is_legal))
