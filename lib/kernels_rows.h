/*
 * kernels_rows.h - row maximum and exponential over groups of lanes, for whatever vectors the includer has.
 *
 * The bodies are written with the compiler's own vectors and inlined into functions that are built for one
 * instruction set each: kernels_blas.c for the least CPU, kernels_avx2.c for AVX2 with FMA.
 */
#ifndef ATTN_KERNELS_ROWS_H
#define ATTN_KERNELS_ROWS_H

#include "kernels.h"

#include <math.h>

#define ATTN_ROWS_INLINE static inline __attribute__((always_inline))
#define ATTN_ROWS_WIDTH ((size_t)8)

typedef float attn_rows_vector __attribute__((vector_size(32), may_alias));
typedef int32_t attn_rows_ints __attribute__((vector_size(32), may_alias));

/* Lanes of yes where the mask is all ones, of no where it is 0. */
#define ATTN_ROWS_SELECT(mask, yes, no)                                                                      \
	((attn_rows_vector)(((mask) & (attn_rows_ints)(yes)) | (~(mask) & (attn_rows_ints)(no))))

ATTN_ROWS_INLINE float attn_rows_max(const float *row, size_t n)
{
	attn_rows_vector a = (attn_rows_vector){0} - INFINITY;
	attn_rows_vector b = a;
	for (size_t i = 0; i < n; i += 2 * ATTN_ROWS_WIDTH) {
		attn_rows_vector x = *(const attn_rows_vector *)(row + i);
		attn_rows_vector y = *(const attn_rows_vector *)(row + i + ATTN_ROWS_WIDTH);
		a = ATTN_ROWS_SELECT(x > a, x, a);
		b = ATTN_ROWS_SELECT(y > b, y, b);
	}
	a = ATTN_ROWS_SELECT(b > a, b, a);
	float max = -INFINITY;
	for (size_t lane = 0; lane < ATTN_ROWS_WIDTH; lane++)
		max = a[lane] > max ? a[lane] : max;
	return max;
}

/* *v = exp(*v): x = k ln 2 + r, |r| <= ln 2 / 2, a polynomial for exp(r) (coefficients of Cephes' expf),
 * times 2^k in two steps so that results under the least normal number round as they should. NaN stays NaN.
 */
ATTN_ROWS_INLINE void attn_rows_exp8(attn_rows_vector *v)
{
	const attn_rows_vector zero = {0};
	const attn_rows_vector high = zero + 89.0f, low = zero - 104.0f; /* infinity and 0 from here on */
	attn_rows_vector x = *v;
	x = ATTN_ROWS_SELECT(x > high, high, x);
	x = ATTN_ROWS_SELECT(x < low, low, x);
	/* Adding 1.5 * 2^23 leaves the nearest integer in the low bits. */
	attn_rows_vector shifted = x * 1.44269504088896341f + 12582912.0f;
	attn_rows_vector k = shifted - 12582912.0f;
	attn_rows_vector r = x - k * 0.693359375f;
	r = r - k * -2.12194440e-4f;
	attn_rows_vector p = zero + 1.9875691500e-4f;
	p = p * r + 1.3981999507e-3f;
	p = p * r + 8.3334519073e-3f;
	p = p * r + 4.1665795894e-2f;
	p = p * r + 1.6666665459e-1f;
	p = p * r + 5.0000001201e-1f;
	p = p * (r * r) + r;
	p = p + 1.0f;
	attn_rows_ints power = (attn_rows_ints)shifted - 0x4b400000;
	attn_rows_ints half = power >> 1;
	attn_rows_ints rest = power - half;
	*v = p * (attn_rows_vector)((half + 127) << 23) * (attn_rows_vector)((rest + 127) << 23);
}

/* Sums of a block of this many numbers are kept in float lanes, sums of blocks in double. */
#define ATTN_ROWS_BLOCK ((size_t)512)

ATTN_ROWS_INLINE double attn_rows_exp(float *row, size_t n, float max)
{
	double total = 0;
	for (size_t start = 0; start < n; start += ATTN_ROWS_BLOCK) {
		size_t end = n - start < ATTN_ROWS_BLOCK ? n : start + ATTN_ROWS_BLOCK;
		attn_rows_vector a = {0}, b = {0};
		for (size_t i = start; i < end; i += 2 * ATTN_ROWS_WIDTH) {
			attn_rows_vector *x = (attn_rows_vector *)(row + i);
			attn_rows_vector first = x[0] - max, second = x[1] - max;
			attn_rows_exp8(&first);
			attn_rows_exp8(&second);
			x[0] = first;
			x[1] = second;
			a += first;
			b += second;
		}
		for (size_t lane = 0; lane < ATTN_ROWS_WIDTH; lane++)
			total += (double)a[lane] + (double)b[lane];
	}
	return total;
}

#endif
