#include "attention_plan.h"

#include "attention_few.h"
#include "attention_kernels.h"
#include "rounding.h"

/* Scores of a panel stay in L2, beside the strips that stream through it. */
#define PANEL_FLOATS ((size_t)64 * 1024)
/* A panel needs rows enough to hide what loading a strip costs. */
#define PACKED_ROWS_LEAST ((size_t)24)
#define PACKED_ROWS_MOST ((size_t)96)
/* Products that pack for themselves pack all keys and values anew for each panel, which 64 rows hide. */
#define PANEL_ROWS ((size_t)64)
/* What rows may cost at most: about 5 ms. */
#define PANEL_FLOPS ((size_t)250 * 1000 * 1000)
/* A unit up to here packs for itself: about a millisecond. */
#define UNIT_FLOPS ((size_t)100 * 1000 * 1000)
/* Query rows a head's values must serve for packing them to pay. */
#define VALUES_ROWS ((size_t)40)

/* Weights of a sequence from here on leave little of a cache to others. */
#define STREAM_FLOATS ((size_t)256 * 1024)

static size_t row_flops(const attn_shape *shape)
{
	return 2 * (shape->keys + 1) * (shape->head_width + shape->value_width + 8);
}

size_t attn_panel_stride(const attn_shape *shape)
{
	size_t stride = attn_round_up(shape->keys, ATTN_STRIP_MAX);
	return stride % 512 == 0 ? stride + ATTN_LANES
	                         : stride; /* rows a power of two apart share cache sets */
}

/* Rows of a panel at most, before they are made even. */
static size_t rows_packed(const attn_shape *shape)
{
	size_t rows = attn_smaller(PANEL_FLOATS / attn_larger(attn_panel_stride(shape), 1), PACKED_ROWS_MOST);
	rows = attn_larger(rows, PACKED_ROWS_LEAST);
	return attn_larger(attn_smaller(rows, PANEL_FLOPS / row_flops(shape)), ATTN_TILE_ROWS_MAX);
}

static size_t rows_unpacked(const attn_shape *shape)
{
	const size_t flops = row_flops(shape), stride = attn_larger(attn_panel_stride(shape), 1);
	size_t rows = attn_smaller(PANEL_FLOATS / stride, 6 * ATTN_TILE_FLOPS / flops);
	rows = attn_larger(rows, attn_smaller(PANEL_ROWS, PANEL_FLOPS / flops));
	return attn_larger(rows, 1);
}

/* Panels of one height, a multiple of tile_rows, of most rows at most. */
static void plan_panels(struct attn_plan *plan, size_t queries, size_t most, size_t tile_rows)
{
	plan->rows = queries;
	plan->panels = attn_divide_up(queries, most);
	if (plan->panels <= 1)
		return;
	size_t even = attn_round_up(attn_divide_up(queries, plan->panels), tile_rows);
	plan->rows = even <= most ? even : attn_larger(most / tile_rows, 1) * tile_rows;
	plan->panels = attn_divide_up(queries, plan->rows);
}

/* What units of all panels would compute, saturating. */
static size_t unit_flops(const struct attn_plan *plan)
{
	const size_t factors[] = {plan->flops, plan->panels, plan->unit_heads};
	size_t flops = 0;
	return attn_size_product(factors, 3, &flops) ? flops : SIZE_MAX;
}

static void plan_units(struct attn_plan *plan, const attn_shape *shape, bool all_heads)
{
	const size_t group = shape->heads / shape->kv_heads;
	plan->unit_heads = all_heads ? shape->heads : group;
	plan->unit_panels = attn_larger(plan->panels, 1);
	if (plan->packs_keys && unit_flops(plan) > UNIT_FLOPS) {
		const size_t panel = attn_larger(plan->flops, 1) * plan->unit_heads;
		plan->packs_before = true;
		plan->unit_panels = attn_larger(attn_smaller(ATTN_TILE_FLOPS / panel, plan->panels), 1);
	} else if (!plan->packs_keys) {
		plan->unit_heads = all_heads ? shape->heads : 1;
		plan->unit_panels = 1;
	}
	plan->units = shape->heads / plan->unit_heads * attn_divide_up(plan->panels, plan->unit_panels);
}

struct attn_plan attn_plan_make(const attn_shape *shape, const attn_kernels *kernels, bool all_heads)
{
	const struct attn_attention_kernels *packed = kernels->attention;
	struct attn_plan plan = {.stride = attn_panel_stride(shape)};
	plan.few = packed != NULL && attn_few_fits(shape);
	plan.packs_keys = packed != NULL && !plan.few;
	if (!plan.packs_keys) {
		plan_panels(&plan, shape->queries, rows_unpacked(shape), 4);
	} else {
		plan_panels(&plan, shape->queries, rows_packed(shape), packed->tile_rows);
		const size_t rows = shape->queries * (shape->heads / shape->kv_heads);
		plan.packs_values = rows >= VALUES_ROWS || shape->value_width % packed->strip != 0;
		plan.keys_floats = attn_round_up(shape->keys, packed->strip) * shape->head_width;
		plan.values_floats = shape->keys * attn_round_up(shape->value_width, packed->strip);
	}
	plan.streams = shape->queries * shape->keys * shape->heads >= STREAM_FLOATS;
	plan.flops = plan.rows * row_flops(shape);
	plan_units(&plan, shape, all_heads);
	return plan;
}

/* Adds count things of size bytes, rounded up to the alignment of a block; false on overflow. */
static bool block_add(size_t *sum, size_t count, size_t size)
{
	const size_t alignment = 64;
	size_t bytes = 0;
	return attn_size_mul(count, size, &bytes) && attn_size_add(bytes, alignment, &bytes) &&
	       attn_size_add(*sum, bytes, sum);
}

/* Sizes that the plan multiplies without a look. */
static bool shape_counts(const attn_shape *shape)
{
	size_t widths = 0, flops = 0, floats = 0;
	return attn_size_add(shape->head_width, shape->value_width, &widths) &&
	       attn_size_add(widths, 8 + 2 * ATTN_STRIP_MAX, &widths) &&
	       attn_size_add(shape->keys, 1 + ATTN_STRIP_MAX, &floats) &&
	       attn_size_mul(floats, widths, &flops) && attn_size_mul(flops, 2 * 96 * sizeof(float), &flops);
}

/* Packed keys and values of heads heads. */
static bool packed_add(size_t *sum, const attn_shape *shape, size_t heads)
{
	const size_t key_floats = attn_round_up(shape->keys, ATTN_STRIP_MAX) * shape->head_width;
	const size_t value_floats = shape->keys * attn_round_up(shape->value_width, ATTN_STRIP_MAX);
	size_t floats = 0;
	return attn_size_mul(key_floats + value_floats, heads, &floats) &&
	       block_add(sum, floats, sizeof(float)) && block_add(sum, 0, 0);
}

/* Queries that share keys, and sums of segments of values that are not finite. */
static bool few_add(size_t *sum, const attn_shape *shape)
{
	size_t queries = 0, sums = 0;
	if (!attn_few_fits(shape))
		return true;
	return attn_size_mul(shape->heads * shape->queries, shape->head_width, &queries) &&
	       attn_size_mul(attn_few_segments(shape) * shape->queries, shape->value_width, &sums) &&
	       block_add(sum, queries, sizeof(float)) && block_add(sum, sums, sizeof(float));
}

/* What tiles of attention.c, attention_few.c and attention_context.c take. */
size_t attn_attend_tile_bytes(const attn_shape *shape)
{
	if (!shape_counts(shape))
		return SIZE_MAX;
	size_t scores = 0, queries = 0, bytes = 0;
	const size_t rows =
	    attn_smaller(shape->queries, attn_larger(rows_packed(shape), rows_unpacked(shape)));
	const size_t values = shape->keys * shape->value_width;
	if (!attn_size_mul(rows, attn_panel_stride(shape), &scores) ||
	    !attn_size_mul(rows, shape->head_width, &queries) ||
	    !block_add(&bytes, rows, sizeof(struct attn_span)) || !block_add(&bytes, scores, sizeof(float)) ||
	    !block_add(&bytes, queries, sizeof(float)) || !few_add(&bytes, shape) ||
	    !block_add(&bytes, rows, 2 * sizeof(float) + sizeof(double)) || /* inverse, maximum, sum */
	    !block_add(&bytes, 2, 64) ||
	    !block_add(&bytes, shape->keys, sizeof(float)) ||  /* weights of a row */
	    !block_add(&bytes, shape->keys, sizeof(size_t)) || /* the largest of them */
	    !packed_add(&bytes, shape, 1) ||
	    /* values that are not finite: a copy, packed again, and which they are */
	    !block_add(&bytes, values, sizeof(float)) || !packed_add(&bytes, shape, 1) ||
	    !block_add(&bytes, shape->keys, 1))
		return SIZE_MAX;
	return bytes;
}

size_t attn_plan_bytes(const attn_shape *shape)
{
	size_t bytes = 0;
	return shape_counts(shape) && packed_add(&bytes, shape, shape->kv_heads) ? bytes : SIZE_MAX;
}
