#include "layer_inputs.h"

#include <string.h>

#include "position.h"
#include "rounding.h"

/* Floats of a tile: each takes some tens of nanoseconds. */
#define TILE_FLOATS ((size_t)16 * 1024)

enum { QUERY, KEY, VALUE, INPUTS };

/* One input of every sequence. */
struct input {
	size_t rows, width;
	float *out; /* [count, rows, width], or NULL: shared with an earlier one, or empty */
	double *frequencies;
	size_t tile_rows, tiles; /* tiles cut rows, each does its rows of every sequence */
};

struct inputs {
	const attn_layer_sequence *sequences;
	size_t count;
	double position_offset;
	struct input of[INPUTS];
};

static const float *data_of(const attn_layer_sequence *sequence, size_t which)
{
	const float *const data[INPUTS] = {sequence->query, sequence->key, sequence->value};
	return data[which];
}

/* Rows [first, end) of every sequence; turns is [width rounded up to even]. */
static void input_rows(const struct inputs *inputs, size_t which, size_t first, size_t end, double *turns)
{
	const struct input *input = &inputs->of[which];
	for (size_t row = first; row < end; row++) {
		attn_turns(input->frequencies, attn_divide_up(input->width, 2),
		           inputs->position_offset + (double)row, turns);
		for (size_t s = 0; s < inputs->count; s++) {
			float *out = input->out + (s * input->rows + row) * input->width;
			const float *in = data_of(&inputs->sequences[s], which) + row * input->width;
			memcpy(out, in, input->width * sizeof(float));
			attn_sinusoid_add_turns(turns, input->width, out);
		}
	}
}

static attn_status inputs_tile(void *arg, size_t tile, attn_arena *scratch)
{
	const struct inputs *inputs = arg;
	size_t which = 0;
	while (tile >= inputs->of[which].tiles)
		tile -= inputs->of[which++].tiles;
	const struct input *input = &inputs->of[which];
	double *turns = attn_arena_alloc(scratch, attn_round_up(input->width, 2) * sizeof(double));
	if (turns == NULL)
		return ATTN_MEMORY;
	size_t first = tile * input->tile_rows;
	input_rows(inputs, which, first, attn_smaller(input->rows, first + input->tile_rows), turns);
	return ATTN_OK;
}

/* The first input that has the same rows in the same memory for every sequence. */
static size_t first_same(const struct inputs *inputs, size_t which)
{
	size_t first = 0;
	for (; first < which; first++) {
		const struct input *a = &inputs->of[first], *b = &inputs->of[which];
		bool same = a->rows == b->rows && a->width == b->width;
		for (size_t s = 0; same && s < inputs->count; s++)
			same = data_of(&inputs->sequences[s], first) == data_of(&inputs->sequences[s], which);
		if (same)
			break;
	}
	return first;
}

static bool input_make(struct input *input, size_t count, attn_arena *scratch)
{
	const size_t pairs = attn_divide_up(input->width, 2);
	if (input->rows == 0)
		return true;
	input->tile_rows = attn_divide_up(TILE_FLOATS, input->width * count);
	input->tiles = attn_divide_up(input->rows, input->tile_rows);
	input->frequencies = attn_arena_alloc(scratch, pairs * sizeof(double));
	input->out = attn_arena_floats(scratch, count * input->rows * input->width);
	if (input->frequencies == NULL || input->out == NULL)
		return false;
	attn_frequencies(ATTN_SINUSOID_BASE, input->width, pairs, input->frequencies);
	return true;
}

attn_status attn_inputs_add_sinusoids(attn_executor *executor, const attn_layer *layer, size_t queries,
                                      size_t new_keys, int64_t position_offset,
                                      const attn_layer_sequence *sequences, size_t count,
                                      const attn_layer_sequence **out)
{
	struct inputs inputs = {
	    .sequences = sequences,
	    .count = count,
	    .position_offset = (double)position_offset,
	    .of = {{.rows = queries, .width = layer->query.in},
	           {.rows = new_keys, .width = layer->key.in},
	           {.rows = new_keys, .width = layer->value.in}},
	};
	attn_layer_sequence *sums = attn_arena_alloc(executor->scratch, count * sizeof(*sums));
	if (sums == NULL)
		return ATTN_MEMORY;
	const float *data[INPUTS];
	size_t tiles = 0;
	for (size_t i = 0; i < INPUTS; i++) {
		size_t same = first_same(&inputs, i);
		if (same == i && !input_make(&inputs.of[i], count, executor->scratch))
			return ATTN_MEMORY;
		data[i] = inputs.of[same].out;
		tiles += inputs.of[i].tiles;
	}
	for (size_t s = 0; s < count; s++) {
		sums[s] = sequences[s];
		const float **const parts[INPUTS] = {&sums[s].query, &sums[s].key, &sums[s].value};
		for (size_t i = 0; i < INPUTS; i++)
			if (data[i] != NULL)
				*parts[i] = data[i] + s * inputs.of[i].rows * inputs.of[i].width;
	}
	*out = sums;
	return tiles == 0 ? ATTN_OK : executor->parallel_for(executor, tiles, inputs_tile, &inputs);
}

/* Adds what input_make and a tile take for one input; false on overflow. */
static bool input_bytes(size_t *bytes, size_t rows, size_t width, size_t count)
{
	const size_t dims[] = {count, rows, width, sizeof(float)}, blocks = 3, alignment = 64;
	size_t floats = 0, turns = 0;
	return attn_size_product(dims, 4, &floats) && attn_size_mul(width, 3 * sizeof(double), &turns) &&
	       attn_size_add(*bytes, floats, bytes) && attn_size_add(*bytes, turns, bytes) &&
	       attn_size_add(*bytes, blocks * alignment + 2 * sizeof(double), bytes);
}

size_t attn_inputs_bytes(const attn_layer *layer, size_t queries, size_t new_keys, size_t count)
{
	size_t bytes = 0;
	if (!attn_size_mul(count, sizeof(attn_layer_sequence), &bytes) || !attn_size_add(bytes, 64, &bytes) ||
	    !input_bytes(&bytes, queries, layer->query.in, count) ||
	    !input_bytes(&bytes, new_keys, layer->key.in, count) ||
	    !input_bytes(&bytes, new_keys, layer->value.in, count))
		return SIZE_MAX;
	return bytes;
}
