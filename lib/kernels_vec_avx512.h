/*
 * kernels_vec_avx512.h - the vectors of AVX-512 under the names of kernels_vec_avx2.h.
 */
#ifndef ATTN_KERNELS_VEC_AVX512_H
#define ATTN_KERNELS_VEC_AVX512_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define VEC_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")))
#define VEC_INLINE                                                                                           \
	static inline __attribute__((always_inline, target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")))

#define VEC_WIDTH 16
#define VEC_REGISTERS 32

typedef __m512 vec;
typedef __mmask16 vec_mask;

VEC_INLINE vec vec_load(const float *at)
{
	return _mm512_loadu_ps(at);
}

VEC_INLINE void vec_store(float *at, vec a)
{
	_mm512_storeu_ps(at, a);
}

VEC_INLINE __mmask16 vec_first(size_t count)
{
	return (__mmask16)((1u << count) - 1);
}

VEC_INLINE vec vec_load_part(const float *at, size_t count)
{
	return _mm512_maskz_loadu_ps(vec_first(count), at);
}

VEC_INLINE void vec_store_part(float *at, size_t count, vec a)
{
	_mm512_mask_storeu_ps(at, vec_first(count), a);
}

VEC_INLINE void vec_stream(float *at, vec a)
{
	_mm512_stream_ps(at, a);
}

VEC_INLINE void vec_stream_one(float *at, float a)
{
	_mm_stream_si32((int *)at, _mm_cvtsi128_si32(_mm_castps_si128(_mm_set_ss(a))));
}

VEC_INLINE void vec_stream_end(void)
{
	_mm_sfence();
}

VEC_INLINE vec vec_set(float a)
{
	return _mm512_set1_ps(a);
}

VEC_INLINE vec vec_broadcast(const float *at)
{
	return _mm512_set1_ps(*at);
}

VEC_INLINE vec vec_zero(void)
{
	return _mm512_setzero_ps();
}

VEC_INLINE vec vec_add(vec a, vec b)
{
	return _mm512_add_ps(a, b);
}

VEC_INLINE vec vec_sub(vec a, vec b)
{
	return _mm512_sub_ps(a, b);
}

VEC_INLINE vec vec_mul(vec a, vec b)
{
	return _mm512_mul_ps(a, b);
}

VEC_INLINE vec vec_div(vec a, vec b)
{
	return _mm512_div_ps(a, b);
}

VEC_INLINE vec vec_fma(vec a, vec b, vec c)
{
	return _mm512_fmadd_ps(a, b, c);
}

VEC_INLINE vec vec_fnma(vec a, vec b, vec c)
{
	return _mm512_fnmadd_ps(a, b, c);
}

VEC_INLINE vec vec_max(vec a, vec b)
{
	return _mm512_max_ps(a, b);
}

VEC_INLINE vec vec_min(vec a, vec b)
{
	return _mm512_min_ps(a, b);
}

VEC_INLINE vec vec_abs(vec a)
{
	return _mm512_abs_ps(a);
}

VEC_INLINE vec vec_with_sign(vec a, vec b)
{
	return _mm512_or_ps(a, _mm512_and_ps(_mm512_set1_ps(-0.0f), b));
}

VEC_INLINE vec vec_round(vec a)
{
	return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

VEC_INLINE vec vec_scale(vec a, vec n)
{
	return _mm512_scalef_ps(a, n);
}

#define VEC_SHIFTER (12582912.0f + 151)

VEC_INLINE vec vec_scale_down(vec a, vec shifted)
{
	return _mm512_scalef_ps(a, _mm512_sub_ps(shifted, _mm512_set1_ps(VEC_SHIFTER)));
}

VEC_INLINE vec_mask vec_less(vec a, vec b)
{
	return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}

VEC_INLINE vec_mask vec_is_nan(vec a)
{
	return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
}

VEC_INLINE vec_mask vec_bytes(const uint8_t *at)
{
	return _mm512_test_epi32_mask(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)at)),
	                              _mm512_set1_epi32(-1));
}

VEC_INLINE vec vec_lanes(void)
{
	return _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

VEC_INLINE vec vec_select(vec_mask mask, vec yes, vec no)
{
	return _mm512_mask_blend_ps(mask, no, yes);
}

VEC_INLINE float vec_greatest(vec a)
{
	return _mm512_reduce_max_ps(a);
}

VEC_INLINE float vec_sum(vec a)
{
	return _mm512_reduce_add_ps(a);
}

VEC_INLINE vec vec_keep(vec a)
{
	__asm__("" : "+v"(a));
	return a;
}

VEC_INLINE void vec_prefetch(const float *at)
{
	_mm_prefetch((const char *)at, _MM_HINT_T0);
}

#endif
