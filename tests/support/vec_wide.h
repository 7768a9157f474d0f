/*
 * vec_wide.h - the names of kernels_vec_avx512.h over plain arrays, so that the templates of kernels run 16
 * wide on any CPU.
 */
#ifndef ATTND_TESTS_VEC_WIDE_H
#define ATTND_TESTS_VEC_WIDE_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define VEC_TARGET
#define VEC_INLINE static inline

/* These functions are not inlined everywhere, as those of an instruction set are, and numbers of rows that a
 * template never asks for look possible. */
#ifndef __clang__
#pragma GCC diagnostic ignored "-Warray-bounds"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#define VEC_WIDTH 16
#define VEC_REGISTERS 32

typedef float vec __attribute__((vector_size(64), aligned(16)));
typedef int32_t vec_mask __attribute__((vector_size(64))); /* lanes of all ones or all zeros */

/* A vector of what the expression gives for each lane i. */
#define VEC_EACH(expression)                                                                                 \
	vec each;                                                                                            \
	for (size_t i = 0; i < VEC_WIDTH; i++)                                                               \
		each[i] = (expression);                                                                      \
	return each

VEC_INLINE vec vec_load(const float *at)
{
	vec a;
	memcpy(&a, at, sizeof(a));
	return a;
}

VEC_INLINE void vec_store(float *at, vec a)
{
	memcpy(at, &a, sizeof(a));
}

VEC_INLINE vec vec_load_part(const float *at, size_t count)
{
	VEC_EACH(i < count ? at[i] : 0);
}

VEC_INLINE void vec_store_part(float *at, size_t count, vec a)
{
	memcpy(at, &a, count * sizeof(float));
}

VEC_INLINE void vec_stream(float *at, vec a)
{
	vec_store(at, a);
}

VEC_INLINE void vec_stream_one(float *at, float a)
{
	*at = a;
}

VEC_INLINE void vec_stream_end(void)
{
}

VEC_INLINE vec vec_set(float a)
{
	return (vec){0} + a;
}

VEC_INLINE vec vec_broadcast(const float *at)
{
	return (vec){0} + *at;
}

VEC_INLINE vec vec_zero(void)
{
	return (vec){0};
}

VEC_INLINE vec vec_add(vec a, vec b)
{
	return a + b;
}

VEC_INLINE vec vec_sub(vec a, vec b)
{
	return a - b;
}

VEC_INLINE vec vec_mul(vec a, vec b)
{
	return a * b;
}

VEC_INLINE vec vec_div(vec a, vec b)
{
	return a / b;
}

VEC_INLINE vec vec_fma(vec a, vec b, vec c)
{
	return a * b + c;
}

VEC_INLINE vec vec_fnma(vec a, vec b, vec c)
{
	return c - a * b;
}

VEC_INLINE vec vec_select(vec_mask mask, vec yes, vec no)
{
	return (vec)((mask & (vec_mask)yes) | (~mask & (vec_mask)no));
}

VEC_INLINE vec vec_max(vec a, vec b)
{
	return vec_select(a > b, a, b);
}

VEC_INLINE vec vec_min(vec a, vec b)
{
	return vec_select(a < b, a, b);
}

VEC_INLINE vec vec_abs(vec a)
{
	VEC_EACH(fabsf(a[i]));
}

VEC_INLINE vec vec_with_sign(vec a, vec b)
{
	VEC_EACH(copysignf(a[i], b[i]));
}

VEC_INLINE vec vec_round(vec a)
{
	VEC_EACH(rintf(a[i]));
}

VEC_INLINE vec vec_scale(vec a, vec n)
{
	VEC_EACH(isnan(n[i]) ? NAN : ldexpf(a[i], (int)n[i]));
}

#define VEC_SHIFTER (12582912.0f + 151)

VEC_INLINE vec vec_scale_down(vec a, vec shifted)
{
	VEC_EACH(isnan(shifted[i]) ? NAN : ldexpf(a[i], (int)(shifted[i] - VEC_SHIFTER)));
}

VEC_INLINE vec_mask vec_less(vec a, vec b)
{
	return a < b;
}

VEC_INLINE vec_mask vec_is_nan(vec a)
{
	return a != a;
}

VEC_INLINE vec_mask vec_bytes(const uint8_t *at)
{
	vec_mask each;
	for (size_t i = 0; i < VEC_WIDTH; i++)
		each[i] = at[i] != 0 ? -1 : 0;
	return each;
}

VEC_INLINE vec vec_lanes(void)
{
	VEC_EACH((float)i);
}

VEC_INLINE float vec_greatest(vec a)
{
	float greatest = a[0];
	for (size_t i = 1; i < VEC_WIDTH; i++)
		greatest = a[i] > greatest ? a[i] : greatest;
	return greatest;
}

VEC_INLINE float vec_sum(vec a)
{
	float sum = 0;
	for (size_t i = 0; i < VEC_WIDTH; i++)
		sum += a[i];
	return sum;
}

VEC_INLINE vec vec_keep(vec a)
{
	return a;
}

VEC_INLINE void vec_prefetch(const float *at)
{
	(void)at;
}

#endif
