/*
 * kernels_vec_avx2.h - the vectors of AVX2 with FMA under the names that templates of kernels use.
 *
 * A template (kernels_packed.h, ...) is written in terms of vec_* and included by one file for each
 * instruction set after the header that defines these; kernels_vec_avx512.h has the same names 16 wide.
 * Memory may have any alignment.
 */
#ifndef ATTN_KERNELS_VEC_AVX2_H
#define ATTN_KERNELS_VEC_AVX2_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define VEC_TARGET __attribute__((target("avx2,fma")))
#define VEC_INLINE static inline __attribute__((always_inline, target("avx2,fma")))

#define VEC_WIDTH 8
#define VEC_REGISTERS 16

typedef __m256 vec;
typedef __m256 vec_mask; /* lanes of all ones or all zeros */

VEC_INLINE vec vec_load(const float *at)
{
	return _mm256_loadu_ps(at);
}

VEC_INLINE void vec_store(float *at, vec a)
{
	_mm256_storeu_ps(at, a);
}

/* Lanes of the first count, at most VEC_WIDTH. */
VEC_INLINE __m256i vec_first(size_t count)
{
	const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
	return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), lane);
}

/* Touches the first count numbers alone; the other lanes are 0. */
VEC_INLINE vec vec_load_part(const float *at, size_t count)
{
	return _mm256_maskload_ps(at, vec_first(count));
}

VEC_INLINE void vec_store_part(float *at, size_t count, vec a)
{
	_mm256_maskstore_ps(at, vec_first(count), a);
}

/* Past the caches; at is aligned to a vector. */
VEC_INLINE void vec_stream(float *at, vec a)
{
	_mm256_stream_ps(at, a);
}

VEC_INLINE void vec_stream_one(float *at, float a)
{
	_mm_stream_si32((int *)at, _mm_cvtsi128_si32(_mm_castps_si128(_mm_set_ss(a))));
}

/* Lets other threads see what was streamed before anything that is written after it. */
VEC_INLINE void vec_stream_end(void)
{
	_mm_sfence();
}

VEC_INLINE vec vec_set(float a)
{
	return _mm256_set1_ps(a);
}

VEC_INLINE vec vec_broadcast(const float *at)
{
	return _mm256_broadcast_ss(at);
}

VEC_INLINE vec vec_zero(void)
{
	return _mm256_setzero_ps();
}

VEC_INLINE vec vec_add(vec a, vec b)
{
	return _mm256_add_ps(a, b);
}

VEC_INLINE vec vec_sub(vec a, vec b)
{
	return _mm256_sub_ps(a, b);
}

VEC_INLINE vec vec_mul(vec a, vec b)
{
	return _mm256_mul_ps(a, b);
}

VEC_INLINE vec vec_div(vec a, vec b)
{
	return _mm256_div_ps(a, b);
}

/* a b + c, rounded once. */
VEC_INLINE vec vec_fma(vec a, vec b, vec c)
{
	return _mm256_fmadd_ps(a, b, c);
}

/* c - a b, rounded once. */
VEC_INLINE vec vec_fnma(vec a, vec b, vec c)
{
	return _mm256_fnmadd_ps(a, b, c);
}

/* b where a or b is NaN. */
VEC_INLINE vec vec_max(vec a, vec b)
{
	return _mm256_max_ps(a, b);
}

VEC_INLINE vec vec_min(vec a, vec b)
{
	return _mm256_min_ps(a, b);
}

VEC_INLINE vec vec_abs(vec a)
{
	return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a);
}

/* a with the sign of b; a is not negative. */
VEC_INLINE vec vec_with_sign(vec a, vec b)
{
	return _mm256_or_ps(a, _mm256_and_ps(_mm256_set1_ps(-0.0f), b));
}

/* To the nearest whole number, ties to even. */
VEC_INLINE vec vec_round(vec a)
{
	return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* a 2^n, rounded once where a is in [1/2, 2]; n holds whole numbers in [-252, 254]. */
VEC_INLINE vec vec_scale(vec a, vec n)
{
	const __m256i bias = _mm256_set1_epi32(127), power = _mm256_cvtps_epi32(n);
	const __m256i half = _mm256_srai_epi32(power, 1), rest = _mm256_sub_epi32(power, half);
	const __m256i first = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
	const __m256i second = _mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23);
	return _mm256_mul_ps(_mm256_mul_ps(a, _mm256_castsi256_ps(first)), _mm256_castsi256_ps(second));
}

/* Added to a number under 2^22, leaves it rounded to a whole one, n, with n + 151 in the low bits. */
#define VEC_SHIFTER (12582912.0f + 151)

/* a 2^n, rounded once where a is in [1/2, 2]; shifted is n + VEC_SHIFTER, n in [-151, 0]. */
VEC_INLINE vec vec_scale_down(vec a, vec shifted)
{
	const __m256i power = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23); /* 2^(n + 24) */
	return _mm256_mul_ps(_mm256_mul_ps(a, _mm256_castsi256_ps(power)), _mm256_set1_ps(0x1p-24f));
}

/* False where one is NaN. */
VEC_INLINE vec_mask vec_less(vec a, vec b)
{
	return _mm256_cmp_ps(a, b, _CMP_LT_OQ);
}

VEC_INLINE vec_mask vec_is_nan(vec a)
{
	return _mm256_cmp_ps(a, a, _CMP_UNORD_Q);
}

/* Lanes whose byte is not 0; VEC_WIDTH bytes. */
VEC_INLINE vec_mask vec_bytes(const uint8_t *at)
{
	const __m256i wide = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)at));
	return _mm256_castsi256_ps(_mm256_cmpgt_epi32(wide, _mm256_setzero_si256()));
}

/* 0, 1, 2, ... */
VEC_INLINE vec vec_lanes(void)
{
	return _mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7);
}

VEC_INLINE vec vec_select(vec_mask mask, vec yes, vec no)
{
	return _mm256_blendv_ps(no, yes, mask);
}

/* The greatest lane, of lanes that are not NaN. */
VEC_INLINE float vec_greatest(vec a)
{
	__m128 m = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
	m = _mm_max_ps(m, _mm_movehl_ps(m, m));
	return _mm_cvtss_f32(_mm_max_ss(m, _mm_shuffle_ps(m, m, 1)));
}

VEC_INLINE float vec_sum(vec a)
{
	__m128 m = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
	m = _mm_add_ps(m, _mm_movehl_ps(m, m));
	return _mm_cvtss_f32(_mm_add_ss(m, _mm_shuffle_ps(m, m, 1)));
}

/* a, in a register from here on: compilers do not read it from memory again for each use. */
VEC_INLINE vec vec_keep(vec a)
{
	__asm__("" : "+x"(a));
	return a;
}

/* Asks for the cache line of at, which need not be readable. */
VEC_INLINE void vec_prefetch(const float *at)
{
	_mm_prefetch((const char *)at, _MM_HINT_T0);
}

#endif
