/*
 * kernels_packed.h - products with packed weights, for whatever vec_* the includer has.
 *
 * A few rows of one strip of columns, two vectors wide, stay in registers while the strip streams by: from
 * memory for the first rows of a tile, then from the second cache, asked for well ahead. Few rows take
 * several strips at a time, so that there are chains enough to hide the time of an addition and streams
 * enough to keep memory busy. Whatever the cut, an element is the same chain; sums that wait in memory are
 * not rounded.
 */
#ifndef ATTN_KERNELS_PACKED_H
#define ATTN_KERNELS_PACKED_H

#include <stdalign.h>
#include <string.h>

#include "kernels.h"
#include "kernels_activation.h"
#include "packed.h"
#include "rounding.h"

#define PACKED_STRIP ((size_t)2 * VEC_WIDTH)
/* Two vectors a row, and registers left for two of the strip and one of x. */
#define PACKED_ROWS ((size_t)(VEC_REGISTERS == 32 ? 12 : 6))
/* Streams that keep memory busy; they take turns of so many rows of a strip each. */
#define PACKED_STREAMS ((size_t)4)
#define PACKED_TURN ((size_t)24)
/* Rows of a tile up to which waiting for memory takes longer than computing. */
#define PACKED_FEW ((size_t)16)
/* Rows of a strip that are asked for in advance. */
#define PACKED_AHEAD ((size_t)96)

/* What a few rows are multiplied by: strips that follow each other. */
struct packed_part {
	const float *strip; /* [strips, k, PACKED_STRIP] */
	size_t k, strips;
	size_t turn; /* rows of a strip in one turn of it */
};

/* sums [width, rows, PACKED_STRIP] += x [rows, from..to) times rows [from, to) of width strips. */
VEC_INLINE void packed_turn(const size_t rows, const size_t width, const bool ahead, const float *const *x,
                            const float *strip, size_t k, size_t from, size_t to, float *sums)
{
	const bool first = from == 0;
	const float *row[PACKED_ROWS];
	vec sum[PACKED_ROWS * 2];
#pragma GCC unroll 16
	for (size_t r = 0; r < rows; r++)
		row[r] = x[r];
#pragma GCC unroll 32
	for (size_t i = 0; i < rows * width * 2; i++)
		sum[i] = first ? vec_zero() : vec_load(sums + i * VEC_WIDTH);
	for (size_t p = from; p < to; p++) {
#pragma GCC unroll 4
		for (size_t s = 0; s < width; s++) {
			const float *at = strip + (s * k + p) * PACKED_STRIP;
			const vec b0 = vec_keep(vec_load(at)), b1 = vec_keep(vec_load(at + VEC_WIDTH));
			if (ahead)
				vec_prefetch(at + PACKED_AHEAD * PACKED_STRIP);
#pragma GCC unroll 16
			for (size_t r = 0; r < rows; r++) {
				const vec a = vec_broadcast(row[r] + p);
				vec *to_sum = sum + (s * rows + r) * 2;
				to_sum[0] = vec_fma(a, b0, to_sum[0]);
				to_sum[1] = vec_fma(a, b1, to_sum[1]);
			}
		}
	}
#pragma GCC unroll 32
	for (size_t i = 0; i < rows * width * 2; i++)
		vec_store(sums + i * VEC_WIDTH, sum[i]);
}

/* sums [strips, rows, PACKED_STRIP] = x [rows, k] times the part. Sums of width strips fit in registers. */
VEC_INLINE void packed_sums(const size_t rows, const size_t width, const float *const *x,
                            const struct packed_part *part, float *sums)
{
	const size_t k = part->k, step = rows * PACKED_STRIP;
	if (part->strips == 1) {
		packed_turn(rows, 1, true, x, part->strip, k, 0, k, sums);
		return;
	}
	for (size_t from = 0; from < k; from += part->turn) {
		const size_t to = attn_smaller(from + part->turn, k);
		size_t s = 0;
		for (; s + width <= part->strips; s += width)
			packed_turn(rows, width, false, x, part->strip + s * k * PACKED_STRIP, k, from, to,
			            sums + s * step);
		for (; width > 1 && s < part->strips; s++)
			packed_turn(rows, 1, false, x, part->strip + s * k * PACKED_STRIP, k, from, to,
			            sums + s * step);
	}
}

/* Every number of rows has sums of its own, or, where compiling many takes too long, one serves all. */
VEC_TARGET static void packed_sums_of(size_t rows, const float *const *x, const struct packed_part *part,
                                      float *sums)
{
#ifdef ATTN_ONE_TILE
	packed_sums(rows, rows == 1 ? 4 : rows <= 3 ? 2 : 1, x, part, sums);
#else
#define PACKED_CASE(rows, width)                                                                             \
	case (rows):                                                                                         \
		packed_sums(rows, width, x, part, sums);                                                     \
		break;
	switch (rows) {
		PACKED_CASE(1, 4)
		PACKED_CASE(2, 2)
		PACKED_CASE(3, 2)
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
#endif
}

/* What follows the sum of count numbers, at most a vector; whole where count is known to be VEC_WIDTH. */
VEC_INLINE void packed_finish(const struct attn_packed_tile *tile, const bool whole, const float *sums,
                              size_t row, size_t column, size_t count)
{
#define PACKED_LOAD(at) (whole ? vec_load(at) : vec_load_part(at, count))
	vec v = vec_load(sums);
	if (tile->bias != NULL)
		v = vec_add(v, PACKED_LOAD(tile->bias + column));
	v = vec_activate(tile->activation, v);
	if (tile->factor != NULL)
		v = vec_mul(v, PACKED_LOAD(tile->factor[row] + column));
	if (tile->residual != NULL)
		v = vec_add(v, PACKED_LOAD(tile->residual[row] + column));
	if (whole)
		vec_store(tile->y[row] + column, v);
	else
		vec_store_part(tile->y[row] + column, count, v);
#undef PACKED_LOAD
}

/* From sums [rows, PACKED_STRIP] of a strip to the columns of it that are the tile's. */
VEC_TARGET static void packed_write(const struct attn_packed_tile *tile, size_t row, size_t rows,
                                    size_t strip, float *sums)
{
	const size_t start = strip * PACKED_STRIP;
	const size_t from = attn_larger(tile->first, start);
	const size_t to = attn_smaller(tile->first + tile->columns, start + PACKED_STRIP);
	for (size_t r = 0; r < rows; r++) {
		const float *sum = sums + r * PACKED_STRIP + (from - start);
		for (size_t j = 0; j < to - from; j += VEC_WIDTH) {
			const size_t column = from - tile->first + j, count = to - from - j;
			if (count >= VEC_WIDTH)
				packed_finish(tile, true, sum + j, row + r, column, VEC_WIDTH);
			else
				packed_finish(tile, false, sum + j, row + r, column, count);
		}
	}
}

/* A few rows by strips that follow each other, at most PACKED_STREAMS, which take turns. */
VEC_TARGET static void packed_rows(const struct attn_packed_tile *tile, size_t row, size_t rows, size_t strip,
                                   size_t strips)
{
	/* a vector more, for what is read past the last part of a row */
	alignas(64) float sums[PACKED_STREAMS * PACKED_ROWS * PACKED_STRIP + VEC_WIDTH];
	const size_t k = attn_packed_in(tile->packed);
	const struct packed_part part = {.strip = attn_packed_at(tile->packed, strip),
	                                 .k = k,
	                                 .strips = strips,
	                                 .turn = rows == 1 && strips == PACKED_STREAMS ? k : PACKED_TURN};
	packed_sums_of(rows, tile->x + row, &part, sums);
	for (size_t s = 0; s < strips; s++)
		packed_write(tile, row, rows, strip + s, sums + s * rows * PACKED_STRIP);
}

VEC_TARGET static void packed_product(const struct attn_packed_tile *tile)
{
	const size_t end = attn_divide_up(tile->first + tile->columns, PACKED_STRIP);
	const size_t parts = attn_divide_up(tile->rows, PACKED_ROWS);
	const size_t group = tile->rows <= PACKED_FEW ? PACKED_STREAMS : 1;
	for (size_t strip = tile->first / PACKED_STRIP; strip < end; strip += group) {
		const size_t strips = attn_smaller(group, end - strip);
		for (size_t part = 0, row = 0; part < parts; part++) { /* of rows that differ by 1 at most */
			const size_t rows = tile->rows / parts + (part < tile->rows % parts);
			const size_t step = part == 0 ? strips : 1; /* the first brings them into the cache */
			for (size_t s = 0; s < strips; s += step)
				packed_rows(tile, row, rows, strip + s, step);
			row += rows;
		}
	}
}

#endif
