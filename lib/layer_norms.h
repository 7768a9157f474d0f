/*
 * layer_norms.h - norms of the heads of queries and keys between their projections and attention.
 */
#ifndef ATTN_LAYER_NORMS_H
#define ATTN_LAYER_NORMS_H

#include "attn.h"
#include "norm.h"

/* Rows of heads side by side. */
struct attn_head_rows {
	const float *weight; /* [width] of the norm; NULL: nothing is done */
	float *data;         /* [rows, heads, width], row_stride floats from row to row */
	size_t rows, row_stride, heads;
};

/* Norms every head of every row of each of the parts in place; what the executor returned. */
attn_status attn_heads_norm(const attn_kernels *kernels, attn_executor *executor,
                            const struct attn_head_rows *parts, size_t count, size_t width, double eps);

#endif
