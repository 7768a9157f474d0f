#include "attention_prepare.h"

#include <string.h>

#include "position.h"
#include "rounding.h"

/* Floats that a tile moves or turns at most where it can choose: well under a millisecond. */
#define TILE_FLOATS ((size_t)64 * 1024)
/* Angles of a tile: some tens of nanoseconds each. */
#define TILE_ANGLES ((size_t)16 * 1024)

struct prepare {
	attn_executor *executor;
	const attn_shape *shape;
	const attn_options *options;
	const attn_sequence *inputs; /* [count] */
	attn_sequence *prepared;     /* [count]; used_* are where things are assembled, or NULL */
	size_t count;
	size_t positions;    /* rows of turns, from position_offset on */
	double *frequencies; /* [head_width / 2] */
	double *turns;       /* [positions, head_width / 2, 2], or NULL where nothing is turned */
	size_t block_rows, blocks;
	size_t tile_size; /* blocks of a tile */
};

/* ---- angles */

static size_t turns_per_tile(const struct prepare *prepare)
{
	return attn_divide_up(TILE_ANGLES, prepare->shape->head_width);
}

static attn_status turns_tile(void *arg, size_t tile, attn_arena *scratch)
{
	(void)scratch;
	const struct prepare *prepare = arg;
	const size_t width = prepare->shape->head_width, first = tile * turns_per_tile(prepare);
	const size_t end = attn_smaller(prepare->positions, first + turns_per_tile(prepare));
	for (size_t row = first; row < end; row++) {
		double position = (double)prepare->options->position_offset + (double)row;
		attn_turns(prepare->frequencies, width / 2, position, prepare->turns + row * width);
	}
	return ATTN_OK;
}

static attn_status prepare_turns(struct prepare *prepare)
{
	const size_t width = prepare->shape->head_width,
	             new_keys = prepare->shape->keys - prepare->shape->past;
	attn_arena *scratch = prepare->executor->scratch;
	prepare->positions = attn_larger(prepare->shape->queries, new_keys);
	if (prepare->options->rotation == ATTN_ROTATE_NONE || prepare->positions == 0)
		return ATTN_OK;
	prepare->frequencies = attn_arena_alloc(scratch, width / 2 * sizeof(double));
	prepare->turns = attn_arena_alloc(scratch, prepare->positions * width * sizeof(double));
	if (prepare->frequencies == NULL || prepare->turns == NULL)
		return ATTN_MEMORY;
	attn_frequencies(prepare->options->rope_theta, width, width / 2, prepare->frequencies);
	size_t tiles = attn_divide_up(prepare->positions, turns_per_tile(prepare));
	return prepare->executor->parallel_for(prepare->executor, tiles, turns_tile, prepare);
}

/* ---- rows */

/* One head of rows to assemble: past ones as they are, then new ones, turned where turns is given. */
struct part {
	const float *past, *fresh;
	size_t past_stride, fresh_stride;
	size_t past_rows, rows;
	size_t width;
	const double *turns;
	float *out; /* [rows, width], or NULL: not wanted */
};

static struct part part_of(const attn_heads *past, size_t past_rows, const attn_heads *fresh, size_t rows,
                           size_t width, float *out, size_t head)
{
	return (struct part){
	    .past = past_rows == 0 ? NULL : past->data + head * past->head_stride,
	    .past_stride = past->row_stride,
	    .past_rows = past_rows,
	    .fresh = rows == past_rows ? NULL : fresh->data + head * fresh->head_stride,
	    .fresh_stride = fresh->row_stride,
	    .rows = rows,
	    .width = width,
	    .out = out == NULL ? NULL : out + head * rows * width,
	};
}

/* Part number index of a sequence: its query heads, then key heads, then value heads. */
static struct part sequence_part(const struct prepare *prepare, size_t sequence, size_t index)
{
	const attn_shape *shape = prepare->shape;
	const attn_sequence *input = &prepare->inputs[sequence], *to = &prepare->prepared[sequence];
	static const attn_heads NONE = {NULL, 0, 0};
	struct part part;
	if (index < shape->heads) {
		part = part_of(&NONE, 0, &input->query, shape->queries, shape->head_width, to->used_query,
		               index);
		part.turns = prepare->turns;
	} else if (index < shape->heads + shape->kv_heads) {
		part = part_of(&input->past_key, shape->past, &input->key, shape->keys, shape->head_width,
		               to->used_key, index - shape->heads);
		part.turns = prepare->turns;
	} else {
		part = part_of(&input->past_value, shape->past, &input->value, shape->keys,
		               shape->value_width, to->used_value, index - shape->heads - shape->kv_heads);
	}
	return part;
}

static void part_rows(const struct prepare *prepare, const struct part *part, size_t first, size_t end)
{
	const size_t width = part->width;
	for (size_t row = first; row < end; row++) {
		float *out = part->out + row * width;
		if (row < part->past_rows) {
			memcpy(out, part->past + row * part->past_stride, width * sizeof(float));
			continue;
		}
		const size_t fresh = row - part->past_rows;
		const float *in = part->fresh + fresh * part->fresh_stride;
		if (part->turns == NULL)
			memcpy(out, in, width * sizeof(float));
		else
			attn_rotate(prepare->options->rotation, part->turns + fresh * width, width, in, out);
	}
}

static size_t block_count(const struct prepare *prepare)
{
	return prepare->count * (prepare->shape->heads + 2 * prepare->shape->kv_heads) * prepare->blocks;
}

static attn_status rows_tile(void *arg, size_t tile, attn_arena *scratch)
{
	(void)scratch;
	const struct prepare *prepare = arg;
	const size_t parts = prepare->shape->heads + 2 * prepare->shape->kv_heads;
	const size_t first = tile * prepare->tile_size;
	const size_t end = attn_smaller(block_count(prepare), first + prepare->tile_size);
	for (size_t block = first; block < end; block++) {
		size_t row = block % prepare->blocks * prepare->block_rows, rest = block / prepare->blocks;
		struct part part = sequence_part(prepare, rest / parts, rest % parts);
		if (part.out != NULL)
			part_rows(prepare, &part, row, attn_smaller(part.rows, row + prepare->block_rows));
	}
	return ATTN_OK;
}

static attn_status prepare_rows(struct prepare *prepare)
{
	const attn_shape *shape = prepare->shape;
	const size_t rows = attn_larger(shape->queries, shape->keys);
	const size_t width = attn_larger(shape->head_width, shape->value_width);
	if (rows == 0)
		return ATTN_OK;
	prepare->block_rows = attn_smaller(rows, attn_divide_up(TILE_FLOATS, width));
	prepare->blocks = attn_divide_up(rows, prepare->block_rows);
	prepare->tile_size = attn_divide_up(TILE_FLOATS, prepare->block_rows * width);
	size_t tiles = attn_divide_up(block_count(prepare), prepare->tile_size);
	return prepare->executor->parallel_for(prepare->executor, tiles, rows_tile, prepare);
}

/* ---- where they go */

static bool is_turned(const attn_options *options)
{
	return options->rotation != ATTN_ROTATE_NONE;
}

/* Makes room for what is assembled and not kept by the caller. */
static bool places_make(attn_arena *scratch, const attn_shape *shape, const attn_options *options,
                        attn_sequence *to)
{
	const size_t rows = shape->kv_heads * shape->keys;
	if (is_turned(options) && to->used_query == NULL)
		to->used_query =
		    attn_arena_floats(scratch, shape->heads * shape->queries * shape->head_width);
	if ((is_turned(options) || shape->past > 0) && to->used_key == NULL)
		to->used_key = attn_arena_floats(scratch, rows * shape->head_width);
	if (shape->past > 0 && to->used_value == NULL)
		to->used_value = attn_arena_floats(scratch, rows * shape->value_width);
	return (!is_turned(options) || to->used_query != NULL) &&
	       ((!is_turned(options) && shape->past == 0) || to->used_key != NULL) &&
	       (shape->past == 0 || to->used_value != NULL);
}

/* Lets attention read what was assembled. */
static void views_set(const attn_shape *shape, const attn_options *options, attn_sequence *to)
{
	const size_t width = shape->head_width, value_width = shape->value_width;
	if (is_turned(options))
		to->query = (attn_heads){to->used_query, shape->queries * width, width};
	if (is_turned(options) || shape->past > 0)
		to->key = (attn_heads){to->used_key, shape->keys * width, width};
	if (shape->past > 0)
		to->value = (attn_heads){to->used_value, shape->keys * value_width, value_width};
}

static bool anything_to_do(const attn_shape *shape, const attn_options *options,
                           const attn_sequence *sequences, size_t count)
{
	bool found = is_turned(options) || shape->past > 0;
	for (size_t s = 0; !found && s < count; s++)
		found = sequences[s].used_query != NULL || sequences[s].used_key != NULL ||
		        sequences[s].used_value != NULL;
	return found;
}

attn_status attn_prepare(attn_executor *executor, const attn_shape *shape, const attn_options *options,
                         const attn_sequence *sequences, size_t count, const attn_sequence **out)
{
	struct prepare prepare = {
	    .executor = executor,
	    .shape = shape,
	    .options = options,
	    .inputs = sequences,
	    .count = count,
	};
	*out = sequences;
	if (!anything_to_do(shape, options, sequences, count))
		return ATTN_OK;
	prepare.prepared = attn_arena_alloc(executor->scratch, count * sizeof(*prepare.prepared));
	if (prepare.prepared == NULL)
		return ATTN_MEMORY;
	memcpy(prepare.prepared, sequences, count * sizeof(*sequences));
	for (size_t s = 0; s < count; s++)
		if (!places_make(executor->scratch, shape, options, &prepare.prepared[s]))
			return ATTN_MEMORY;
	attn_status status = prepare_turns(&prepare);
	if (status == ATTN_OK)
		status = prepare_rows(&prepare);
	for (size_t s = 0; s < count; s++)
		views_set(shape, options, &prepare.prepared[s]);
	*out = prepare.prepared;
	return status;
}

/* Adds times blocks of a * b * c bytes, each rounded up to its alignment; false on overflow. */
static bool blocks_add(size_t *sum, size_t times, size_t a, size_t b, size_t c)
{
	const size_t dims[] = {a, b, c}, alignment = 64;
	size_t bytes = 0;
	return attn_size_product(dims, 3, &bytes) && attn_size_add(bytes, alignment, &bytes) &&
	       attn_size_mul(bytes, times, &bytes) && attn_size_add(*sum, bytes, sum);
}

size_t attn_prepare_bytes(const attn_shape *shape, const attn_options *options, size_t count)
{
	const size_t new_keys = shape->past < shape->keys ? shape->keys - shape->past : 0;
	const size_t positions = attn_larger(shape->queries, new_keys);
	const size_t key_width = shape->head_width * sizeof(float);
	size_t bytes = 0, query_rows = 0, key_rows = 0;
	if (shape->head_width > SIZE_MAX / sizeof(double) || shape->value_width > SIZE_MAX / sizeof(float) ||
	    !attn_size_mul(shape->heads, shape->queries, &query_rows) ||
	    !attn_size_mul(shape->kv_heads, shape->keys, &key_rows) ||
	    !blocks_add(&bytes, 1, count, sizeof(attn_sequence), 1))
		return SIZE_MAX;
	if (is_turned(options) && (!blocks_add(&bytes, 1, positions, shape->head_width, sizeof(double)) ||
	                           !blocks_add(&bytes, 1, shape->head_width / 2, sizeof(double), 1) ||
	                           !blocks_add(&bytes, count, query_rows, key_width, 1)))
		return SIZE_MAX;
	if ((is_turned(options) || shape->past > 0) && !blocks_add(&bytes, count, key_rows, key_width, 1))
		return SIZE_MAX;
	if (shape->past > 0 && !blocks_add(&bytes, count, key_rows, shape->value_width, sizeof(float)))
		return SIZE_MAX;
	return bytes;
}
