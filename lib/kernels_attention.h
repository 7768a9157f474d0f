/*
 * kernels_attention.h - the kernels of attention_kernels.h, for whatever vec_* the includer has.
 */
#ifndef ATTN_KERNELS_ATTENTION_H
#define ATTN_KERNELS_ATTENTION_H

#include "attention_kernels.h"

#include <float.h>
#include <math.h>
#include <stdalign.h>
#include <string.h>

#include "rounding.h"

#define ATTEND_STRIP ((size_t)2 * VEC_WIDTH)
/* Two vectors of sums a row, and registers left for two of the strip and one to spread. */
#define ATTEND_ROWS ((size_t)(VEC_REGISTERS == 32 ? 14 : 6))
/* Keys whose values a register tile sums before it adds them to the context: what bounds the error of long
 * rows, and what lets weights and values stay in L1. */
#define ATTEND_DEPTH ((size_t)256)

/* Rows of values asked for in advance. */
#define ATTEND_AHEAD ((size_t)8)

/* ---- packing */

typedef float attend_float8 __attribute__((vector_size(32), aligned(4), may_alias));

/* out [8, ATTEND_STRIP] = scale * the transpose of in [8, 8]. */
VEC_INLINE void attend_transpose8(float *out, const float *in, size_t stride, float scale)
{
	attend_float8 a[8], b[8];
	for (size_t i = 0; i < 8; i++)
		a[i] = *(const attend_float8 *)(in + i * stride) * scale;
	for (size_t i = 0; i < 8; i += 2) { /* pairs */
		b[i] = __builtin_shufflevector(a[i], a[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
		b[i + 1] = __builtin_shufflevector(a[i], a[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
	}
	for (size_t i = 0; i < 8; i += 4) { /* fours */
		a[i] = __builtin_shufflevector(b[i], b[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
		a[i + 1] = __builtin_shufflevector(b[i], b[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
		a[i + 2] = __builtin_shufflevector(b[i + 1], b[i + 3], 0, 1, 8, 9, 4, 5, 12, 13);
		a[i + 3] = __builtin_shufflevector(b[i + 1], b[i + 3], 2, 3, 10, 11, 6, 7, 14, 15);
	}
	for (size_t i = 0; i < 4; i++) { /* halves */
		*(attend_float8 *)(out + i * ATTEND_STRIP) =
		    __builtin_shufflevector(a[i], a[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
		*(attend_float8 *)(out + (i + 4) * ATTEND_STRIP) =
		    __builtin_shufflevector(a[i], a[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
	}
}

/* Asks for the rows that come after those at hand: rows of heads side by side lie on pages of their own,
 * where nothing else foresees them. */
VEC_INLINE void attend_prefetch(const float *rows, size_t stride, size_t count, size_t width)
{
	for (size_t i = 0; i < count; i++)
		for (size_t d = 0; d < width; d += 64 / sizeof(float))
			vec_prefetch(rows + i * stride + d);
}

VEC_TARGET static void attend_pack_keys(float *strips, const float *keys, size_t stride, size_t count,
                                        size_t width, float scale)
{
	for (size_t key = 0; key < count; key += ATTEND_STRIP) {
		const size_t here = attn_smaller(ATTEND_STRIP, count - key), eights = here / 8 * 8;
		const size_t wide = width / 8 * 8;
		float *strip = strips + key * width;
		attend_prefetch(keys + (key + here) * stride, stride,
		                attn_smaller(ATTEND_STRIP, count - key - here), width);
		if (here < ATTEND_STRIP)
			memset(strip, 0, width * ATTEND_STRIP * sizeof(float));
		for (size_t j = 0; j < eights; j += 8)
			for (size_t d = 0; d < wide; d += 8)
				attend_transpose8(strip + d * ATTEND_STRIP + j, keys + (key + j) * stride + d,
				                  stride, scale);
		for (size_t j = 0; j < here; j++)
			for (size_t d = j < eights ? wide : 0; d < width; d++)
				strip[d * ATTEND_STRIP + j] = keys[(key + j) * stride + d] * scale;
	}
}

VEC_TARGET static void attend_pack_values(float *strips, const float *values, size_t stride, size_t count,
                                          size_t width)
{
	for (size_t key = 0; key < count; key++) {
		const float *from = values + key * stride;
		const size_t ahead = attn_smaller(key + ATTEND_AHEAD, count);
		attend_prefetch(values + ahead * stride, stride, ahead < count, width);
		for (size_t column = 0; column < width; column += ATTEND_STRIP) {
			const size_t here = attn_smaller(ATTEND_STRIP, width - column);
			float *to = strips + column * count + key * ATTEND_STRIP;
			if (here == ATTEND_STRIP) {
				vec_store(to, vec_load(from + column));
				vec_store(to + VEC_WIDTH, vec_load(from + column + VEC_WIDTH));
				continue;
			}
			memset(to, 0, ATTEND_STRIP * sizeof(float));
			memcpy(to, from + column, here * sizeof(float));
		}
	}
}

/* ---- register tiles */

/* A product of rows [rows, depth] with a strip whose rows lie strip_stride apart. Each sum is one chain of
 * fused multiply-adds in the order of depth, whatever rows is: what keeps the bits of a row its own. */
VEC_INLINE void attend_tile(const size_t rows, const float *left, size_t stride, size_t depth,
                            const float *strip, size_t strip_stride, vec (*sums)[2])
{
#pragma GCC unroll 16
	for (size_t r = 0; r < rows; r++)
		sums[r][0] = sums[r][1] = vec_zero();
	for (size_t p = 0; p < depth; p++) {
		const vec first = vec_load(strip + p * strip_stride);
		const vec second = vec_load(strip + p * strip_stride + VEC_WIDTH);
#pragma GCC unroll 16
		for (size_t r = 0; r < rows; r++) {
			const vec x = vec_broadcast(left + r * stride + p);
			sums[r][0] = vec_fma(x, first, sums[r][0]);
			sums[r][1] = vec_fma(x, second, sums[r][1]);
		}
	}
}

#define ATTEND_CASE(n, body)                                                                                 \
	case n:                                                                                              \
		body((size_t)n);                                                                             \
		break;
#define ATTEND_FIVE(body)                                                                                    \
	ATTEND_CASE(1, body)                                                                                 \
	ATTEND_CASE(2, body) ATTEND_CASE(3, body) ATTEND_CASE(4, body) ATTEND_CASE(5, body)
#if VEC_REGISTERS == 32
#define ATTEND_MORE(body)                                                                                    \
	ATTEND_CASE(6, body)                                                                                 \
	ATTEND_CASE(7, body)                                                                                 \
	ATTEND_CASE(8, body)                                                                                 \
	ATTEND_CASE(9, body)                                                                                 \
	ATTEND_CASE(10, body) ATTEND_CASE(11, body) ATTEND_CASE(12, body) ATTEND_CASE(13, body)
#else
#define ATTEND_MORE(body)
#endif
/* body(number of rows) with a constant: every number has a tile of its own, or, where compiling many takes
 * too long, one serves all. */
#ifdef ATTN_ONE_TILE
#define ATTEND_EACH_ROWS(rows, body) body(attn_smaller(rows, ATTEND_ROWS));
#else
#define ATTEND_EACH_ROWS(rows, body)                                                                         \
	switch (rows) {                                                                                      \
		ATTEND_FIVE(body)                                                                            \
		ATTEND_MORE(body)                                                                            \
	default:                                                                                             \
		body(ATTEND_ROWS);                                                                           \
		break;                                                                                       \
	}
#endif

/* ---- scores */

VEC_INLINE void attend_score_tile(const size_t rows, const struct attn_score_panel *p, size_t row,
                                  const float *strip, float *scores)
{
	vec sums[ATTEND_ROWS][2];
	attend_tile(rows, p->query + row * p->query_stride, p->query_stride, p->width, strip, ATTEND_STRIP,
	            sums);
#pragma GCC unroll 16
	for (size_t r = 0; r < rows; r++) {
		vec_store(scores + r * p->stride, sums[r][0]);
		vec_store(scores + r * p->stride + VEC_WIDTH, sums[r][1]);
	}
}

VEC_TARGET static void attend_scores(const struct attn_score_panel *p)
{
	for (size_t column = 0; column < p->columns; column += ATTEND_STRIP) {
		const float *strip = p->strips + column * p->width;
		for (size_t row = 0; row < p->rows; row += ATTEND_ROWS) {
			float *scores = p->scores + row * p->stride + column;
#define SCORE_TILE(n) attend_score_tile(n, p, row, strip, scores)
			ATTEND_EACH_ROWS(p->rows - row, SCORE_TILE)
#undef SCORE_TILE
		}
	}
}

/* ---- exponentials */

/* Vectors that are worked on in turn, so that none waits for its own last step. */
#define ATTEND_ABREAST ((size_t)4)

#define ATTEND_EACH(statement)                                                                               \
	_Pragma("GCC unroll 4") for (size_t i = 0; i < count; i++)                                           \
	{                                                                                                    \
		statement;                                                                                   \
	}

/* x[i] = exp(x[i]) for x <= 0, NaN for NaN: x = k ln 2 + r, |r| <= ln 2 / 2, and a polynomial of degree 6 for
 * exp(r), of least greatest relative error (2e-9). */
VEC_INLINE void attend_exp(const size_t count, vec *x)
{
	static const float STEPS[] = {8.374162949621677e-3f,
	                              0.04166800156235695f,
	                              0.16666431725025177f,
	                              0.4999999403953552f,
	                              1.0f,
	                              1.0f};
	vec k[ATTEND_ABREAST], p[ATTEND_ABREAST];
	ATTEND_EACH(x[i] = vec_max(vec_set(-104.0f), x[i])) /* 0 from here on */
	ATTEND_EACH(k[i] = vec_fma(x[i], vec_set(1.44269504088896341f), vec_set(VEC_SHIFTER)))
	ATTEND_EACH(p[i] = vec_sub(k[i], vec_set(VEC_SHIFTER)))
	ATTEND_EACH(x[i] = vec_fma(p[i], vec_set(-0.693359375f), x[i]))
	ATTEND_EACH(x[i] = vec_fma(p[i], vec_set(2.12194440e-4f), x[i]))
	ATTEND_EACH(p[i] = vec_set(1.384364441037178e-3f))
#pragma GCC unroll 6
	for (size_t step = 0; step < sizeof(STEPS) / sizeof(STEPS[0]); step++)
		ATTEND_EACH(p[i] = vec_fma(p[i], x[i], vec_set(STEPS[step])))
	ATTEND_EACH(x[i] = vec_scale_down(p[i], k[i]))
}

/* ---- what comes between the product and the softmax */

/* scores[at ... at + count) = what statement makes of x, which holds them; a whole vector or the last part.
 */
#define ATTEND_ROW(scores, n, statement)                                                                     \
	for (size_t at = 0; at < (n); at += VEC_WIDTH) {                                                     \
		const size_t here = attn_smaller(VEC_WIDTH, (n)-at);                                         \
		vec x = here == VEC_WIDTH ? vec_load((scores) + at) : vec_load_part((scores) + at, here);    \
		statement;                                                                                   \
		if (here == VEC_WIDTH)                                                                       \
			vec_store((scores) + at, x);                                                         \
		else                                                                                         \
			vec_store_part((scores) + at, here, x);                                              \
	}

/* Near 0 an odd polynomial (Cephes' tanhf), else (1 - e) / (1 + e), e = exp(-2 |x|). */
VEC_INLINE vec attend_tanh(vec x)
{
	const vec size = vec_abs(x), z = vec_mul(x, x), one = vec_set(1);
	vec e = vec_mul(size, vec_set(-2));
	attend_exp(1, &e);
	const vec far = vec_with_sign(vec_div(vec_sub(one, e), vec_add(one, e)), x);
	vec p = vec_fma(vec_set(-5.70498872745e-3f), z, vec_set(2.06390887954e-2f));
	p = vec_fma(p, z, vec_set(-5.37397155531e-2f));
	p = vec_fma(p, z, vec_set(1.33314422036e-1f));
	p = vec_fma(p, z, vec_set(-3.33332819422e-1f));
	return vec_select(vec_less(size, vec_set(0.625f)), vec_fma(vec_mul(p, z), x, x), far);
}

VEC_TARGET static void attend_cap(float *scores, size_t n, float softcap)
{
	const vec cap = vec_set(softcap);
	ATTEND_ROW(scores, n, x = vec_mul(cap, attend_tanh(vec_div(x, cap))))
}

VEC_TARGET static void attend_add(float *scores, size_t n, const float *bias)
{
	const vec none = vec_set(-INFINITY), least = vec_set(-FLT_MAX);
	ATTEND_ROW(scores, n, {
		const vec add = here == VEC_WIDTH ? vec_load(bias + at) : vec_load_part(bias + at, here);
		x = vec_select(vec_less(add, least), none, vec_add(x, add));
	})
}

VEC_TARGET static void attend_slope(float *scores, size_t n, float slope, float distance)
{
	const vec factor = vec_set(slope);
	ATTEND_ROW(scores, n, {
		const vec from = vec_sub(vec_set(distance - (float)at), vec_lanes());
		x = vec_fnma(factor, vec_abs(from), x);
	})
}

VEC_TARGET static void attend_mask(float *scores, size_t n, const uint8_t *mask)
{
	uint8_t last[VEC_WIDTH] = {0};
	ATTEND_ROW(scores, n, {
		const uint8_t *bytes = mask + at;
		if (here < VEC_WIDTH)
			bytes = memcpy(last, bytes, here);
		x = vec_select(vec_bytes(bytes), x, vec_set(-INFINITY));
	})
}

/* ---- softmax */

VEC_INLINE float attend_row_max(const float *row, size_t n)
{
	vec a = vec_set(-INFINITY), b = a;
	size_t i = 0;
	for (; i + 2 * VEC_WIDTH <= n; i += 2 * VEC_WIDTH) {
		a = vec_max(vec_load(row + i), a);
		b = vec_max(vec_load(row + i + VEC_WIDTH), b);
	}
	for (; i < n; i += VEC_WIDTH)
		a = vec_max(vec_load(row + i), a);
	return vec_greatest(vec_max(a, b));
}

/* Sums of a block of this many numbers are kept in float lanes, sums of blocks in double. */
#define ATTEND_SUM_BLOCK ((size_t)512)

/* count vectors of a row; adds their exponentials to *sum. */
VEC_INLINE void attend_exp_at(const size_t count, float *row, vec shift, vec *sum)
{
	vec x[ATTEND_ABREAST];
	ATTEND_EACH(x[i] = vec_sub(vec_load(row + i * VEC_WIDTH), shift))
	attend_exp(count, x);
	ATTEND_EACH(vec_store(row + i * VEC_WIDTH, x[i]))
	ATTEND_EACH(*sum = vec_add(*sum, x[i]))
}

VEC_INLINE double attend_row_exp(float *row, size_t n, float shift)
{
	const vec less = vec_set(shift);
	double total = 0;
	for (size_t start = 0; start < n; start += ATTEND_SUM_BLOCK) {
		const size_t end = attn_smaller(n, start + ATTEND_SUM_BLOCK);
		vec sum = vec_zero();
		size_t i = start;
		for (; i + ATTEND_ABREAST * VEC_WIDTH <= end; i += ATTEND_ABREAST * VEC_WIDTH)
			attend_exp_at(ATTEND_ABREAST, row + i, less, &sum);
		for (; i < end; i += VEC_WIDTH)
			attend_exp_at(1, row + i, less, &sum);
		total += (double)vec_sum(sum);
	}
	return total;
}

VEC_TARGET static void attend_softmax(const struct attn_softmax_panel *p)
{
	for (size_t r = 0; r < p->rows; r++) {
		float *row = p->scores + r * p->stride;
		const float max = attend_row_max(row, p->columns);
		const float shift = p->floor > max ? p->floor : max;
		p->maximum[r] = max;
		p->sum[r] = isinf(shift) ? 0 : attend_row_exp(row, p->columns, shift);
	}
}

/* ---- weights */

/* Whole pairs of vectors of out, aligned to a vector where stream; how many numbers they are. */
VEC_INLINE size_t attend_scale_pairs(float *out, const float *row, size_t n, vec factor, const bool stream)
{
	size_t i = 0;
	for (; i + 2 * VEC_WIDTH <= n; i += 2 * VEC_WIDTH) {
		const vec first = vec_mul(vec_load(row + i), factor);
		const vec second = vec_mul(vec_load(row + i + VEC_WIDTH), factor);
		if (stream) {
			vec_stream(out + i, first);
			vec_stream(out + i + VEC_WIDTH, second);
		} else {
			vec_store(out + i, first);
			vec_store(out + i + VEC_WIDTH, second);
		}
	}
	return i;
}

/* Streams from the first place of out that is aligned for vectors, the rest one by one: a cache line that is
 * streamed in part and stored in part waits for memory. */
VEC_INLINE void attend_scale_stream(float *out, const float *row, size_t n, float factor)
{
	const size_t past = (uintptr_t)out / sizeof(float) % VEC_WIDTH;
	const size_t head = past == 0 ? 0 : attn_smaller(n, VEC_WIDTH - past);
	size_t i = 0;
	for (; i < head; i++)
		vec_stream_one(out + i, row[i] * factor);
	i += attend_scale_pairs(out + i, row + i, n - i, vec_set(factor), true);
	for (; i < n; i++)
		vec_stream_one(out + i, row[i] * factor);
}

VEC_TARGET static void attend_scale(float *out, const float *row, size_t n, float factor)
{
	const vec by = vec_set(factor);
	size_t i = attend_scale_pairs(out, row, n, by, false);
	for (; i + VEC_WIDTH <= n; i += VEC_WIDTH)
		vec_store(out + i, vec_mul(vec_load(row + i), by));
	if (i < n)
		vec_store_part(out + i, n - i, vec_mul(vec_load_part(row + i, n - i), by));
}

/* ---- values */

/* Rows from..from + depth of the values, and where the sums go. */
struct attend_block {
	size_t from, depth;
	const float *strip; /* its row number from */
	float *out;
	size_t stride;
};

/* Adds the sums of a block to the context, or puts them there if it is the first; the last one divides.
 * *probe becomes NaN where the context is not finite. */
VEC_INLINE void attend_value_tile(const size_t rows, const struct attn_value_panel *p, size_t row,
                                  const struct attend_block *block, vec *probe)
{
	const bool last = block->from + block->depth == p->depth;
	vec sums[ATTEND_ROWS][2];
	attend_tile(rows, p->weights + row * p->stride + block->from, p->stride, block->depth, block->strip,
	            p->row_stride, sums);
#pragma GCC unroll 16
	for (size_t r = 0; r < rows; r++) {
		float *out = block->out + r * block->stride;
		if (block->from > 0) {
			sums[r][0] = vec_add(vec_load(out), sums[r][0]);
			sums[r][1] = vec_add(vec_load(out + VEC_WIDTH), sums[r][1]);
		}
		if (last) {
			const vec inverse = vec_set(p->inverse[row + r]);
			sums[r][0] = vec_mul(sums[r][0], inverse);
			sums[r][1] = vec_mul(sums[r][1], inverse);
			*probe = vec_fma(sums[r][0], vec_zero(), *probe);
			*probe = vec_fma(sums[r][1], vec_zero(), *probe);
		}
		vec_store(out, sums[r][0]);
		vec_store(out + VEC_WIDTH, sums[r][1]);
	}
}

VEC_INLINE void attend_value_rows(const struct attn_value_panel *p, size_t row, size_t rows,
                                  const struct attend_block *block, vec *probe){
#define VALUE_TILE(n) attend_value_tile(n, p, row, block, probe)
    ATTEND_EACH_ROWS(rows, VALUE_TILE)
#undef VALUE_TILE
}

/* Columns of a strip that the context has only in part go by way of a whole one. */
VEC_INLINE void attend_value_edge(const struct attn_value_panel *p, size_t row, size_t rows, size_t columns,
                                  const struct attend_block *block, vec *probe)
{
	alignas(64) float whole[ATTEND_ROWS * ATTEND_STRIP] = {0};
	struct attend_block edge = *block;
	edge.out = whole;
	edge.stride = ATTEND_STRIP;
	for (size_t r = 0; block->from > 0 && r < rows; r++)
		memcpy(whole + r * ATTEND_STRIP, block->out + r * block->stride, columns * sizeof(float));
	attend_value_rows(p, row, rows, &edge, probe);
	for (size_t r = 0; r < rows; r++)
		memcpy(block->out + r * block->stride, whole + r * ATTEND_STRIP, columns * sizeof(float));
}

/* Columns [from, from + depth) of the scaled weights of rows [row, row + rows): written in between tiles,
 * they leave for memory while those compute. Blocks end where a cache line of the output does. */
VEC_INLINE void attend_scaled_rows(const struct attn_value_panel *p, size_t row, size_t rows, size_t from,
                                   size_t depth)
{
	const size_t line = 64 / sizeof(float), end = from + depth;
	for (size_t r = row; r < row + rows; r++) {
		float *out = p->scaled + r * p->scaled_stride;
		const size_t shift = (uintptr_t)out / sizeof(float) % line;
		const size_t first = from == 0 ? 0 : attn_round_up(from + shift, line) - shift;
		const size_t last = end == p->depth ? end : attn_round_up(end + shift, line) - shift;
		if (first >= p->depth || first >= last)
			continue;
		const float *weights = p->weights + r * p->stride + first;
		const size_t count = attn_smaller(last, p->depth) - first;
		if (p->scaled_streams)
			attend_scale_stream(out + first, weights, count, p->inverse[r]);
		else
			attend_scale(out + first, weights, count, p->inverse[r]);
	}
}

/* The tiles of one strip for one block of depth. */
VEC_INLINE void attend_value_strip(const struct attn_value_panel *p, size_t column, size_t from, vec *probe)
{
	const size_t columns = attn_smaller(ATTEND_STRIP, p->width - column);
	const size_t depth = attn_smaller(ATTEND_DEPTH, p->depth - from);
	const float *strip = p->values + column / ATTEND_STRIP * p->strip_stride + from * p->row_stride;
	for (size_t row = 0; row < p->rows; row += ATTEND_ROWS) {
		const size_t rows = attn_smaller(ATTEND_ROWS, p->rows - row);
		const struct attend_block block = {
		    .from = from,
		    .depth = depth,
		    .strip = strip,
		    .out = p->context + row * p->context_stride + column,
		    .stride = p->context_stride,
		};
		if (columns == ATTEND_STRIP)
			attend_value_rows(p, row, rows, &block, probe);
		else
			attend_value_edge(p, row, rows, columns, &block, probe);
		if (p->scaled != NULL) { /* its share of what the tile has left in L1 */
			const size_t strips = attn_divide_up(p->width, ATTEND_STRIP);
			const size_t share = column / ATTEND_STRIP, first = rows * share / strips;
			attend_scaled_rows(p, row + first, rows * (share + 1) / strips - first, from, depth);
		}
	}
}

VEC_TARGET static bool attend_context(const struct attn_value_panel *p)
{
	vec probe = vec_zero();
	for (size_t from = 0; from < p->depth; from += ATTEND_DEPTH)
		for (size_t column = 0; column < p->width; column += ATTEND_STRIP)
			attend_value_strip(p, column, from, &probe);
	if (p->scaled != NULL && p->scaled_streams)
		vec_stream_end();
	return vec_sum(probe) == 0;
}

/* ---- few rows, keys and values as they lie */

/* Keys whose dot products with every row are made in turn, while they are in L1. */
#define ATTEND_FEW ((size_t)32)

/* Dot products that are summed over their lanes together. */
#define ATTEND_DOTS ((size_t)4)

typedef float attend_float4 __attribute__((vector_size(16), aligned(4), may_alias));

/* The two halves of every sum, one added to the other; what is left over are 8 lanes. */
VEC_INLINE attend_float8 attend_fold8(vec sum)
{
	float lanes[VEC_WIDTH];
	attend_float8 folded;
	vec_store(lanes, sum);
	folded = *(const attend_float8 *)lanes;
	if (VEC_WIDTH == 16)
		folded += *(const attend_float8 *)(lanes + VEC_WIDTH - 8);
	return folded;
}

/* Sums of the lanes of four vectors. */
VEC_INLINE attend_float4 attend_lane_sums(const vec *sums)
{
	attend_float8 f[ATTEND_DOTS];
#pragma GCC unroll 4
	for (size_t i = 0; i < ATTEND_DOTS; i++)
		f[i] = attend_fold8(sums[i]);
	const attend_float8 ab = __builtin_shufflevector(f[0], f[1], 0, 8, 1, 9, 4, 12, 5, 13) +
	                         __builtin_shufflevector(f[0], f[1], 2, 10, 3, 11, 6, 14, 7, 15);
	const attend_float8 cd = __builtin_shufflevector(f[2], f[3], 0, 8, 1, 9, 4, 12, 5, 13) +
	                         __builtin_shufflevector(f[2], f[3], 2, 10, 3, 11, 6, 14, 7, 15);
	const attend_float8 all = __builtin_shufflevector(ab, cd, 0, 1, 8, 9, 4, 5, 12, 13) +
	                          __builtin_shufflevector(ab, cd, 2, 3, 10, 11, 6, 7, 14, 15);
	return __builtin_shufflevector(all, all, 0, 1, 2, 3) + __builtin_shufflevector(all, all, 4, 5, 6, 7);
}

/* Scores of four keys; keys[i] are [width]. Which of the four a key is changes no bit of its score. */
VEC_INLINE attend_float4 attend_dots4(const float *query, const float *const *keys, size_t width)
{
	vec sums[ATTEND_DOTS];
	size_t d = 0;
#pragma GCC unroll 4
	for (size_t i = 0; i < ATTEND_DOTS; i++)
		sums[i] = vec_zero();
	for (; d + VEC_WIDTH <= width; d += VEC_WIDTH) {
		const vec x = vec_load(query + d);
#pragma GCC unroll 4
		for (size_t i = 0; i < ATTEND_DOTS; i++)
			sums[i] = vec_fma(x, vec_load(keys[i] + d), sums[i]);
	}
	if (d < width) {
		const vec x = vec_load_part(query + d, width - d);
#pragma GCC unroll 4
		for (size_t i = 0; i < ATTEND_DOTS; i++)
			sums[i] = vec_fma(x, vec_load_part(keys[i] + d, width - d), sums[i]);
	}
	return attend_lane_sums(sums);
}

/* Scores of one row; places past the last key repeat it. */
VEC_INLINE void attend_dots_row(const float *query, const float *keys, size_t stride, size_t count,
                                size_t width, float scale, float *scores)
{
	for (size_t key = 0; key < count; key += ATTEND_DOTS) {
		const size_t here = attn_smaller(ATTEND_DOTS, count - key);
		const float *at[ATTEND_DOTS];
#pragma GCC unroll 4
		for (size_t i = 0; i < ATTEND_DOTS; i++)
			at[i] = keys + (key + attn_smaller(i, here - 1)) * stride;
		const attend_float4 dots = attend_dots4(query, at, width) * scale;
		if (here == ATTEND_DOTS)
			*(attend_float4 *)(scores + key) = dots;
		else
			memcpy(scores + key, &dots, here * sizeof(float));
	}
}

/* Row r's share of the lines of the next block, so that memory works while the rows do. One row alone is as
 * fast as the CPU foresees. */
VEC_INLINE void attend_prefetch_share(const float *block, size_t stride, size_t count, size_t width, size_t r,
                                      size_t rows)
{
	const size_t first = count * r / rows;
	if (rows > 1)
		attend_prefetch(block + first * stride, stride, count * (r + 1) / rows - first, width);
}

VEC_TARGET static void attend_dots(const struct attn_dots *p)
{
	for (size_t first = 0; first < p->count; first += ATTEND_FEW) {
		const size_t here = attn_smaller(p->count - first, ATTEND_FEW), next = first + here;
		const size_t then = attn_smaller(p->count - next, ATTEND_FEW);
		for (size_t r = 0; r < p->rows; r++) {
			attend_prefetch_share(p->keys + next * p->key_stride, p->key_stride, then, p->width,
			                      r, p->rows);
			attend_dots_row(p->query + r * p->query_stride, p->keys + first * p->key_stride,
			                p->key_stride, here, p->width, p->scale,
			                p->scores + r * p->stride + first);
		}
	}
}

/* out [vectors] += weights [count] * values, vectors being a constant. */
VEC_INLINE void attend_gather_columns(const size_t vectors, const float *weights, const float *values,
                                      size_t stride, size_t count, float *out)
{
	vec sums[8];
#pragma GCC unroll 8
	for (size_t i = 0; i < vectors; i++)
		sums[i] = vec_zero();
	for (size_t key = 0; key < count; key++) {
		const vec weight = vec_broadcast(weights + key);
#pragma GCC unroll 8
		for (size_t i = 0; i < vectors; i++)
			sums[i] = vec_fma(weight, vec_load(values + key * stride + i * VEC_WIDTH), sums[i]);
	}
#pragma GCC unroll 8
	for (size_t i = 0; i < vectors; i++)
		vec_store(out + i * VEC_WIDTH, vec_add(vec_load(out + i * VEC_WIDTH), sums[i]));
}

VEC_INLINE void attend_gather_row(const float *weights, const float *values, size_t stride, size_t count,
                                  size_t width, float *out)
{
	size_t d = 0;
	for (; d + 8 * VEC_WIDTH <= width; d += 8 * VEC_WIDTH)
		attend_gather_columns(8, weights, values + d, stride, count, out + d);
	for (; d + 4 * VEC_WIDTH <= width; d += 4 * VEC_WIDTH)
		attend_gather_columns(4, weights, values + d, stride, count, out + d);
	for (; d + VEC_WIDTH <= width; d += VEC_WIDTH)
		attend_gather_columns(1, weights, values + d, stride, count, out + d);
	for (; d < width; d++) {
		float sum = 0;
		for (size_t key = 0; key < count; key++)
			sum += weights[key] * values[key * stride + d];
		out[d] += sum;
	}
}

VEC_TARGET static void attend_gather(const struct attn_gather *p)
{
	memset(p->out, 0, p->rows * p->width * sizeof(float));
	for (size_t first = 0; first < p->count; first += ATTEND_FEW) {
		const size_t here = attn_smaller(p->count - first, ATTEND_FEW), next = first + here;
		const size_t then = attn_smaller(p->count - next, ATTEND_FEW);
		for (size_t r = 0; r < p->rows; r++) {
			attend_prefetch_share(p->values + next * p->value_stride, p->value_stride, then,
			                      p->width, r, p->rows);
			attend_gather_row(p->weights + r * p->stride + first,
			                  p->values + first * p->value_stride, p->value_stride, here,
			                  p->width, p->out + r * p->width);
		}
	}
}

static const struct attn_attention_kernels ATTEND_KERNELS = {
    .strip = ATTEND_STRIP,
    .tile_rows = ATTEND_ROWS,
    .pack_keys = attend_pack_keys,
    .pack_values = attend_pack_values,
    .scores = attend_scores,
    .cap = attend_cap,
    .add = attend_add,
    .slope = attend_slope,
    .mask = attend_mask,
    .softmax = attend_softmax,
    .scale = attend_scale,
    .context = attend_context,
    .dots = attend_dots,
    .gather = attend_gather,
};

#endif
