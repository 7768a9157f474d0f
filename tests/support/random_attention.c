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
	if (draw_chance(draw, 30))
		shape.past = draw_size(draw, 0, shape.keys);
	return shape;
}

static int64_t draw_window(struct draw *draw, size_t keys)
{
	return draw_chance(draw, 40) ? (int64_t)draw_size(draw, 0, keys) : -1;
}

/* Some numbers below limit, repeats and any order among them; NULL by chance. */
static const size_t *draw_list(struct draw *draw, size_t limit, size_t *count)
{
	*count = draw_size(draw, 0, limit + 2);
	if (draw_chance(draw, 40))
		return NULL;
	size_t *list = take(draw, *count * sizeof(size_t));
	for (size_t i = 0; i < *count; i++)
		list[i] = draw_size(draw, 0, limit - 1);
	return list;
}

static const attn_selection *draw_selection(struct draw *draw, const attn_shape *shape)
{
	attn_selection *selection = take(draw, sizeof(*selection));
	selection->heads = draw_list(draw, shape->heads, &selection->head_count);
	selection->queries = draw_list(draw, shape->queries, &selection->query_count);
	selection->top_k = draw_size(draw, 0, shape->keys);
	return selection;
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
	if (draw_chance(draw, 20)) {
		options.relative_reach = draw_size(draw, 0, shape->keys + 1);
		options.relative = draw_floats(draw, shape->heads * (2 * options.relative_reach + 1));
	}
	if (shape->head_width % 2 == 0 && draw_chance(draw, 50)) {
		options.rotation = draw_chance(draw, 50) ? ATTN_ROTATE_HALVES : ATTN_ROTATE_PAIRS;
		options.rope_theta = (double)draw_size(draw, 1, 20000);
	}
	options.position_offset = (int64_t)shape->past;
	if (draw_chance(draw, 30))
		options.position_offset = (int64_t)draw_size(draw, 0, 70000) - 2000;
	if (draw_chance(draw, 50))
		options.selection = draw_selection(draw, shape);
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

static float *maybe(struct draw *draw, unsigned percent, size_t count)
{
	return draw_chance(draw, percent) ? draw_floats(draw, count) : NULL;
}

void draw_outputs(struct draw *draw, const attn_shape *shape, const attn_options *options,
                  attn_sequence *sequence)
{
	const size_t rows = shape->heads * shape->queries, key_rows = shape->kv_heads * shape->keys;
	const size_t shown = shown_rows(shape, options), top = shown * shown_top(options);
	sequence->context = draw_floats(draw, rows * shape->value_width);
	sequence->context_head_stride = shape->value_width;
	sequence->context_row_stride = shape->heads * shape->value_width;
	sequence->weights = maybe(draw, 70, shown * shape->keys);
	sequence->scores = maybe(draw, 20, shown * shape->keys);
	sequence->capped = maybe(draw, 20, shown * shape->keys);
	sequence->masked = maybe(draw, 20, shown * shape->keys);
	sequence->mean_weights = maybe(draw, 20, shape->queries * shape->keys);
	sequence->top_indices = draw_chance(draw, 40) ? take(draw, top * sizeof(int64_t)) : NULL;
	sequence->top_values = maybe(draw, 40, top);
	sequence->entropy = maybe(draw, 20, rows);
	sequence->logsumexp = maybe(draw, 20, rows);
	sequence->maximum = maybe(draw, 20, rows);
	sequence->used_query = maybe(draw, 20, rows * shape->head_width);
	sequence->used_key = maybe(draw, 20, key_rows * shape->head_width);
	sequence->used_value = maybe(draw, 20, key_rows * shape->value_width);
}

size_t shown_rows(const attn_shape *shape, const attn_options *options)
{
	const attn_selection *selection = options->selection;
	size_t heads = shape->heads, queries = shape->queries;
	if (selection != NULL && selection->heads != NULL)
		heads = selection->head_count;
	if (selection != NULL && selection->queries != NULL)
		queries = selection->query_count;
	return heads * queries;
}

size_t shown_top(const attn_options *options)
{
	return options->selection == NULL ? 0 : options->selection->top_k;
}

size_t shown_row(const attn_shape *shape, const attn_options *options, size_t slot)
{
	const attn_selection *selection = options->selection;
	size_t queries = shape->queries;
	if (selection != NULL && selection->queries != NULL)
		queries = selection->query_count;
	size_t head = slot / queries, query = slot % queries;
	if (selection != NULL && selection->heads != NULL)
		head = selection->heads[head];
	if (selection != NULL && selection->queries != NULL)
		query = selection->queries[query];
	return head * shape->queries + query;
}

attn_sequence draw_sequence(struct draw *draw, const attn_shape *shape, const attn_options *options)
{
	const size_t fresh = shape->keys - shape->past;
	attn_sequence sequence = {
	    .query = draw_heads(draw, shape->heads, shape->queries, shape->head_width),
	    .key = draw_heads(draw, shape->kv_heads, fresh, shape->head_width),
	    .value = draw_heads(draw, shape->kv_heads, fresh, shape->value_width),
	    .past_key = draw_heads(draw, shape->kv_heads, shape->past, shape->head_width),
	    .past_value = draw_heads(draw, shape->kv_heads, shape->past, shape->value_width),
	    .key_length = draw_chance(draw, 30) ? draw_size(draw, 0, shape->keys) : shape->keys,
	    .causal_offset = (int64_t)draw_size(draw, 0, 2 * shape->keys) - (int64_t)shape->keys / 2,
	};
	if (draw_chance(draw, 30))
		sequence.mask = draw_mask(draw, shape);
	if (draw_chance(draw, 30))
		sequence.bias = draw_bias(draw, shape);
	draw_outputs(draw, shape, options, &sequence);
	return sequence;
}
