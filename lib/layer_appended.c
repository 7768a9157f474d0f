#include "layer_appended.h"

#include <string.h>

#include "attention_panel.h"

/* Blocks of scratch for each sequence, rounded up to 64 bytes. */
#define BLOCKS ((size_t)4)
#define ALIGNMENT ((size_t)64)

bool attn_appended_valid(const attn_layer *layer, size_t past, const attn_options *options)
{
	if (layer->appended == 0)
		return true;
	return past == 0 && options->rotation == ATTN_ROTATE_NONE && options->slopes == NULL &&
	       options->relative == NULL && options->causal <= ATTN_CAUSAL_OFFSET &&
	       options->window_left >= -1 && options->window_right >= -1;
}

/* The heads of keys or values with [appended, heads * width] rows behind; data NULL: no memory. */
static attn_heads rows_append(const attn_heads *from, size_t heads, size_t rows, size_t width,
                              size_t appended, const float *behind, attn_arena *scratch)
{
	const size_t total = heads * width;
	float *out = attn_arena_floats(scratch, (rows + appended) * total);
	for (size_t r = 0; out != NULL && r < rows; r++)
		for (size_t h = 0; h < heads; h++)
			memcpy(out + r * total + h * width,
			       from->data + h * from->head_stride + r * from->row_stride,
			       width * sizeof(float));
	if (out != NULL)
		memcpy(out + rows * total, behind, appended * total * sizeof(float));
	return (attn_heads){out, width, total};
}

/* [queries, keys] of one head: 1 where a key may be attended. */
static void mask_write(const attn_shape *before, const attn_options *options, const attn_sequence *sequence,
                       size_t head, size_t appended, uint8_t *out)
{
	const attn_mask *mask = &sequence->mask;
	const size_t keys = before->keys + appended;
	for (size_t i = 0; i < before->queries; i++, out += keys) {
		const struct attn_span span = attn_query_span(before, options, sequence, i);
		memset(out, 0, before->keys);
		memset(out + before->keys, 1, appended);
		for (size_t j = span.lo; j < span.hi; j++)
			out[j] = mask->data == NULL ||
			         mask->data[head * mask->head_stride + i * mask->query_stride +
			                    j * mask->key_stride] != 0;
	}
}

/* The mask of a sequence, of one head where they share it; data NULL: no memory. */
static attn_mask mask_append(const attn_shape *before, const attn_options *options,
                             const attn_sequence *sequence, size_t appended, attn_arena *scratch)
{
	const bool shared = sequence->mask.data == NULL || sequence->mask.head_stride == 0;
	const size_t heads = shared ? 1 : before->heads, keys = before->keys + appended;
	uint8_t *out = attn_arena_alloc(scratch, heads * before->queries * keys);
	for (size_t h = 0; out != NULL && h < heads; h++)
		mask_write(before, options, sequence, h, appended, out + h * before->queries * keys);
	return (attn_mask){out, shared ? 0 : before->queries * keys, keys, 1};
}

/* A bias with zeros for the appended keys; data NULL: no memory. */
static attn_bias bias_append(const attn_shape *before, const attn_bias *bias, size_t appended,
                             attn_arena *scratch)
{
	const size_t heads = bias->head_stride == 0 ? 1 : before->heads, keys = before->keys + appended;
	float *out = attn_arena_floats(scratch, heads * before->queries * keys);
	for (size_t row = 0; out != NULL && row < heads * before->queries; row++) {
		const float *from = bias->data + row / before->queries * bias->head_stride +
		                    row % before->queries * bias->query_stride;
		for (size_t j = 0; j < keys; j++)
			out[row * keys + j] = j < before->keys ? from[j * bias->key_stride] : 0;
	}
	return (attn_bias){out, heads == 1 ? 0 : before->queries * keys, keys, 1};
}

static attn_status sequence_append(const attn_layer *layer, const attn_shape *before,
                                   const attn_options *options, attn_sequence *sequence, attn_arena *scratch)
{
	const size_t appended = layer->appended;
	if (sequence->key_length > before->keys + appended)
		return ATTN_INVALID;
	if (sequence->key_length > before->keys)
		sequence->key_length = before->keys;
	sequence->mask = mask_append(before, options, sequence, appended, scratch);
	if (sequence->bias.data != NULL) {
		sequence->bias = bias_append(before, &sequence->bias, appended, scratch);
		if (sequence->bias.data == NULL)
			return ATTN_MEMORY;
	}
	sequence->key = rows_append(&sequence->key, before->kv_heads, before->keys, before->head_width,
	                            appended, layer->appended_key, scratch);
	sequence->value = rows_append(&sequence->value, before->kv_heads, before->keys, before->value_width,
	                              appended, layer->appended_value, scratch);
	sequence->key_length = before->keys + appended;
	const bool complete = sequence->mask.data && sequence->key.data && sequence->value.data;
	return complete ? ATTN_OK : ATTN_MEMORY;
}

attn_status attn_appended_add(const attn_layer *layer, const attn_shape *shape, attn_options *options,
                              attn_sequence *sequences, size_t count, attn_arena *scratch)
{
	attn_shape before = *shape;
	before.keys -= layer->appended;
	attn_status status = ATTN_OK;
	for (size_t s = 0; s < count && status == ATTN_OK; s++)
		status = sequence_append(layer, &before, options, &sequences[s], scratch);
	options->causal = ATTN_CAUSAL_NONE;
	options->window_left = options->window_right = -1;
	return status;
}

size_t attn_appended_bytes(const attn_layer *layer, const attn_shape *shape, size_t count)
{
	if (layer->appended == 0)
		return 0;
	const size_t scores[] = {shape->heads, shape->queries, shape->keys, sizeof(float) + sizeof(uint8_t)};
	const size_t rows[] = {shape->keys, shape->kv_heads, shape->head_width, sizeof(float)};
	const size_t values[] = {shape->keys, shape->kv_heads, shape->value_width, sizeof(float)};
	size_t parts[3] = {0}, bytes = BLOCKS * ALIGNMENT;
	if (!attn_size_product(scores, 4, &parts[0]) || !attn_size_product(rows, 4, &parts[1]) ||
	    !attn_size_product(values, 4, &parts[2]))
		return SIZE_MAX;
	for (size_t i = 0; i < 3; i++)
		if (!attn_size_add(bytes, parts[i], &bytes))
			return SIZE_MAX;
	return attn_size_mul(bytes, count, &bytes) ? bytes : SIZE_MAX;
}
