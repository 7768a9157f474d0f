#include "kernel_sets.h"
#include "kernels.h"

#include <math.h>
#include <string.h>

static attn_kernels *blas(void)
{
	attn_kernels *kernels = NULL;
	ck_assert_int_eq(attn_kernels_new("blas", &kernels), ATTN_OK);
	return kernels;
}

static void sound_kernels_pass_for_any_seed(attn_kernels *kernels)
{
	for (uint64_t seed = 0; seed < 3; seed++) {
		attn_error err = {.status = ATTN_OK};
		ck_assert_int_eq(attn_kernels_self_check(kernels, seed, &err), ATTN_OK);
		ck_assert_str_eq(err.message, "");
	}
}
ON_EACH_SET(sound_kernels_pass_for_any_seed)

/* Refused, with the name of the kernel in the message. Frees the kernels. */
static void check_refused(attn_kernels *kernels, const char *culprit)
{
	attn_error err = {.status = ATTN_OK};
	ck_assert_int_eq(attn_kernels_self_check(kernels, 1, &err), ATTN_SELF_CHECK);
	ck_assert_int_eq(err.status, ATTN_SELF_CHECK);
	ck_assert_msg(strstr(err.message, culprit) != NULL, "%s", err.message);
	attn_kernels_free(kernels);
}

/* As if a vector kernel lost its last column. */
static void gemm_last_column_lost(const struct attn_gemm *gemm)
{
	attn_kernels reference;
	attn_kernels_fill_reference(&reference);
	reference.gemm(gemm);
	for (size_t i = 0; gemm->n > 64 && i < gemm->m; i++)
		gemm->c[i * gemm->ldc + gemm->n - 1] = 0;
}

static double row_exp_off(float *row, size_t n, float max)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++) {
		row[i] = expf(row[i] - max) * 1.00001f;
		sum += (double)row[i];
	}
	return sum;
}

static double row_exp_missing(float *row, size_t n, float max)
{
	for (size_t i = 0; i < n; i++)
		row[i] = expf(row[i] - max);
	return 0;
}

static float row_max_of_first(const float *row, size_t n)
{
	(void)n;
	return row[0];
}

/* As if many rows lost the first column of the last. */
static void packed_last_row_off(const struct attn_packed_tile *tile)
{
	attn_kernels *wide = wide_kernels_new();
	ck_assert_ptr_nonnull(wide);
	wide->packed(tile);
	attn_kernels_free(wide);
	if (tile->rows > 70)
		tile->y[tile->rows - 1][0] = 0;
}

/* Right, but rounding follows the number of rows. */
static void packed_by_count(const struct attn_packed_tile *tile)
{
	attn_kernels *wide = wide_kernels_new();
	ck_assert_ptr_nonnull(wide);
	wide->packed(tile);
	attn_kernels_free(wide);
	for (size_t r = 0; tile->rows > 3 && r < tile->rows; r++)
		for (size_t j = 0; j < tile->columns; j++)
			tile->y[r][j] = nextafterf(tile->y[r][j], INFINITY);
}

static void check_packed_refused(attn_packed_fn *packed, const char *culprit)
{
	attn_kernels *kernels = wide_kernels_new();
	ck_assert_ptr_nonnull(kernels);
	kernels->packed = packed;
	check_refused(kernels, culprit);
}

START_TEST(wrong_products_with_packed_weights_are_refused)
{
	check_packed_refused(packed_last_row_off, "packed");
	check_packed_refused(packed_by_count, "depend on the others");
}
END_TEST

START_TEST(a_wrong_kernel_is_refused)
{
	attn_kernels *kernels = blas();
	kernels->gemm = gemm_last_column_lost;
	check_refused(kernels, " gemm ");
	kernels = blas();
	kernels->gemm_rows = gemm_last_column_lost;
	kernels->row_tile = 1;
	check_refused(kernels, " gemm_rows ");
	kernels = blas();
	kernels->row_exp = row_exp_off;
	check_refused(kernels, "row_exp");
	kernels = blas();
	kernels->row_exp = row_exp_missing;
	check_refused(kernels, "sums");
	kernels = blas();
	kernels->row_max = row_max_of_first;
	check_refused(kernels, "row_max");
}
END_TEST

/* Right, but rows past the sixth of each dozen round in another way. */
static void gemm_rows_by_place(const struct attn_gemm *gemm)
{
	attn_kernels reference;
	attn_kernels_fill_reference(&reference);
	reference.gemm(gemm);
	for (size_t i = 0; i < gemm->m; i++)
		for (size_t j = 0; i % 12 >= 6 && j < gemm->n; j++)
			gemm->c[i * gemm->ldc + j] = nextafterf(gemm->c[i * gemm->ldc + j], INFINITY);
}

/* Right, but rounding follows the number of rows. */
static void gemm_rows_by_count(const struct attn_gemm *gemm)
{
	attn_kernels reference;
	attn_kernels_fill_reference(&reference);
	reference.gemm(gemm);
	for (size_t i = 0; gemm->m >= 48 && i < gemm->m; i++)
		gemm->c[i * gemm->ldc] = nextafterf(gemm->c[i * gemm->ldc], INFINITY);
}

static void check_unstacked(attn_gemm_fn *kernel, size_t row_tile)
{
	attn_kernels *kernels = blas();
	attn_error err = {.status = ATTN_OK};
	kernels->gemm_rows = kernel;
	kernels->row_tile = row_tile;
	kernels->small_product = 0;
	ck_assert_int_eq(attn_kernels_self_check(kernels, 1, &err), ATTN_OK);
	ck_assert_uint_eq(attn_kernels_row_tile(kernels, 256, 256), 0);
	attn_kernels_free(kernels);
}

START_TEST(kernels_whose_rows_depend_on_their_place_or_number_stop_stacking)
{
	check_unstacked(gemm_rows_by_place, 1);
	check_unstacked(gemm_rows_by_place, 12);
	check_unstacked(gemm_rows_by_count, 1);
	check_unstacked(gemm_rows_by_count, 16);
}
END_TEST

START_TEST(a_row_tile_lifts_products_out_of_the_small_path)
{
	attn_kernels kernels;
	attn_kernels_fill_reference(&kernels);
	kernels.small_product = 1000000;
	ck_assert_uint_eq(attn_kernels_row_tile(&kernels, 256, 256), 16);
	ck_assert_uint_eq(attn_kernels_row_tile(&kernels, 1000, 1000), 2);
	ck_assert_uint_eq(attn_kernels_row_tile(&kernels, 2000, 1000), 1);
	ck_assert_uint_eq(attn_kernels_row_tile(&kernels, 64, 64), 0);
	kernels.row_tile = 12;
	ck_assert_uint_eq(attn_kernels_row_tile(&kernels, 256, 256), 24);
	kernels.gemm_rows = NULL;
	ck_assert_uint_eq(attn_kernels_row_tile(&kernels, 2000, 1000), 0);
}
END_TEST

START_TEST(sets_have_names_and_an_unknown_one_is_refused)
{
	attn_kernels *kernels = NULL;
	size_t native = attn_cpu_has_avx2() ? 1 : 0;
	ck_assert_str_eq(attn_kernels_list(0), native ? "native" : "blas");
	ck_assert_str_eq(attn_kernels_list(native), "blas");
	ck_assert_str_eq(attn_kernels_list(native + 1), "reference");
	ck_assert_ptr_null(attn_kernels_list(native + 2));
	ck_assert_int_eq(attn_kernels_new("fast", &kernels), ATTN_UNSUPPORTED);
	ck_assert_ptr_null(kernels);
	kernels = blas();
	ck_assert_str_eq(attn_kernels_name(kernels), "blas");
	attn_kernels_free(kernels);
	attn_kernels_free(NULL);
	ck_assert_str_ne(attn_blas_core(), "");
	ck_assert_str_ne(attn_blas_config(), "");
}
END_TEST

SUITE_MAIN("selfcheck", EACH_SET(sound_kernels_pass_for_any_seed), a_wrong_kernel_is_refused,
           wrong_products_with_packed_weights_are_refused,
           kernels_whose_rows_depend_on_their_place_or_number_stop_stacking,
           a_row_tile_lifts_products_out_of_the_small_path, sets_have_names_and_an_unknown_one_is_refused)
