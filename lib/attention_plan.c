#include "attention_plan.h"

#include "kernels.h"
#include "rounding.h"

/* A panel stays in L2, unless that leaves it too few rows: the product packs all keys and all values anew for
 * each panel, which 64 rows are enough to hide. What those rows may cost at most: about 5 ms. */
#define PANEL_FLOATS ((size_t)256 * 1024 / sizeof(float))
#define PANEL_ROWS 64
#define PANEL_FLOPS ((size_t)250 * 1000 * 1000)

struct attn_plan attn_plan_make(const attn_shape *shape)
{
	size_t stride = attn_round_up(shape->keys, ATTN_LANES);
	if (stride % 512 == 0)
		stride += ATTN_LANES; /* rows a power of two apart would share cache sets */
	size_t flops = 2 * (shape->keys + 1) * (shape->head_width + shape->value_width + 8);
	size_t rows = attn_smaller(PANEL_FLOATS / stride, ATTN_TILE_FLOPS / flops);
	size_t least = attn_smaller(PANEL_ROWS, PANEL_FLOPS / flops);
	if (rows < least)
		rows = least;
	if (rows == 0)
		rows = 1;
	size_t panels = attn_divide_up(shape->queries, rows);
	if (panels > 1) {
		size_t even = attn_round_up(attn_divide_up(shape->queries, panels), 4);
		rows = attn_smaller(even, rows);
		panels = attn_divide_up(shape->queries, rows);
	} else {
		rows = shape->queries;
	}
	return (struct attn_plan){.rows = rows, .panels = panels, .stride = stride, .flops = rows * flops};
}

/* Adds count things of size bytes, rounded up to the alignment of a block; false on overflow. */
static bool block_add(size_t *sum, size_t count, size_t size)
{
	const size_t alignment = 64;
	size_t bytes = 0;
	return attn_size_mul(count, size, &bytes) && attn_size_add(bytes, alignment, &bytes) &&
	       attn_size_add(*sum, bytes, sum);
}

/* What tiles of attention.c and attention_context.c take. */
size_t attn_attend_tile_bytes(const attn_shape *shape)
{
	size_t widths = 0, values = 0, flops = 0, scores = 0, bytes = 0;
	if (!attn_size_add(shape->head_width, shape->value_width, &widths) || widths > SIZE_MAX - 8 ||
	    shape->keys == SIZE_MAX || !attn_size_mul(shape->keys + 1, widths + 8, &flops) ||
	    flops > SIZE_MAX / 2 || !attn_size_mul(shape->keys, shape->value_width, &values))
		return SIZE_MAX;
	const struct attn_plan plan = attn_plan_make(shape);
	if (!attn_size_mul(plan.rows, plan.stride, &scores) ||
	    !block_add(&bytes, plan.rows, sizeof(struct attn_span)) ||
	    !block_add(&bytes, scores, sizeof(float)) || !block_add(&bytes, plan.rows, sizeof(float)) ||
	    !block_add(&bytes, shape->keys, sizeof(float)) ||  /* weights of a row */
	    !block_add(&bytes, shape->keys, sizeof(size_t)) || /* the largest of them */
	    !block_add(&bytes, values, sizeof(float)) || !block_add(&bytes, shape->keys, 1))
		return SIZE_MAX;
	return bytes;
}
