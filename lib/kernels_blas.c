#include "kernels.h"

#include <cblas.h>
#include <string.h>

#include "kernels_norm.h"
#include "kernels_rows.h"

static void gemm(const struct attn_gemm *g)
{
	/* BLAS takes alpha 0 for "do not multiply", which would lose a NaN. */
	float alpha = g->alpha == 0.0f ? 1.0f : g->alpha;
	cblas_sgemm(CblasRowMajor, CblasNoTrans, g->b_transposed ? CblasTrans : CblasNoTrans, (blasint)g->m,
	            (blasint)g->n, (blasint)g->k, alpha, g->a, (blasint)g->lda, g->b, (blasint)g->ldb, 0.0f,
	            g->c, (blasint)g->ldc);
	if (g->alpha != 0.0f)
		return;
	for (size_t i = 0; i < g->m; i++)
		for (size_t j = 0; j < g->n; j++)
			g->c[i * g->ldc + j] *= 0.0f;
}

static float row_max(const float *row, size_t n)
{
	return attn_rows_max(row, n);
}

static double row_exp(float *row, size_t n, float max)
{
	return attn_rows_exp(row, n, max);
}

static void norm_row(const attn_norm *norm, size_t width, const float *in, float *out)
{
	attn_norm_vectors(norm, width, in, out);
}

const char *attn_blas_core(void)
{
	return openblas_get_corename();
}

const char *attn_blas_config(void)
{
	return openblas_get_config();
}

/* Cores whose sgemm gives a row the same bits for every number of rows, outside its small-product path. */
static bool core_keeps_rows_apart(const char *core)
{
	static const char *const NAMES[] = {"SkylakeX", "Cooperlake", "SapphireRapids"};
	for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++)
		if (strcmp(NAMES[i], core) == 0)
			return true;
	return false;
}

/* A flavour of OpenBLAS without threads of its own hands out its work buffers without a lock: two threads in
 * sgemm at a time share one and get wrong products (seen on Debian's 0.3.21 serial flavour). Such a flavour
 * is not called at all. */
void attn_kernels_fill_blas(attn_kernels *kernels)
{
	attn_kernels_fill_reference(kernels);
	kernels->row_max = row_max;
	kernels->row_exp = row_exp;
	kernels->norm_row = norm_row;
	const bool avx2 = attn_cpu_has_avx2();
	if (avx2)
		attn_kernels_fill_avx2(kernels);
	if (openblas_get_parallel() == OPENBLAS_SEQUENTIAL)
		return;
	openblas_set_num_threads(1);
	kernels->gemm = gemm;
	if (core_keeps_rows_apart(attn_blas_core())) {
		kernels->gemm_rows = gemm;
		kernels->small_product = 1000000;
	} else if (!avx2) {
		kernels->gemm_rows = NULL;
	}
}
