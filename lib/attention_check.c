#include "attention_check.h"

#include <limits.h>
#include <math.h>

#define RELATIVE_REACH_MAX ((size_t)1 << 30)

static bool scalars_valid(const attn_options *options)
{
	return isfinite(options->scale) && options->softcap >= 0 && isfinite(options->softcap) &&
	       options->window_left >= -1 && options->window_right >= -1 &&
	       options->causal <= ATTN_CAUSAL_OFFSET &&
	       (options->relative == NULL || options->relative_reach <= RELATIVE_REACH_MAX);
}

static bool rotation_valid(const attn_shape *shape, const attn_options *options)
{
	if (options->rotation == ATTN_ROTATE_NONE)
		return true;
	return options->rotation <= ATTN_ROTATE_PAIRS && shape->head_width % 2 == 0 &&
	       isfinite(options->rope_theta) && options->rope_theta > 0;
}

static bool list_below(const size_t *list, size_t count, size_t limit)
{
	for (size_t i = 0; list != NULL && i < count; i++)
		if (list[i] >= limit)
			return false;
	return true;
}

static bool selection_valid(const attn_shape *shape, const attn_selection *selection)
{
	return selection == NULL || (list_below(selection->heads, selection->head_count, shape->heads) &&
	                             list_below(selection->queries, selection->query_count, shape->queries) &&
	                             selection->top_k <= shape->keys);
}

static bool shape_valid(const attn_shape *shape)
{
	return shape->heads > 0 && shape->kv_heads > 0 && shape->heads % shape->kv_heads == 0 &&
	       shape->head_width > 0 && shape->value_width > 0 && shape->past <= shape->keys;
}

/* Rows that overlap are not a matrix. */
static bool rows_apart(size_t rows, size_t stride, size_t width)
{
	return rows <= 1 || stride >= width;
}

static bool sequence_valid(const attn_shape *shape, const attn_sequence *sequence)
{
	const size_t new_keys = shape->keys - shape->past;
	return sequence->key_length <= shape->keys &&
	       rows_apart(shape->queries, sequence->query.row_stride, shape->head_width) &&
	       rows_apart(new_keys, sequence->key.row_stride, shape->head_width) &&
	       rows_apart(new_keys, sequence->value.row_stride, shape->value_width) &&
	       rows_apart(shape->past, sequence->past_key.row_stride, shape->head_width) &&
	       rows_apart(shape->past, sequence->past_value.row_stride, shape->value_width) &&
	       rows_apart(shape->queries, sequence->context_row_stride, shape->value_width);
}

/* BLAS counts in int. */
static bool sequence_counts(const attn_sequence *sequence)
{
	return sequence->query.row_stride <= INT_MAX && sequence->key.row_stride <= INT_MAX &&
	       sequence->value.row_stride <= INT_MAX && sequence->context_row_stride <= INT_MAX;
}

static bool shape_counts(const attn_shape *shape, const attn_options *options, size_t count)
{
	const size_t scores[] = {count, shape->heads, shape->queries, shape->keys, sizeof(float)};
	size_t product = 0;
	return shape->queries < INT_MAX - 64 && shape->keys < INT_MAX - 64 && shape->head_width <= INT_MAX &&
	       shape->value_width <= INT_MAX && attn_size_product(scores, 5, &product) &&
	       attn_attend_scratch_bytes(shape, options, count) != SIZE_MAX;
}

attn_status attn_call_check(const attn_shape *shape, const attn_options *options,
                            const attn_sequence *sequences, size_t count)
{
	if (!shape_valid(shape) || !scalars_valid(options) || !rotation_valid(shape, options) ||
	    !selection_valid(shape, options->selection))
		return ATTN_INVALID;
	if (!shape_counts(shape, options, count))
		return ATTN_OVERFLOW;
	for (size_t s = 0; s < count; s++) {
		if (!sequence_valid(shape, &sequences[s]))
			return ATTN_INVALID;
		if (!sequence_counts(&sequences[s]))
			return ATTN_OVERFLOW;
	}
	return ATTN_OK;
}
