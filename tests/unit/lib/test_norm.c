#include "kernels.h"

#include "kernel_sets.h"
#include "random_attention.h"

#include <math.h>
#include <string.h>

enum { WIDEST = 1100 };

/* The norm by its definition, in double. */
static void by_definition(const attn_norm *norm, size_t width, const float *in, double *out)
{
	double mean = 0, square = 0;
	for (size_t i = 0; norm->kind == ATTN_NORM_LAYER && i < width; i++)
		mean += (double)in[i] / (double)width;
	for (size_t i = 0; i < width; i++)
		square += ((double)in[i] - mean) * ((double)in[i] - mean) / (double)width;
	for (size_t i = 0; i < width; i++) {
		out[i] = ((double)in[i] - mean) / sqrt(square + norm->eps) * (double)norm->weight[i];
		if (norm->bias)
			out[i] += (double)norm->bias[i];
	}
}

/* Rows of that width around offset come out as they should. */
static void check(const attn_kernels *kernels, enum attn_norm_kind kind, size_t width, bool bias,
                  float offset, double within)
{
	struct draw draw = {.state = width + 1, .arena = attn_arena_new(0)};
	float *in = draw_floats(&draw, width), *out = draw_floats(&draw, width);
	const attn_norm norm = {.kind = kind,
	                        .weight = draw_floats(&draw, width),
	                        .bias = bias ? draw_floats(&draw, width) : NULL,
	                        .eps = 1e-5};
	double want[WIDEST];
	for (size_t i = 0; i < width; i++)
		in[i] += offset;
	by_definition(&norm, width, in, want);
	kernels->norm_row(&norm, width, in, out);
	for (size_t i = 0; i < width; i++)
		ck_assert_msg(fabs((double)out[i] - want[i]) <= within * fmax(1, fabs(want[i])),
		              "width %zu, number %zu: %.9g, not %.9g", width, i, (double)out[i], want[i]);
	kernels->norm_row(&norm, width, in, in);
	ck_assert_mem_eq(in, out, width * sizeof(*in));
	attn_arena_free(draw.arena);
}

static const size_t widths[] = {1, 2, 7, 16, 17, 63, 64, 96, 384, 1024, 1099};
#define WIDTHS (sizeof(widths) / sizeof(widths[0]))

static void rows_have_mean_zero_and_variance_one_before_weight_and_bias(attn_kernels *kernels)
{
	for (size_t i = 0; i < WIDTHS; i++) {
		check(kernels, ATTN_NORM_LAYER, widths[i], true, 0, 1e-6);
		check(kernels, ATTN_NORM_LAYER, widths[i], false, 0, 1e-6);
	}
}
ON_EACH_SET(rows_have_mean_zero_and_variance_one_before_weight_and_bias)

static void rms_norms_leave_the_mean(attn_kernels *kernels)
{
	for (size_t i = 0; i < WIDTHS; i++) {
		check(kernels, ATTN_NORM_RMS, widths[i], false, 0, 1e-6);
		check(kernels, ATTN_NORM_RMS, widths[i], false, 3, 1e-6);
	}
}
ON_EACH_SET(rms_norms_leave_the_mean)

static void a_mean_far_from_zero_costs_no_digits_but_those_of_the_input(attn_kernels *kernels)
{
	check(kernels, ATTN_NORM_LAYER, 384, true, 1000, 1e-6);
	check(kernels, ATTN_NORM_LAYER, 1024, true, -30000, 1e-6);
}
ON_EACH_SET(a_mean_far_from_zero_costs_no_digits_but_those_of_the_input)

static void without_a_norm_rows_stay(attn_kernels *kernels)
{
	const attn_norm none = {.kind = ATTN_NORM_NONE};
	float in[] = {1, -2, 3}, out[3];
	kernels->norm_row(&none, 3, in, out);
	ck_assert_mem_eq(in, out, sizeof(in));
}
ON_EACH_SET(without_a_norm_rows_stay)

static void a_nan_reaches_its_whole_row(attn_kernels *kernels)
{
	const float weight[] = {1, 1, 1};
	const attn_norm norm = {.kind = ATTN_NORM_LAYER, .weight = weight, .eps = 1e-5};
	float row[] = {1, NAN, 3};
	kernels->norm_row(&norm, 3, row, row);
	for (size_t i = 0; i < 3; i++)
		ck_assert(isnan(row[i]));
}
ON_EACH_SET(a_nan_reaches_its_whole_row)

SUITE_MAIN("norm", EACH_SET(rows_have_mean_zero_and_variance_one_before_weight_and_bias),
           EACH_SET(rms_norms_leave_the_mean),
           EACH_SET(a_mean_far_from_zero_costs_no_digits_but_those_of_the_input),
           EACH_SET(without_a_norm_rows_stay), EACH_SET(a_nan_reaches_its_whole_row))
