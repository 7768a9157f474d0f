#include "layer_norms.h"

#include "kernels.h"
#include "rounding.h"

/* Heads of a tile: some tens of microseconds. */
#define TILE_HEADS ((size_t)512)

struct call {
	const attn_kernels *kernels;
	const struct attn_head_rows *part;
	attn_norm norm;
	size_t width, tile_rows;
};

static attn_status norm_tile(void *arg, size_t tile, attn_arena *scratch)
{
	(void)scratch;
	const struct call *call = arg;
	const struct attn_head_rows *part = call->part;
	const size_t first = tile * call->tile_rows;
	const size_t end = attn_smaller(part->rows, first + call->tile_rows);
	for (size_t row = first; row < end; row++) {
		float *head = part->data + row * part->row_stride;
		for (size_t h = 0; h < part->heads; h++, head += call->width)
			call->kernels->norm_row(&call->norm, call->width, head, head);
	}
	return ATTN_OK;
}

attn_status attn_heads_norm(const attn_kernels *kernels, attn_executor *executor,
                            const struct attn_head_rows *parts, size_t count, size_t width, double eps)
{
	attn_status status = ATTN_OK;
	for (size_t i = 0; i < count && status == ATTN_OK; i++) {
		struct call call = {
		    .kernels = kernels,
		    .part = &parts[i],
		    .norm = {.kind = ATTN_NORM_RMS, .weight = parts[i].weight, .eps = eps},
		    .width = width,
		    .tile_rows = attn_larger(TILE_HEADS / parts[i].heads, 1),
		};
		if (parts[i].weight != NULL)
			status = executor->parallel_for(
			    executor, attn_divide_up(parts[i].rows, call.tile_rows), norm_tile, &call);
	}
	return status;
}
