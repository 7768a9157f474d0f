/*
 * kernels.h - the table of arithmetic kernels that attention and layers are built on.
 *
 * One table is filled at start: the plain loops of kernels_ref.c are the specification, kernels_blas.c puts
 * OpenBLAS in their place, and kernels_avx2.c or kernels_avx512.c what this CPU does faster. Arguments are
 * checked by the callers. Kernels keep no state, take no memory and may run on any thread.
 *
 * Every kernel is a pure function of the numbers it is given and their shape: equal inputs give equal bits
 * whatever their address.
 */
#ifndef ATTN_KERNELS_H
#define ATTN_KERNELS_H

#include "activation.h"
#include "attn.h"
#include "norm.h"

/* Rows of scores are worked on in whole groups of lanes. */
#define ATTN_LANES ((size_t)16)

/* C [m, n] = alpha * A [m, k] * B, where B is [k, n] or, b_transposed, the transpose of [n, k]. ld: elements
 * between rows. C is not read. NaN and infinity go through as multiplying out would have them (alpha 0 too),
 * and reach only the elements of C whose row of A or column of B holds them. */
struct attn_gemm {
	size_t m, n, k;
	float alpha;
	const float *a;
	size_t lda;
	const float *b;
	size_t ldb;
	bool b_transposed;
	float *c;
	size_t ldc;
};

typedef void attn_gemm_fn(const struct attn_gemm *gemm);

/* y[r][j] = activation(x[r] W + bias[j]) * factor[r][j] + residual[r][j] for the columns [first, first +
 * columns) of a packed matrix; column first is element 0 of y, bias, factor and residual, each but y may be
 * NULL. No y is an x; factor and residual may be y. An element is one chain of fused multiply-adds over k in
 * its order, so that a row's bits depend on that row and on W alone, however rows and columns are cut into
 * tiles. */
struct attn_packed_tile {
	const attn_packed *packed;
	size_t first, columns, rows; /* rows at most ATTN_PACKED_ROWS */
	const float *const *x;       /* [rows], each [k] */
	float *const *y;             /* [rows], each [columns] */
	const float *bias;           /* [columns] */
	enum attn_activation activation;
	const float *const *factor;   /* [rows], each [columns] */
	const float *const *residual; /* likewise */
};

#define ATTN_PACKED_ROWS ((size_t)144)

typedef void attn_packed_fn(const struct attn_packed_tile *tile);

struct attn_kernels {
	const char *name;
	/* Deterministic for its shape; a row's bits may depend on m and on the row's place. */
	attn_gemm_fn *gemm;
	/* As gemm with alpha 1; while m is a multiple of attn_kernels_row_tile, a row's bits depend on that
	 * row, on B, n and k alone. NULL: no such kernel here, sequences are never stacked. */
	attn_gemm_fn *gemm_rows;
	size_t row_tile;      /* rows of a stacked product come in multiples of it */
	size_t small_product; /* a product with m * n * k up to here may take another path */
	/* Products with packed weights, and the columns of a strip of these. NULL and 0: there are none. */
	attn_packed_fn *packed;
	size_t strip;
	/* Attention over packed keys and values; NULL: it is made of gemm, row_max and row_exp. */
	const struct attn_attention_kernels *attention;
	/* Largest of n numbers, NaN passed over; -infinity for none. n is a multiple of ATTN_LANES. */
	float (*row_max)(const float *row, size_t n);
	/* row[i] = exp(row[i] - max), within 2 units in the last place; returns the sum, NaN if one is NaN.
	 * n is a multiple of ATTN_LANES and row is 64-byte aligned. */
	double (*row_exp)(float *row, size_t n, float max);
	/* out [width] = the norm of in [width], which may be out; sums are kept in double. */
	void (*norm_row)(const attn_norm *norm, size_t width, const float *in, float *out);
};

/* What m must be a multiple of for gemm_rows on [m, k] x [k, n] to keep rows apart; 0: rows of several
 * sequences must not share this product. At most ATTN_ROW_TILE_MAX. */
#define ATTN_ROW_TILE_MAX ((size_t)48)
size_t attn_kernels_row_tile(const attn_kernels *kernels, size_t n, size_t k);

void attn_kernels_fill_reference(attn_kernels *kernels);
void attn_kernels_fill_blas(attn_kernels *kernels);
/* The widest vectors of this CPU, which has AVX2. What they have no kernel for is as in kernels_blas.c: with
 * AVX-512, products with weights as they are. */
void attn_kernels_fill_native(attn_kernels *kernels);

/* Whether this CPU has what kernels_avx2.c (AVX2, FMA) and kernels_avx512.c (AVX-512 F, BW, DQ, VL) are made
 * of. They put their kernels in place where it has: those for weights as they are, and those for packed
 * ones. */
bool attn_cpu_has_avx2(void);
bool attn_cpu_has_avx512(void);
void attn_kernels_fill_avx2(attn_kernels *kernels);
void attn_kernels_fill_avx2_packed(attn_kernels *kernels);
void attn_kernels_fill_avx512(attn_kernels *kernels);

#endif
