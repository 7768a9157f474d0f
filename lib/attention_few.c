#include "attention_few.h"

#include <string.h>

#include "attention_context.h"
#include "attention_kernels.h"
#include "attention_outputs.h"
#include "attention_softmax.h"
#include "rounding.h"

/* Rows that share keys and values, at most: with more of them it is computing that takes the time. */
#define FEW_QUERIES ((size_t)4)
#define FEW_ROWS ((size_t)8)
/* Keys of a segment: some tens of microseconds of reading. */
#define SEGMENT ((size_t)1024)
/* Floats of keys or values that a tile reads at most where it can choose. */
#define TILE_FLOATS ((size_t)256 * 1024)
/* Floats that the sequences of a pass keep, unless one takes more. */
#define PASS_FLOATS ((size_t)4 << 20)

bool attn_few_fits(const attn_shape *shape)
{
	const size_t group = shape->heads / shape->kv_heads;
	return shape->queries <= FEW_QUERIES ||
	       (shape->queries <= FEW_ROWS && shape->queries * group <= FEW_ROWS);
}

/* A pass over some sequences of the call. */
struct few {
	const struct attn_call *call;
	const attn_sequence *sequences;
	size_t group, rows;      /* heads that share keys; rows that do: group * queries */
	size_t segments, pieces; /* of a head's keys; segments of a tile */
	size_t sequences_now;    /* of the pass */
	size_t part;             /* segments of the pass */
	float *scores;           /* [sequences, heads, queries, stride] */
	float *inverse;          /* [sequences, heads, queries] */
	float *sums;             /* [sequences, kv_heads, segments, rows, value_width] */
};

size_t attn_few_segments(const attn_shape *shape)
{
	return attn_larger(attn_divide_up(shape->keys, SEGMENT), 1);
}

/* A panel of all queries of one head; spans [queries]. */
static struct attn_panel few_panel(const struct few *few, size_t sequence, size_t head,
                                   struct attn_span *spans)
{
	const attn_shape *shape = few->call->shape;
	const size_t row = (sequence * shape->heads + head) * shape->queries;
	struct attn_panel panel = {
	    .call = few->call,
	    .sequence = &few->sequences[sequence],
	    .head = head,
	    .rows = shape->queries,
	    .spans = spans,
	    .scores = few->scores + row * few->call->plan.stride,
	    .inverse = few->inverse + row,
	};
	attn_panel_spans(&panel);
	return panel;
}

/* Keys of a segment that the panel sees. */
static struct attn_span segment_keys(const struct attn_panel *panel, size_t index)
{
	struct attn_span keys = {attn_larger(panel->lo, index * SEGMENT),
	                         attn_smaller(panel->hi, (index + 1) * SEGMENT)};
	if (keys.lo >= keys.hi)
		keys = (struct attn_span){panel->lo, panel->lo};
	return keys;
}

/* Segment number piece of the pass, and the keys of it that its panel sees. */
struct piece {
	size_t sequence, kv_head;
	struct attn_panel panel; /* of the first head of the group */
	struct attn_span keys;
};

static struct piece few_piece(const struct few *few, size_t number, struct attn_span *spans)
{
	const size_t unit = number / few->segments, kv_heads = few->call->shape->kv_heads;
	struct piece piece = {.sequence = unit / kv_heads, .kv_head = unit % kv_heads};
	piece.panel = few_panel(few, piece.sequence, piece.kv_head * few->group, spans);
	piece.keys = segment_keys(&piece.panel, number % few->segments);
	return piece;
}

/* ---- scores */

/* queries [group, queries, head_width] of the heads that share keys, together. */
static void queries_copy(const struct few *few, const struct piece *piece, float *queries)
{
	const attn_shape *shape = few->call->shape;
	const attn_heads *from = &piece->panel.sequence->query;
	for (size_t row = 0; row < few->rows; row++) {
		const size_t head = piece->kv_head * few->group + row / shape->queries;
		memcpy(queries + row * shape->head_width,
		       from->data + head * from->head_stride + row % shape->queries * from->row_stride,
		       shape->head_width * sizeof(float));
	}
}

static attn_status scores_tile(void *arg, size_t tile, attn_arena *scratch)
{
	const struct few *few = arg;
	const struct attn_call *call = few->call;
	const size_t width = call->shape->head_width;
	const size_t end = attn_smaller(few->part, (tile + 1) * few->pieces);
	struct attn_span *spans = attn_arena_alloc(scratch, call->shape->queries * sizeof(*spans));
	float *queries = attn_arena_floats(scratch, few->rows * width);
	if (spans == NULL || queries == NULL)
		return ATTN_MEMORY;
	for (size_t number = tile * few->pieces; number < end; number++) {
		const struct piece piece = few_piece(few, number, spans);
		const attn_heads *key = &piece.panel.sequence->key;
		queries_copy(few, &piece, queries);
		const struct attn_dots dots = {
		    .query = queries,
		    .query_stride = width,
		    .rows = few->rows,
		    .width = width,
		    .keys = key->data + piece.kv_head * key->head_stride + piece.keys.lo * key->row_stride,
		    .key_stride = key->row_stride,
		    .count = piece.keys.hi - piece.keys.lo,
		    .scale = call->options->scale,
		    .scores = piece.panel.scores + (piece.keys.lo - piece.panel.lo),
		    .stride = call->plan.stride,
		};
		call->kernels->attention->dots(&dots);
	}
	return ATTN_OK;
}

/* ---- softmax */

/* Heads of the sequences of a pass, one after the other, that a tile works on. */
static size_t tile_heads(const struct few *few)
{
	return few->call->plan.unit_heads * few->call->tile_size;
}

static struct attn_span heads_of_tile(const struct few *few, size_t tile)
{
	const size_t heads = tile_heads(few);
	const size_t all = few->sequences_now * few->call->shape->heads;
	return (struct attn_span){tile * heads, attn_smaller(all, (tile + 1) * heads)};
}

static attn_status softmax_tile(void *arg, size_t tile, attn_arena *scratch)
{
	const struct few *few = arg;
	const attn_shape *shape = few->call->shape;
	const struct attn_span heads = heads_of_tile(few, tile);
	struct attn_span *spans = attn_arena_alloc(scratch, shape->queries * sizeof(*spans));
	float *maximum = attn_arena_floats(scratch, shape->queries);
	double *sum = attn_arena_alloc(scratch, shape->queries * sizeof(*sum));
	float *row = attn_arena_floats(scratch, shape->keys);
	size_t *order = attn_arena_alloc(scratch, shape->keys * sizeof(*order));
	if (spans == NULL || maximum == NULL || sum == NULL || row == NULL || order == NULL)
		return ATTN_MEMORY;
	for (size_t head = heads.lo; head < heads.hi; head++) {
		struct attn_panel panel = few_panel(few, head / shape->heads, head % shape->heads, spans);
		panel.maximum = maximum;
		panel.sum = sum;
		panel.row = row;
		panel.order = order;
		attn_panel_weigh(&panel);
	}
	return ATTN_OK;
}

/* ---- context */

/* Sums over the keys of one segment, of which keys are seen; values are those of key number keys.lo. */
static void segment_sums(const struct attn_panel *panel, size_t rows, struct attn_span keys,
                         const float *values, size_t stride, float *out)
{
	const struct attn_call *call = panel->call;
	const struct attn_gather gather = {
	    .weights = panel->scores + (keys.lo - panel->lo),
	    .stride = call->plan.stride,
	    .rows = rows,
	    .values = values,
	    .value_stride = stride,
	    .count = keys.hi - keys.lo,
	    .width = call->shape->value_width,
	    .out = out,
	};
	call->kernels->attention->gather(&gather);
}

void attn_few_sums(const struct attn_panel *panel, const float *values, size_t stride, float *sums)
{
	const size_t floats = panel->rows * panel->call->shape->value_width;
	for (size_t index = 0; index < attn_few_segments(panel->call->shape); index++) {
		const struct attn_span keys = segment_keys(panel, index);
		segment_sums(panel, panel->rows, keys, values + (keys.lo - panel->lo) * stride, stride,
		             sums + index * floats);
	}
}

static attn_status sums_tile(void *arg, size_t tile, attn_arena *scratch)
{
	const struct few *few = arg;
	const struct attn_call *call = few->call;
	const size_t end = attn_smaller(few->part, (tile + 1) * few->pieces);
	struct attn_span *spans = attn_arena_alloc(scratch, call->shape->queries * sizeof(*spans));
	if (spans == NULL)
		return ATTN_MEMORY;
	for (size_t number = tile * few->pieces; number < end; number++) {
		const struct piece piece = few_piece(few, number, spans);
		const attn_heads *value = &piece.panel.sequence->value;
		segment_sums(&piece.panel, few->rows, piece.keys,
		             value->data + piece.kv_head * value->head_stride +
		                 piece.keys.lo * value->row_stride,
		             value->row_stride, few->sums + number * few->rows * call->shape->value_width);
	}
	return ATTN_OK;
}

/* Context of one head from the sums of its group. */
static attn_status head_context(const struct few *few, size_t head, struct attn_span *spans,
                                attn_arena *scratch)
{
	const attn_shape *shape = few->call->shape;
	const size_t floats = few->rows * shape->value_width;
	const float *sums = few->sums + head / few->group * few->segments * floats;
	struct attn_panel panel = few_panel(few, head / shape->heads, head % shape->heads, spans);
	for (size_t r = 0; r < panel.rows && attn_panel_is_ablated(&panel); r++)
		spans[r] = (struct attn_span){0, 0};
	return attn_panel_context_sums(&panel, sums + head % few->group * panel.rows * shape->value_width,
	                               floats, few->segments, scratch);
}

static attn_status context_tile(void *arg, size_t tile, attn_arena *scratch)
{
	const struct few *few = arg;
	const attn_shape *shape = few->call->shape;
	const struct attn_span heads = heads_of_tile(few, tile);
	struct attn_span *spans = attn_arena_alloc(scratch, shape->queries * sizeof(*spans));
	if (spans == NULL)
		return ATTN_MEMORY;
	attn_status status = ATTN_OK;
	for (size_t head = heads.lo; head < heads.hi && status == ATTN_OK; head++)
		status = head_context(few, head, spans, scratch);
	return status;
}

/* ---- passes */

/* Floats that one sequence keeps between the steps of a pass; false on overflow. */
static bool sequence_floats(const attn_shape *shape, size_t *floats)
{
	const size_t stride = attn_panel_stride(shape);
	size_t row = 0, rows = 0;
	return attn_size_mul(attn_few_segments(shape), shape->value_width, &row) &&
	       attn_size_add(row, stride, &row) && attn_size_add(row, 1 + 48, &row) &&
	       attn_size_mul(shape->heads, shape->queries, &rows) && attn_size_mul(row, rows, floats);
}

static size_t pass_sequences(const attn_shape *shape, size_t count)
{
	size_t floats = 0;
	if (!sequence_floats(shape, &floats) || floats >= PASS_FLOATS)
		return 1;
	return attn_larger(attn_smaller(count, PASS_FLOATS / attn_larger(floats, 1)), 1);
}

size_t attn_few_bytes(const attn_shape *shape, size_t count)
{
	size_t bytes = 0;
	if (!attn_few_fits(shape))
		return 0;
	bool counted = sequence_floats(shape, &bytes) &&
	               attn_size_mul(bytes, pass_sequences(shape, count), &bytes) &&
	               attn_size_mul(bytes, sizeof(float), &bytes) && attn_size_add(bytes, 256, &bytes);
	return counted ? bytes : SIZE_MAX;
}

static bool pass_make(struct few *few, size_t sequences, attn_arena *scratch)
{
	const attn_shape *shape = few->call->shape;
	const size_t rows = sequences * shape->heads * shape->queries;
	few->scores = attn_arena_floats(scratch, rows * few->call->plan.stride);
	few->inverse = attn_arena_floats(scratch, rows);
	few->sums = attn_arena_floats(scratch, rows * few->segments * shape->value_width);
	return few->scores != NULL && few->inverse != NULL && few->sums != NULL;
}

static attn_status pass_run(struct few *few, attn_executor *executor, size_t sequences)
{
	const attn_shape *shape = few->call->shape;
	few->sequences_now = sequences;
	few->part = sequences * shape->kv_heads * few->segments;
	const size_t head_tiles = attn_divide_up(sequences * shape->heads, tile_heads(few));
	const struct {
		attn_tile_fn *run;
		size_t tiles;
	} steps[] = {
	    {scores_tile, attn_divide_up(few->part, few->pieces)},
	    {softmax_tile, head_tiles},
	    {sums_tile, attn_divide_up(few->part, few->pieces)},
	    {context_tile, head_tiles},
	};
	attn_status status = ATTN_OK;
	for (size_t step = 0; step < 4 && status == ATTN_OK; step++)
		status = executor->parallel_for(executor, steps[step].tiles, steps[step].run, few);
	return status;
}

attn_status attn_few_run(const struct attn_call *call, attn_executor *executor, size_t count)
{
	const attn_shape *shape = call->shape;
	const size_t together = pass_sequences(shape, count);
	const size_t widest = attn_larger(shape->head_width, shape->value_width);
	struct few few = {.call = call, .group = shape->heads / shape->kv_heads};
	few.rows = few.group * shape->queries;
	few.segments = attn_few_segments(shape);
	const size_t floats = attn_larger(attn_smaller(shape->keys, SEGMENT), 1) * widest;
	few.pieces = attn_larger(TILE_FLOATS / floats, 1);
	if (!pass_make(&few, together, executor->scratch))
		return ATTN_MEMORY;
	attn_status status = ATTN_OK;
	for (size_t first = 0; first < count && status == ATTN_OK; first += together) {
		few.sequences = call->sequences + first;
		status = pass_run(&few, executor, attn_smaller(together, count - first));
	}
	return status;
}
