/*
 * norm.h - normalisation of rows, and what stacks do to a row between their products.
 *
 * Rows are independent of each other, so bits do not depend on how many there are. Pure functions of their
 * arguments.
 */
#ifndef ATTN_NORM_H
#define ATTN_NORM_H

#include <stddef.h>

enum attn_norm_kind {
	ATTN_NORM_NONE,  /* leaves rows as they are */
	ATTN_NORM_LAYER, /* (x - mean) / sqrt(variance + eps) (Ba et al. 2016) */
	ATTN_NORM_RMS,   /* x / sqrt(mean of squares + eps) (Zhang, Sennrich 2019) */
};

typedef struct attn_norm {
	enum attn_norm_kind kind;
	const float *weight; /* [width] factors */
	const float *bias;   /* [width] or NULL */
	double eps;
} attn_norm;

/* out [width] = the norm of in [width], all in double and rounded once: the specification of the kernels'
 * norm_row. out may be in. */
void attn_norm_row(const attn_norm *norm, size_t width, const float *in, float *out);

/* row [width] += add [width]; row [width] *= factor. */
void attn_row_add(float *restrict row, const float *restrict add, size_t width);
void attn_row_scale(float *row, float factor, size_t width);

#endif
