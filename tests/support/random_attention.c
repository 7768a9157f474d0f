#include "random_attention.h"

#include <math.h>
#include <stdlib.h>

uint64_t draw_bits(struct draw *draw)
{
	uint64_t z = draw->state += 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

size_t draw_size(struct draw *draw, size_t low, size_t high)
{
	return low + (size_t)(draw_bits(draw) % (high - low + 1));
}

bool draw_chance(struct draw *draw, unsigned percent)
{
	return draw_bits(draw) % 100 < percent;
}

static void *take(struct draw *draw, size_t bytes)
{
	void *block = attn_arena_alloc(draw->arena, bytes);
	if (block == NULL)
		abort();
	return block;
}

float *draw_floats(struct draw *draw, size_t count)
{
	float *out = take(draw, count * sizeof(float));
	for (size_t i = 0; i < count; i++)
		out[i] = (float)(draw_bits(draw) >> 40) * 0x1p-23f - 1.0f;
	return out;
}

attn_shape draw_shape(struct draw *draw, size_t longest)
{
	const size_t widest = draw_chance(draw, 10) ? 128 : 32;
	attn_shape shape = {
	    .kv_heads = draw_size(draw, 1, 3),
	    .queries = draw_size(draw, 1, longest),
	    .keys = draw_size(draw, draw_chance(draw, 5) ? 0 : 1, longest),
	    .head_width = draw_size(draw, 1, widest),
	    .value_width = draw_size(draw, 1, widest),
	};
	shape.heads = shape.kv_heads * draw_size(draw, 1, 3);
	if (draw_chance(draw, 30))
		shape.keys = shape.queries;
	return shape;
}

static int64_t draw_window(struct draw *draw, size_t keys)
{
	return draw_chance(draw, 40) ? (int64_t)draw_size(draw, 0, keys) : -1;
}

attn_options draw_options(struct draw *draw, const attn_shape *shape)
{
	attn_options options = attn_options_default(shape->head_width);
	options.scale *= 2.0f * (float)draw_size(draw, 1, 100) / 100.0f;
	if (draw_chance(draw, 25))
		options.softcap = (float)draw_size(draw, 1, 400) / 100.0f;
	if (draw_chance(draw, 60))
		options.causal = (attn_causal)draw_size(draw, ATTN_CAUSAL_NONE, ATTN_CAUSAL_OFFSET);
	if (draw_chance(draw, 30)) {
		options.window_left = draw_window(draw, shape->keys);
		options.window_right = draw_window(draw, shape->keys);
	}
	if (draw_chance(draw, 20))
		options.sink = draw_floats(draw, shape->heads);
	if (draw_chance(draw, 20))
		options.slopes = draw_floats(draw, shape->heads);
	return options;
}

/* [heads, rows, width], or the same seen through [rows, heads, width]. */
static attn_heads draw_heads(struct draw *draw, size_t heads, size_t rows, size_t width)
{
	const float *data = draw_floats(draw, heads * rows * width);
	if (draw_chance(draw, 50))
		return (attn_heads){data, rows * width, width};
	return (attn_heads){data, width, heads * width};
}

/* Strides of a [heads, queries, keys] operand, some dimensions repeated; returns its elements. */
static size_t draw_strides(struct draw *draw, const attn_shape *shape, size_t strides[3])
{
	const size_t dims[3] = {shape->heads, shape->queries, shape->keys};
	size_t elements = 1;
	for (size_t i = 3; i-- > 0;) {
		strides[i] = 0;
		if (draw_chance(draw, 25))
			continue;
		strides[i] = elements;
		elements *= dims[i];
	}
	return elements;
}

static attn_mask draw_mask(struct draw *draw, const attn_shape *shape)
{
	size_t strides[3];
	size_t elements = draw_strides(draw, shape, strides);
	unsigned percent = (unsigned)draw_size(draw, 0, 100);
	uint8_t *data = take(draw, elements);
	for (size_t i = 0; i < elements; i++)
		data[i] = draw_chance(draw, percent) ? (uint8_t)draw_size(draw, 1, 255) : 0;
	return (attn_mask){data, strides[0], strides[1], strides[2]};
}

static attn_bias draw_bias(struct draw *draw, const attn_shape *shape)
{
	size_t strides[3];
	size_t elements = draw_strides(draw, shape, strides);
	unsigned percent = draw_chance(draw, 50) ? 0 : (unsigned)draw_size(draw, 0, 100);
	float *data = draw_floats(draw, elements);
	for (size_t i = 0; i < elements; i++)
		data[i] = draw_chance(draw, percent) ? -INFINITY : data[i] * 3.0f;
	return (attn_bias){data, strides[0], strides[1], strides[2]};
}

attn_sequence draw_sequence(struct draw *draw, const attn_shape *shape)
{
	attn_sequence sequence = {
	    .query = draw_heads(draw, shape->heads, shape->queries, shape->head_width),
	    .key = draw_heads(draw, shape->kv_heads, shape->keys, shape->head_width),
	    .value = draw_heads(draw, shape->kv_heads, shape->keys, shape->value_width),
	    .key_length = draw_chance(draw, 30) ? draw_size(draw, 0, shape->keys) : shape->keys,
	    .causal_offset = (int64_t)draw_size(draw, 0, 2 * shape->keys) - (int64_t)shape->keys / 2,
	    .context = draw_floats(draw, shape->heads * shape->queries * shape->value_width),
	    .context_head_stride = shape->value_width,
	    .context_row_stride = shape->heads * shape->value_width,
	};
	if (draw_chance(draw, 30))
		sequence.mask = draw_mask(draw, shape);
	if (draw_chance(draw, 30))
		sequence.bias = draw_bias(draw, shape);
	if (draw_chance(draw, 70))
		sequence.weights = draw_floats(draw, shape->heads * shape->queries * shape->keys);
	if (draw_chance(draw, 30))
		sequence.mean_weights = draw_floats(draw, shape->queries * shape->keys);
	return sequence;
}
