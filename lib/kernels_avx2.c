#include "kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <stdalign.h>
#include <string.h>

#include "kernels_norm.h"
#include "kernels_rows.h"
#include "kernels_vec_avx2.h"

#include "kernels_attention.h"
#include "kernels_packed.h"

#define AVX2 __attribute__((target("avx2,fma")))
#define AVX2_INLINE static inline __attribute__((always_inline, target("avx2,fma")))

#define TILE_ROWS ((size_t)6)
#define STRIP ((size_t)16)  /* columns of B side by side, two vectors */
#define DEPTH ((size_t)256) /* rows of a packed strip: strip and rows of A stay in L1 */

/* What one block of depth does to C. */
struct step {
	bool add;    /* to what earlier blocks left there */
	float alpha; /* of the last block; 1 before it */
};

/* Packs columns of B [k, n] into strip [depth, STRIP], missing columns as zeros. */
AVX2 static void pack_plain(float *strip, const float *b, size_t ldb, size_t depth, size_t columns)
{
	if (columns == STRIP) {
		for (size_t p = 0; p < depth; p++) {
			_mm256_store_ps(strip + p * STRIP, _mm256_loadu_ps(b + p * ldb));
			_mm256_store_ps(strip + p * STRIP + 8, _mm256_loadu_ps(b + p * ldb + 8));
		}
		return;
	}
	memset(strip, 0, depth * STRIP * sizeof(float));
	for (size_t p = 0; p < depth; p++)
		memcpy(strip + p * STRIP, b + p * ldb, columns * sizeof(float));
}

/* Transposes 8 rows of 8 numbers, ldb apart, into 8 rows STRIP apart. */
AVX2_INLINE void transpose8(float *out, const float *b, size_t ldb)
{
	__m256 r[8], t[8];
	for (size_t i = 0; i < 4; i++) { /* halves: rows i and i + 4 share a vector */
		__m128 low = _mm_loadu_ps(b + i * ldb), high = _mm_loadu_ps(b + i * ldb + 4);
		r[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(low), _mm_loadu_ps(b + (i + 4) * ldb), 1);
		r[i + 4] = _mm256_insertf128_ps(_mm256_castps128_ps256(high),
		                                _mm_loadu_ps(b + (i + 4) * ldb + 4), 1);
	}
	for (size_t i = 0; i < 8; i += 2) {
		t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
		t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
	}
	for (size_t i = 0; i < 8; i += 4) {
		_mm256_storeu_ps(out + i * STRIP, _mm256_shuffle_ps(t[i], t[i + 2], 0x44));
		_mm256_storeu_ps(out + (i + 1) * STRIP, _mm256_shuffle_ps(t[i], t[i + 2], 0xee));
		_mm256_storeu_ps(out + (i + 2) * STRIP, _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44));
		_mm256_storeu_ps(out + (i + 3) * STRIP, _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee));
	}
}

/* The same from B [n, k]. */
AVX2 static void pack_transposed(float *strip, const float *b, size_t ldb, size_t depth, size_t columns)
{
	size_t done = 0;
	if (columns == STRIP) {
		for (; done + 8 <= depth; done += 8) {
			transpose8(strip + done * STRIP, b + done, ldb);
			transpose8(strip + done * STRIP + 8, b + 8 * ldb + done, ldb);
		}
	} else {
		memset(strip, 0, depth * STRIP * sizeof(float));
	}
	for (size_t j = 0; j < columns; j++)
		for (size_t p = done; p < depth; p++)
			strip[p * STRIP + j] = b[j * ldb + p];
}

/* C [rows, STRIP] = alpha * ([C +] A [rows, depth] * strip). Each element is one chain of fused multiply-adds
 * in the order of depth, whatever rows is: this is what keeps the bits of a row its own. */
AVX2_INLINE void tile_rows(const size_t rows, const struct attn_gemm *g, const float *a, size_t depth,
                           const float *strip, float *c, size_t ldc, struct step step)
{
	const __m256 alpha = _mm256_set1_ps(step.alpha);
	__m256 left[TILE_ROWS], right[TILE_ROWS];
#pragma GCC unroll 6
	for (size_t r = 0; r < rows; r++) {
		left[r] = step.add ? _mm256_loadu_ps(c + r * ldc) : _mm256_setzero_ps();
		right[r] = step.add ? _mm256_loadu_ps(c + r * ldc + 8) : _mm256_setzero_ps();
	}
	for (size_t p = 0; p < depth; p++) {
		const __m256 b0 = _mm256_load_ps(strip + p * STRIP),
		             b1 = _mm256_load_ps(strip + p * STRIP + 8);
#pragma GCC unroll 6
		for (size_t r = 0; r < rows; r++) {
			const __m256 x = _mm256_broadcast_ss(a + r * g->lda + p);
			left[r] = _mm256_fmadd_ps(x, b0, left[r]);
			right[r] = _mm256_fmadd_ps(x, b1, right[r]);
		}
	}
#pragma GCC unroll 6
	for (size_t r = 0; r < rows; r++) {
		_mm256_storeu_ps(c + r * ldc, _mm256_mul_ps(alpha, left[r]));
		_mm256_storeu_ps(c + r * ldc + 8, _mm256_mul_ps(alpha, right[r]));
	}
}

AVX2 static void tile(size_t rows, const struct attn_gemm *g, const float *a, size_t depth,
                      const float *strip, float *c, size_t ldc, struct step step)
{
	switch (rows) {
	case 1:
		tile_rows(1, g, a, depth, strip, c, ldc, step);
		break;
	case 2:
		tile_rows(2, g, a, depth, strip, c, ldc, step);
		break;
	case 3:
		tile_rows(3, g, a, depth, strip, c, ldc, step);
		break;
	case 4:
		tile_rows(4, g, a, depth, strip, c, ldc, step);
		break;
	case 5:
		tile_rows(5, g, a, depth, strip, c, ldc, step);
		break;
	default:
		tile_rows(TILE_ROWS, g, a, depth, strip, c, ldc, step);
		break;
	}
}

/* A tile at the right edge goes by way of a whole one. */
static void tile_edge(size_t rows, const struct attn_gemm *g, const float *a, size_t depth,
                      const float *strip, float *c, size_t columns, struct step step)
{
	float whole[TILE_ROWS * STRIP] = {0};
	for (size_t r = 0; step.add && r < rows; r++)
		memcpy(whole + r * STRIP, c + r * g->ldc, columns * sizeof(float));
	tile(rows, g, a, depth, strip, whole, STRIP, step);
	for (size_t r = 0; r < rows; r++)
		memcpy(c + r * g->ldc, whole + r * STRIP, columns * sizeof(float));
}

static void strip_rows(const struct attn_gemm *g, const float *strip, size_t column, size_t columns,
                       size_t from, size_t depth)
{
	const struct step step = {.add = from > 0, .alpha = from + depth == g->k ? g->alpha : 1};
	for (size_t i = 0; i < g->m; i += TILE_ROWS) {
		size_t rows = g->m - i < TILE_ROWS ? g->m - i : TILE_ROWS;
		const float *a = g->a + i * g->lda + from;
		float *c = g->c + i * g->ldc + column;
		if (columns == STRIP)
			tile(rows, g, a, depth, strip, c, g->ldc, step);
		else
			tile_edge(rows, g, a, depth, strip, c, columns, step);
	}
}

static void gemm(const struct attn_gemm *g)
{
	alignas(64) float strip[DEPTH * STRIP];
	for (size_t column = 0; column < g->n; column += STRIP) {
		size_t columns = g->n - column < STRIP ? g->n - column : STRIP;
		for (size_t from = 0; from < g->k; from += DEPTH) {
			size_t depth = g->k - from < DEPTH ? g->k - from : DEPTH;
			if (g->b_transposed)
				pack_transposed(strip, g->b + column * g->ldb + from, g->ldb, depth, columns);
			else
				pack_plain(strip, g->b + from * g->ldb + column, g->ldb, depth, columns);
			strip_rows(g, strip, column, columns, from, depth);
		}
	}
}

AVX2 static float row_max(const float *row, size_t n)
{
	return attn_rows_max(row, n);
}

AVX2 static double row_exp(float *row, size_t n, float max)
{
	return attn_rows_exp(row, n, max);
}

AVX2 static void norm_row(const attn_norm *norm, size_t width, const float *in, float *out)
{
	attn_norm_vectors(norm, width, in, out);
}

bool attn_cpu_has_avx2(void)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

void attn_kernels_fill_avx2(attn_kernels *kernels)
{
	kernels->gemm = gemm;
	kernels->gemm_rows = gemm;
	kernels->row_tile = 1;
	kernels->small_product = 0;
	kernels->row_max = row_max;
	kernels->row_exp = row_exp;
	kernels->norm_row = norm_row;
}

void attn_kernels_fill_avx2_packed(attn_kernels *kernels)
{
	kernels->packed = packed_product;
	kernels->strip = PACKED_STRIP;
	kernels->attention = &ATTEND_KERNELS;
}

#else

bool attn_cpu_has_avx2(void)
{
	return false;
}

void attn_kernels_fill_avx2(attn_kernels *kernels)
{
	(void)kernels;
}

void attn_kernels_fill_avx2_packed(attn_kernels *kernels)
{
	(void)kernels;
}

#endif
