#include "attn.h"
#include "kernel_sets.h"
#include "small_attention.h"

#include <math.h>
#include <string.h>

enum { HEADS = 4, KV_HEADS = 2, LENGTH = 9, WIDTH = 6, VALUE_WIDTH = 5 };
enum { KEY_FLOATS = KV_HEADS * LENGTH * WIDTH, VALUE_FLOATS = KV_HEADS * LENGTH * VALUE_WIDTH };

static struct small small_cached(size_t queries, size_t past)
{
	struct small small = small_make(HEADS, KV_HEADS, queries, LENGTH, WIDTH, VALUE_WIDTH);
	small_fill(&small);
	small.shape.past = past;
	return small;
}

static void past_and_new_keys_are_as_one(attn_kernels *kernels)
{
	struct small whole = small_cached(3, 0);
	whole.options.causal = ATTN_CAUSAL_BOTTOM_RIGHT;
	whole.sequence.key_length = LENGTH - 1;
	small_run(kernels, &whole);
	for (size_t past = 1; past <= LENGTH; past++) {
		struct small split = whole;
		split.shape.past = past;
		small_run(kernels, &split);
		small_same(&whole, &split);
	}
}
ON_EACH_SET(past_and_new_keys_are_as_one)

static void rule_4_causal_counts_past_keys(attn_kernels *kernels)
{
	struct small small = small_flat(1, 3, SMALL_COLUMN);
	small.shape.past = 2;
	small.options.causal = ATTN_CAUSAL_BOTTOM_RIGHT;
	small_run(kernels, &small);
	SMALL_SAME(small.context, 30);
	small.options.causal = ATTN_CAUSAL_TOP_LEFT;
	small_run(kernels, &small);
	SMALL_SAME(small.context, 10);
	small.options.causal = ATTN_CAUSAL_OFFSET;
	small.sequence.causal_offset = 1;
	small_run(kernels, &small);
	SMALL_SAME(small.weights, .5f, .5f, 0);
}
ON_EACH_SET(rule_4_causal_counts_past_keys)

static void masks_and_lengths_count_past_keys(attn_kernels *kernels)
{
	struct small small = small_flat(1, 3, SMALL_COLUMN);
	small.shape.past = 2;
	small.sequence.mask = small_mask((const uint8_t[]){0, 1, 1}, 3);
	small_run(kernels, &small);
	SMALL_SAME(small.context, 40);
	small.sequence.key_length = 2;
	small_run(kernels, &small);
	SMALL_SAME(small.context, 20);
}
ON_EACH_SET(masks_and_lengths_count_past_keys)

/* Rows [from, to) of [kv_heads, LENGTH, width] against the same of another. */
static void same_rows(const float *a, const float *b, size_t from, size_t to, size_t width)
{
	for (size_t h = 0; h < KV_HEADS; h++)
		ck_assert_mem_eq(a + (h * LENGTH + from) * width, b + (h * LENGTH + from) * width,
		                 (to - from) * width * sizeof(float));
}

static void present_is_past_then_new(attn_kernels *kernels)
{
	float key[KEY_FLOATS], value[VALUE_FLOATS];
	for (size_t past = 0; past <= LENGTH; past++) {
		struct small small = small_cached(2, past);
		small.sequence.used_key = key;
		small.sequence.used_value = value;
		small_run(kernels, &small);
		ck_assert_mem_eq(key, small.key, sizeof(key));
		ck_assert_mem_eq(value, small.value, sizeof(value));
	}
}
ON_EACH_SET(present_is_past_then_new)

static void rule_12_present_keys_are_after_the_turn_and_past_ones_not_turned_again(attn_kernels *kernels)
{
	float whole[KEY_FLOATS], key[KEY_FLOATS], value[VALUE_FLOATS];
	struct small all = small_cached(2, 0), small = small_cached(2, 4);
	all.options.rotation = small.options.rotation = ATTN_ROTATE_HALVES;
	all.sequence.used_key = whole;
	small_run(kernels, &all);
	small.options.position_offset = 4;
	small.sequence.used_key = key;
	small.sequence.used_value = value;
	small_run(kernels, &small);
	same_rows(key, small.key, 0, 4, WIDTH);
	same_rows(key, whole, 4, LENGTH, WIDTH);
	ck_assert_mem_eq(value, small.value, sizeof(value));
}
ON_EACH_SET(rule_12_present_keys_are_after_the_turn_and_past_ones_not_turned_again)

/* Takes token `at` out of a call over all LENGTH, with what came before it as past. */
static void step(attn_kernels *kernels, const struct small *whole, size_t at, float *cached_key,
                 float *cached_value, float *context)
{
	struct small one = small_make(HEADS, KV_HEADS, 1, at + 1, WIDTH, VALUE_WIDTH);
	one.shape.past = at;
	one.options = whole->options;
	one.options.position_offset = (int64_t)at;
	one.sequence.key_length = at + 1;
	small_point(&one);
	one.sequence.query = (attn_heads){whole->query + at * WIDTH, LENGTH * WIDTH, WIDTH};
	one.sequence.key = (attn_heads){whole->key + at * WIDTH, LENGTH * WIDTH, WIDTH};
	one.sequence.value = (attn_heads){whole->value + at * VALUE_WIDTH, LENGTH * VALUE_WIDTH, VALUE_WIDTH};
	one.sequence.past_key = (attn_heads){cached_key, at * WIDTH, WIDTH};
	one.sequence.past_value = (attn_heads){cached_value, at * VALUE_WIDTH, VALUE_WIDTH};
	float key[KEY_FLOATS], value[VALUE_FLOATS];
	one.sequence.used_key = key;
	one.sequence.used_value = value;
	ck_assert_int_eq(small_attend(kernels, &one), ATTN_OK);
	memcpy(cached_key, key, sizeof(key));
	memcpy(cached_value, value, sizeof(value));
	memcpy(context, one.context, HEADS * VALUE_WIDTH * sizeof(float));
}

static void one_token_at_a_time_gives_what_all_at_once_give(attn_kernels *kernels)
{
	float key[KEY_FLOATS] = {0}, value[VALUE_FLOATS] = {0}, context[HEADS * VALUE_WIDTH];
	struct small whole = small_cached(LENGTH, 0);
	whole.options.causal = ATTN_CAUSAL_BOTTOM_RIGHT;
	whole.options.rotation = ATTN_ROTATE_PAIRS;
	small_run(kernels, &whole);
	for (size_t at = 0; at < LENGTH; at++) {
		step(kernels, &whole, at, key, value, context);
		for (size_t h = 0; h < HEADS; h++)
			small_close(context + h * VALUE_WIDTH,
			            whole.context + (h * LENGTH + at) * VALUE_WIDTH, VALUE_WIDTH, 1e-6);
	}
}
ON_EACH_SET(one_token_at_a_time_gives_what_all_at_once_give)

static void rule_8_keeping_present_changes_no_bit(attn_kernels *kernels)
{
	float query[HEADS * 3 * WIDTH], key[KEY_FLOATS], value[VALUE_FLOATS];
	for (int kind = 0; kind < 4; kind++) {
		struct small small = small_cached(3, kind % 2 == 0 ? 0 : 5);
		small.options.rotation = kind / 2 == 0 ? ATTN_ROTATE_NONE : ATTN_ROTATE_HALVES;
		struct small kept = small;
		kept.sequence.used_query = query;
		kept.sequence.used_key = key;
		kept.sequence.used_value = value;
		small_run(kernels, &small);
		small_run(kernels, &kept);
		small_same(&small, &kept);
	}
}
ON_EACH_SET(rule_8_keeping_present_changes_no_bit)

static void rule_2_excluded_past_keys_have_no_influence(attn_kernels *kernels)
{
	struct small small = small_cached(3, 4);
	small.sequence.mask = small_mask((const uint8_t[]){1, 0, 1, 1, 1, 1, 1, 1, 1}, 0);
	struct small odd = small;
	for (size_t h = 0; h < KV_HEADS; h++) {
		odd.key[(h * LENGTH + 1) * WIDTH] = NAN;
		odd.value[(h * LENGTH + 1) * VALUE_WIDTH] = INFINITY;
	}
	small_run(kernels, &small);
	small_run(kernels, &odd);
	small_same(&small, &odd);
}
ON_EACH_SET(rule_2_excluded_past_keys_have_no_influence)

static void present_is_written_where_there_are_no_queries(attn_kernels *kernels)
{
	float key[KEY_FLOATS], value[VALUE_FLOATS], x[LENGTH * 2], output[1];
	struct small small = small_cached(0, 4);
	small.sequence.used_key = key;
	small.sequence.used_value = value;
	small_run(kernels, &small);
	ck_assert_mem_eq(key, small.key, sizeof(key));
	ck_assert_mem_eq(value, small.value, sizeof(value));

	static const float TWICE[] = {2, 0, 0, 2};
	const attn_linear twice = {.weight = TWICE, .in = 2, .out = 2, .stride = 2};
	const attn_layer layer = {.query = twice,
	                          .key = twice,
	                          .value = twice,
	                          .output = twice,
	                          .heads = 1,
	                          .kv_heads = 1,
	                          .head_width = 2,
	                          .value_width = 2};
	const attn_options options = attn_options_default(2);
	attn_arena *scratch = attn_arena_new(0);
	attn_executor executor = attn_executor_serial(scratch);
	for (size_t i = 0; i < LENGTH * 2; i++)
		x[i] = (float)i;
	attn_layer_sequence sequence = {x, x, x, output, {.key_length = LENGTH, .used_key = key}};
	ck_assert_int_eq(attn_layer_run(kernels, &executor, &layer, 0, LENGTH, 0, &options, &sequence, 1),
	                 ATTN_OK);
	for (size_t i = 0; i < LENGTH * 2; i++)
		ck_assert_float_eq(key[i], 2 * x[i]);
	attn_arena_free(scratch);
}
ON_EACH_SET(present_is_written_where_there_are_no_queries)

/* Two sequences of one new token each: the scratch of projections is bounded by new rows. */
static void a_layer_projects_new_keys_only(attn_kernels *kernels)
{
	enum { PAST = 500, COUNT = 2 };
	static const float HALF[] = {.5f, 0, 0, .5f};
	const attn_linear half = {.weight = HALF, .in = 2, .out = 2, .stride = 2};
	const attn_layer layer = {.query = half,
	                          .key = half,
	                          .value = half,
	                          .output = half,
	                          .heads = 1,
	                          .kv_heads = 1,
	                          .head_width = 2,
	                          .value_width = 2};
	const attn_options options = attn_options_default(2);
	static float past[PAST * 2], key[COUNT][(PAST + 1) * 2];
	attn_arena *scratch = attn_arena_new(0);
	attn_executor executor = attn_executor_serial(scratch);
	attn_layer_sequence sequences[COUNT];
	float *x = malloc(COUNT * 2 * sizeof(float)), output[COUNT][2]; /* no byte beyond it may be read */
	ck_assert_ptr_nonnull(x);
	for (size_t s = 0; s < COUNT; s++) {
		x[2 * s] = x[2 * s + 1] = (float)(s + 1);
		sequences[s] = (attn_layer_sequence){
		    x + 2 * s, x + 2 * s, x + 2 * s, output[s], {.key_length = PAST + 1}};
		sequences[s].attend.past_key = sequences[s].attend.past_value = (attn_heads){past, 0, 2};
		sequences[s].attend.used_key = key[s];
	}
	ck_assert_int_eq(
	    attn_layer_run(kernels, &executor, &layer, 1, PAST + 1, PAST, &options, sequences, COUNT),
	    ATTN_OK);
	ck_assert_uint_le(attn_arena_peak(scratch),
	                  attn_layer_scratch_bytes(&layer, 1, PAST + 1, PAST, &options, COUNT));
	for (size_t s = 0; s < COUNT; s++) {
		ck_assert_float_eq(key[s][2 * PAST - 1], 0);
		ck_assert_float_eq(key[s][2 * PAST], .5f * (float)(s + 1));
	}
	free(x);
	attn_arena_free(scratch);
}
ON_EACH_SET(a_layer_projects_new_keys_only)

static void a_past_that_does_not_fit_is_refused(attn_kernels *kernels)
{
	struct small small = small_cached(2, LENGTH + 1);
	small_point(&small);
	ck_assert_int_eq(small_attend(kernels, &small), ATTN_INVALID);
	small = small_cached(2, 4);
	small_point(&small);
	small.sequence.past_value.row_stride = VALUE_WIDTH - 1;
	ck_assert_int_eq(small_attend(kernels, &small), ATTN_INVALID);
	ck_assert_uint_eq(attn_attend_scratch_bytes(&small.shape, &small.options, SIZE_MAX / 2), SIZE_MAX);
}
ON_EACH_SET(a_past_that_does_not_fit_is_refused)

SUITE_MAIN("past", EACH_SET(past_and_new_keys_are_as_one), EACH_SET(rule_4_causal_counts_past_keys),
           EACH_SET(masks_and_lengths_count_past_keys), EACH_SET(present_is_past_then_new),
           EACH_SET(rule_12_present_keys_are_after_the_turn_and_past_ones_not_turned_again),
           EACH_SET(one_token_at_a_time_gives_what_all_at_once_give),
           EACH_SET(rule_8_keeping_present_changes_no_bit),
           EACH_SET(rule_2_excluded_past_keys_have_no_influence),
           EACH_SET(present_is_written_where_there_are_no_queries), EACH_SET(a_layer_projects_new_keys_only),
           EACH_SET(a_past_that_does_not_fit_is_refused))
