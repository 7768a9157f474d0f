/*
 * kernels_packed.h - products with packed weights, for whatever vec_* the includer has.
 *
 * A tile of rows and one strip of columns, two vectors wide, stays in registers for all of k; the strip
 * streams through the first cache from the second, where it stays until all rows have read it. Few rows take
 * several strips at a time, so that there are chains enough to hide the time of an addition. Whatever the
 * cut, an element is the same chain.
 */
#ifndef ATTN_KERNELS_PACKED_H
#define ATTN_KERNELS_PACKED_H

#include <stdalign.h>
#include <string.h>

#include "kernels.h"
#include "packed.h"
#include "rounding.h"

#define PACKED_STRIP ((size_t)2 * VEC_WIDTH)
/* Two vectors a row, and registers left for two of the strip and one of x. */
#define PACKED_ROWS ((size_t)(VEC_REGISTERS == 32 ? 12 : 6))
#define PACKED_STRIPS ((size_t)4)
#define PACKED_AHEAD ((size_t)16) /* rows of the strip asked for in advance */

/* sums [rows, strips * PACKED_STRIP] = x [rows, k] times strips that follow each other. */
VEC_INLINE void packed_sums(const size_t rows, const size_t strips, const float *const *x, size_t k,
                            const float *strip, float *sums)
{
	vec sum[PACKED_ROWS * 2];
	const float *row[PACKED_ROWS];
#pragma GCC unroll 16
	for (size_t r = 0; r < rows; r++)
		row[r] = x[r];
#pragma GCC unroll 32
	for (size_t i = 0; i < rows * strips * 2; i++)
		sum[i] = vec_zero();
	for (size_t p = 0; p < k; p++) {
#pragma GCC unroll 4
		for (size_t s = 0; s < strips; s++) {
			const float *at = strip + (s * k + p) * PACKED_STRIP;
			const vec b0 = vec_load(at), b1 = vec_load(at + VEC_WIDTH);
			vec_prefetch(at + PACKED_AHEAD * PACKED_STRIP);
#pragma GCC unroll 16
			for (size_t r = 0; r < rows; r++) {
				const vec a = vec_broadcast(row[r] + p);
				vec *to = sum + (r * strips + s) * 2;
				to[0] = vec_fma(a, b0, to[0]);
				to[1] = vec_fma(a, b1, to[1]);
			}
		}
	}
#pragma GCC unroll 32
	for (size_t i = 0; i < rows * strips * 2; i++)
		vec_store(sums + i * VEC_WIDTH, sum[i]);
}

VEC_TARGET static void packed_sums_of(size_t rows, size_t strips, const float *const *x, size_t k,
                                      const float *strip, float *sums)
{
#define PACKED_CASE(r, s)                                                                                    \
	case (r)*8 + (s):                                                                                    \
		packed_sums(r, s, x, k, strip, sums);                                                        \
		break;
	switch (rows * 8 + strips) {
		PACKED_CASE(1, 4)
		PACKED_CASE(1, 2)
		PACKED_CASE(1, 1)
		PACKED_CASE(2, 2)
		PACKED_CASE(2, 1)
		PACKED_CASE(3, 2)
		PACKED_CASE(3, 1)
		PACKED_CASE(4, 1)
		PACKED_CASE(5, 1)
		PACKED_CASE(6, 1)
#if VEC_REGISTERS == 32
		PACKED_CASE(7, 1)
		PACKED_CASE(8, 1)
		PACKED_CASE(9, 1)
		PACKED_CASE(10, 1)
		PACKED_CASE(11, 1)
		PACKED_CASE(12, 1)
#endif
	}
#undef PACKED_CASE
}

/* Bias, activation, factor and residual of count numbers, from sums to y; both operands may be y. */
VEC_TARGET static void packed_finish(const struct attn_packed_tile *tile, float *sums, size_t row,
                                     size_t column, size_t count)
{
	const float *bias = tile->bias != NULL ? tile->bias + column : NULL;
	const float *factor = tile->factor != NULL ? tile->factor[row] + column : NULL;
	const float *residual = tile->residual != NULL ? tile->residual[row] + column : NULL;
	float *y = tile->y[row] + column;
	for (size_t j = 0; j < count; j += VEC_WIDTH) {
		const size_t part = attn_smaller(count - j, VEC_WIDTH);
		vec v = vec_load(sums + j);
		if (bias != NULL)
			v = vec_add(v, vec_load_part(bias + j, part));
		if (tile->activation != ATTN_ACTIVATION_NONE) {
			vec_store(sums + j, v);
			attn_activation_apply(tile->activation, sums + j, part);
			v = vec_load(sums + j);
		}
		if (factor != NULL)
			v = vec_mul(v, vec_load_part(factor + j, part));
		if (residual != NULL)
			v = vec_add(v, vec_load_part(residual + j, part));
		vec_store_part(y + j, part, v);
	}
}

/* The part of strips [strip, strip + strips) that is the tile's, for rows [row, row + rows). */
VEC_TARGET static void packed_rows(const struct attn_packed_tile *tile, size_t row, size_t rows, size_t strip,
                                   size_t strips)
{
	alignas(64) float sums[PACKED_ROWS * PACKED_STRIP + VEC_WIDTH];
	const size_t start = strip * PACKED_STRIP, width = strips * PACKED_STRIP;
	const size_t from = attn_larger(tile->first, start);
	const size_t to = attn_smaller(tile->first + tile->columns, start + width);
	packed_sums_of(rows, strips, tile->x + row, attn_packed_in(tile->packed),
	               attn_packed_at(tile->packed, strip), sums);
	for (size_t r = 0; r < rows; r++)
		packed_finish(tile, sums + r * width + (from - start), row + r, from - tile->first,
		              to - from);
}

/* How many strips are taken at a time. */
static inline size_t packed_step(size_t rows, size_t strips)
{
	const size_t most = rows == 1 ? 4 : rows <= 3 ? 2 : 1;
	if (strips >= most)
		return most;
	return strips >= 2 ? 2 : 1;
}

VEC_TARGET static void packed_product(const struct attn_packed_tile *tile)
{
	const size_t end = attn_divide_up(tile->first + tile->columns, PACKED_STRIP);
	const size_t parts = attn_divide_up(tile->rows, PACKED_ROWS);
	for (size_t strip = tile->first / PACKED_STRIP, strips; strip < end; strip += strips) {
		strips = packed_step(tile->rows, end - strip);
		for (size_t part = 0, row = 0; part < parts; part++) { /* of rows that differ by 1 at most */
			const size_t rows = tile->rows / parts + (part < tile->rows % parts);
			packed_rows(tile, row, rows, strip, strips);
			row += rows;
		}
	}
}

#endif
