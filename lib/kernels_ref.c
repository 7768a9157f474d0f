#include "kernels.h"

#include <math.h>

/* The specification: sums in double, rounded once. */
static void gemm(const struct attn_gemm *g)
{
	size_t step_k = g->b_transposed ? 1 : g->ldb;
	size_t step_n = g->b_transposed ? g->ldb : 1;
	for (size_t i = 0; i < g->m; i++) {
		for (size_t j = 0; j < g->n; j++) {
			double sum = 0;
			for (size_t p = 0; p < g->k; p++)
				sum += (double)g->a[i * g->lda + p] * (double)g->b[p * step_k + j * step_n];
			g->c[i * g->ldc + j] = (float)((double)g->alpha * sum);
		}
	}
}

static float row_max(const float *row, size_t n)
{
	float max = -INFINITY;
	for (size_t i = 0; i < n; i++)
		max = row[i] > max ? row[i] : max;
	return max;
}

static double row_exp(float *row, size_t n, float max)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++) {
		row[i] = (float)exp((double)(row[i] - max));
		sum += (double)row[i];
	}
	return sum;
}

void attn_kernels_fill_reference(attn_kernels *kernels)
{
	*kernels = (attn_kernels){
	    .gemm = gemm,
	    .gemm_rows = gemm,
	    .row_tile = 1,
	    .row_max = row_max,
	    .row_exp = row_exp,
	    .norm_row = attn_norm_row,
	};
}
