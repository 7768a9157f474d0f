#include "kernel_sets.h"
#include "kernels.h"
#include "kernels_rows.h"

#include <math.h>
#include <stdalign.h>
#include <string.h>

typedef double row_exp_fn(float *row, size_t n, float max);

/* Units in the last place of the wanted value between it and found; subnormals count in their own unit. */
static double ulps(float found, double wanted)
{
	int exponent = 0;
	frexp(wanted, &exponent);
	double unit = ldexp(1, (exponent > -125 ? exponent : -125) - 24);
	return fabs((double)found - wanted) / unit;
}

/* Walks the bit patterns of [from, to] in steps that are prime, all 16 lanes at once. */
static double worst_ulps(row_exp_fn *row_exp, float from, float to)
{
	alignas(64) float row[ATTN_LANES];
	float asked[ATTN_LANES];
	double worst = 0;
	uint32_t bits = 0, last = 0;
	memcpy(&bits, &from, sizeof(bits));
	memcpy(&last, &to, sizeof(last));
	while (bits <= last) {
		for (size_t i = 0; i < ATTN_LANES; i++, bits += 313)
			memcpy(&asked[i], &bits, sizeof(bits));
		memcpy(row, asked, sizeof(row));
		row_exp(row, ATTN_LANES, 0);
		for (size_t i = 0; i < ATTN_LANES; i++) {
			double off = ulps(row[i], exp((double)asked[i]));
			worst = off > worst ? off : worst;
		}
	}
	return worst;
}

static double rows_exp_baseline(float *row, size_t n, float max)
{
	return attn_rows_exp(row, n, max);
}

static void check_ulps(row_exp_fn *row_exp)
{
	double normal = worst_ulps(row_exp, -1e-30f, -87.3f), rest = worst_ulps(row_exp, -87.3f, -110.0f);
	double positive = worst_ulps(row_exp, 1e-30f, 88.7f);
	ck_assert_msg(normal <= 2 && rest <= 2 && positive <= 2, "off by %g, %g and %g units", normal, rest,
	              positive);
}

static void exp_is_within_two_units_in_the_last_place(attn_kernels *kernels)
{
	check_ulps(kernels->row_exp);
}
ON_EACH_SET(exp_is_within_two_units_in_the_last_place)

START_TEST(exp_is_within_two_units_without_special_instructions)
{
	check_ulps(rows_exp_baseline);
}
END_TEST

static void exp_of_special_values_is_what_arithmetic_says(attn_kernels *kernels)
{
	alignas(64) float row[ATTN_LANES] = {0, -0.0f, -INFINITY, -1e30f, NAN, -104, 100, INFINITY};
	double sum = kernels->row_exp(row, ATTN_LANES, 0);
	ck_assert(row[0] == 1 && row[1] == 1 && row[2] == 0 && row[3] == 0 && isnan(row[4]) && row[5] == 0);
	ck_assert(row[6] == INFINITY && row[7] == INFINITY && isnan(sum));
}
ON_EACH_SET(exp_of_special_values_is_what_arithmetic_says)

static void exp_sums_what_it_writes(attn_kernels *kernels)
{
	enum { COUNT = 5008 };
	alignas(64) static float row[COUNT];
	for (size_t i = 0; i < COUNT; i++)
		row[i] = sinf((float)i) * 8;
	double sum = kernels->row_exp(row, COUNT, 8), wanted = 0;
	for (size_t i = 0; i < COUNT; i++)
		wanted += (double)row[i];
	ck_assert_double_le(fabs(sum / wanted - 1), 1e-6);
	ck_assert(kernels->row_exp(row, 0, 8) == 0);
}
ON_EACH_SET(exp_sums_what_it_writes)

static void max_passes_nan_over_and_finds_any_place(attn_kernels *kernels)
{
	alignas(64) float row[64];
	for (size_t place = 0; place < 64; place++) {
		for (size_t i = 0; i < 64; i++)
			row[i] = i % 5 == 3 ? NAN : -(float)i - 100;
		row[place] = -3;
		ck_assert_float_eq(kernels->row_max(row, 64), -3);
	}
	for (size_t i = 0; i < 64; i++)
		row[i] = NAN;
	ck_assert_float_eq(kernels->row_max(row, 64), -INFINITY);
	ck_assert_float_eq(kernels->row_max(row, 0), -INFINITY);
}
ON_EACH_SET(max_passes_nan_over_and_finds_any_place)

SUITE_MAIN("exp", EACH_SET(exp_is_within_two_units_in_the_last_place),
           exp_is_within_two_units_without_special_instructions,
           EACH_SET(exp_of_special_values_is_what_arithmetic_says), EACH_SET(exp_sums_what_it_writes),
           EACH_SET(max_passes_nan_over_and_finds_any_place))
