/*
 * kernels_norm.h - norms of rows by the compiler's own vectors, inlined into functions that are built for one
 * instruction set each, as kernels_rows.h is.
 */
#ifndef ATTN_KERNELS_NORM_H
#define ATTN_KERNELS_NORM_H

#include <math.h>
#include <string.h>

#include "norm.h"

#define ATTN_NORM_INLINE static inline __attribute__((always_inline))
#define ATTN_NORM_WIDTH ((size_t)8)
#define ATTN_NORM_SUMS ((size_t)4) /* vectors of doubles that are summed side by side */

typedef float attn_norm_floats __attribute__((vector_size(32), may_alias, aligned(4)));
typedef float attn_norm_quad __attribute__((vector_size(16), may_alias, aligned(4)));
typedef double attn_norm_doubles __attribute__((vector_size(32)));

/* What a row sums up to: its numbers, or the squares of its numbers less shift. Lane by lane, then across, so
 * that the order of the sum follows from width alone. */
ATTN_NORM_INLINE double attn_norm_sum(const float *row, size_t width, double shift, const bool squares)
{
	attn_norm_doubles sums[ATTN_NORM_SUMS] = {{0}};
	double sum = 0;
	size_t i = 0;
	for (; i + 4 * ATTN_NORM_SUMS <= width; i += 4 * ATTN_NORM_SUMS) {
#pragma GCC unroll 4
		for (size_t k = 0; k < ATTN_NORM_SUMS; k++) {
			const attn_norm_quad x = *(const attn_norm_quad *)(row + i + 4 * k);
			const attn_norm_doubles less = __builtin_convertvector(x, attn_norm_doubles) - shift;
			sums[k] += squares ? less * less : less;
		}
	}
	for (; i < width; i++) {
		double x = (double)row[i] - shift;
		sum += squares ? x * x : x;
	}
	const attn_norm_doubles total = (sums[0] + sums[1]) + (sums[2] + sums[3]);
	return sum + ((total[0] + total[1]) + (total[2] + total[3]));
}

/* out = (in - mean) * factor * weight (+ bias), the difference as exact as a float is: mean is high + low. */
ATTN_NORM_INLINE void attn_norm_apply(const attn_norm *norm, size_t width, double mean, double factor,
                                      const float *in, float *out)
{
	const float high = (float)mean, low = (float)(mean - (double)high), times = (float)factor;
	size_t i = 0;
	for (; i + ATTN_NORM_WIDTH <= width; i += ATTN_NORM_WIDTH) {
		attn_norm_floats x = *(const attn_norm_floats *)(in + i);
		x = (x - high - low) * times * *(const attn_norm_floats *)(norm->weight + i);
		if (norm->bias != NULL)
			x += *(const attn_norm_floats *)(norm->bias + i);
		*(attn_norm_floats *)(out + i) = x;
	}
	for (; i < width; i++) {
		float x = (in[i] - high - low) * times * norm->weight[i];
		out[i] = norm->bias != NULL ? x + norm->bias[i] : x;
	}
}

ATTN_NORM_INLINE void attn_norm_vectors(const attn_norm *norm, size_t width, const float *in, float *out)
{
	const double count = (double)width;
	if (norm->kind == ATTN_NORM_NONE) {
		if (out != in)
			memcpy(out, in, width * sizeof(*out));
		return;
	}
	const bool centred = norm->kind == ATTN_NORM_LAYER;
	const double mean = centred ? attn_norm_sum(in, width, 0, false) / count : 0;
	const double square = attn_norm_sum(in, width, mean, true) / count;
	attn_norm_apply(norm, width, mean, 1 / sqrt(square + norm->eps), in, out);
}

#endif
