#include "attn.h"

#include "suite.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

static float convert(attn_dtype dtype, const void *source)
{
	float out = -1;
	ck_assert_int_eq(attn_to_float32(dtype, source, 1, &out), ATTN_OK);
	return out;
}

static uint32_t bits_of(float value)
{
	uint32_t bits;
	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

START_TEST(sizes_and_names_are_those_of_safetensors)
{
	static const struct {
		attn_dtype dtype;
		size_t size;
		const char *name;
	} all[] = {{ATTN_FLOAT32, 4, "F32"}, {ATTN_FLOAT16, 2, "F16"}, {ATTN_BFLOAT16, 2, "BF16"},
	           {ATTN_FLOAT64, 8, "F64"}, {ATTN_INT64, 8, "I64"},   {ATTN_INT32, 4, "I32"},
	           {ATTN_UINT8, 1, "U8"},    {ATTN_BOOL, 1, "BOOL"}};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		ck_assert_uint_eq(attn_dtype_size(all[i].dtype), all[i].size);
		ck_assert_str_eq(attn_dtype_name(all[i].dtype), all[i].name);
	}
}
END_TEST

START_TEST(float32_keeps_its_bits)
{
	const uint32_t bits[] = {0,          0x80000000, 1,          0x3F800000,
	                         0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC12345};
	float out[8];
	ck_assert_int_eq(attn_to_float32(ATTN_FLOAT32, bits, 8, out), ATTN_OK);
	ck_assert_mem_eq(out, bits, sizeof(bits));
}
END_TEST

/* By the definition of binary16: (-1)^s 2^(e-15) (1 + f/1024), subnormals (-1)^s 2^-14 f/1024. */
START_TEST(every_float16_is_converted_exactly)
{
	for (uint32_t bits = 0; bits <= 0xFFFF; bits++) {
		uint16_t half = (uint16_t)bits;
		int exponent = half >> 10 & 31, fraction = half & 1023;
		double value = exponent == 0    ? ldexp(fraction / 1024.0, -14)
		               : exponent == 31 ? (fraction ? NAN : INFINITY)
		                                : ldexp(1 + fraction / 1024.0, exponent - 15);
		float got = convert(ATTN_FLOAT16, &half);
		if (isnan(value))
			ck_assert(isnan(got));
		else
			ck_assert(fabs((double)got) == value && !signbit(got) == !(half & 0x8000));
	}
}
END_TEST

/* A bfloat16 is (-1)^s 2^(e-127) (1 + f/128). */
START_TEST(every_bfloat16_is_converted_exactly)
{
	for (uint32_t bits = 0; bits <= 0xFFFF; bits++) {
		uint16_t brain = (uint16_t)bits;
		int exponent = brain >> 7 & 255, fraction = brain & 127;
		double value = exponent == 0     ? ldexp(fraction / 128.0, -126)
		               : exponent == 255 ? (fraction ? NAN : INFINITY)
		                                 : ldexp(1 + fraction / 128.0, exponent - 127);
		float got = convert(ATTN_BFLOAT16, &brain);
		if (isnan(value))
			ck_assert(isnan(got));
		else
			ck_assert(fabs((double)got) == value && !signbit(got) == !(brain & 0x8000));
	}
}
END_TEST

START_TEST(float64_rounds_to_nearest_even)
{
	static const struct {
		double from;
		uint32_t bits;
	} cases[] = {
	    {1 + 0x1p-24, 0x3F800000},           /* halfway: to the even one below */
	    {1 + 0x3p-24, 0x3F800002},           /* halfway: to the even one above */
	    {1 + 0x1p-24 + 0x1p-50, 0x3F800001}, /* over halfway */
	    {-0.0, 0x80000000},
	    {0x1p-149, 1},
	    {0x1p-150, 0},   /* half the least: to zero */
	    {0x1.8p-149, 2}, /* between 1 and 2 of the least: to the even */
	    {0x1.fffffefp+127, 0x7F7FFFFF},
	    {0x1.ffffffp+127, 0x7F800000}, /* halfway past the greatest */
	    {1e300, 0x7F800000},
	    {-1e300, 0xFF800000},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_uint_eq(bits_of(convert(ATTN_FLOAT64, &cases[i].from)), cases[i].bits);
}
END_TEST

START_TEST(integers_round_to_nearest_even)
{
	const int64_t wide[] = {0, -1, 16777217, 16777219, INT64_MAX, INT64_MIN};
	const float wide_floats[] = {0, -1, 16777216, 16777220, 0x1p63F, -0x1p63F};
	const int32_t narrow[] = {0, -7, 16777217, INT32_MIN};
	const float narrow_floats[] = {0, -7, 16777216, -0x1p31F};
	const uint8_t bytes[] = {0, 1, 200, 255};
	const float byte_floats[] = {0, 1, 200, 255};
	for (size_t i = 0; i < 6; i++)
		ck_assert(convert(ATTN_INT64, &wide[i]) == wide_floats[i]);
	for (size_t i = 0; i < 4; i++) {
		ck_assert(convert(ATTN_INT32, &narrow[i]) == narrow_floats[i]);
		ck_assert(convert(ATTN_UINT8, &bytes[i]) == byte_floats[i]);
	}
}
END_TEST

/* The undefined-behaviour sanitizer proves this of any alignment; the values prove it of the bytes read. */
START_TEST(elements_may_lie_at_any_alignment)
{
	const double source[3] = {1.5, -2, 0.25};
	unsigned char shifted[sizeof(source) + 1];
	float out[3];
	memcpy(shifted + 1, source, sizeof(source));
	ck_assert_int_eq(attn_to_float32(ATTN_FLOAT64, shifted + 1, 3, out), ATTN_OK);
	ck_assert(out[0] == 1.5F && out[1] == -2.0F && out[2] == 0.25F);
	const int32_t integer = 77;
	memcpy(shifted + 1, &integer, sizeof(integer));
	ck_assert(convert(ATTN_INT32, shifted + 1) == 77.0F);
	const uint16_t half = 0x3C00;
	memcpy(shifted + 1, &half, sizeof(half));
	ck_assert(convert(ATTN_FLOAT16, shifted + 1) == 1.0F);
}
END_TEST

START_TEST(booleans_are_not_numbers)
{
	const uint8_t yes = 1;
	float out = 5;
	ck_assert_int_eq(attn_to_float32(ATTN_BOOL, &yes, 1, &out), ATTN_UNSUPPORTED);
	ck_assert(out == 5.0F);
}
END_TEST

/* ---- the other way */

static uint16_t narrow(attn_dtype dtype, float value)
{
	uint16_t bits = 0;
	ck_assert_int_eq(attn_from_float32(dtype, &value, 1, &bits), ATTN_OK);
	return bits;
}

/* Around each finite 16-bit number of either sign: itself, and what lies halfway to the next and beside that;
 * halfway goes to the even one. Past the largest the next is infinity, as if there were one more. */
static void check_narrowing(attn_dtype dtype, uint16_t largest, double beyond)
{
	for (uint32_t magnitude = 0; magnitude <= largest; magnitude++) {
		for (uint16_t sign = 0; sign <= 1; sign++) {
			uint16_t bits = (uint16_t)(magnitude | (uint32_t)sign << 15),
			         next = (uint16_t)(bits + 1);
			double value = (double)convert(dtype, &bits);
			double after =
			    magnitude == largest ? (sign ? -beyond : beyond) : (double)convert(dtype, &next);
			float half = (float)((value + after) / 2), away = sign ? -INFINITY : INFINITY;
			uint16_t even = magnitude % 2 == 0 ? bits : next;
			if (narrow(dtype, (float)value) != bits || narrow(dtype, half) != even ||
			    narrow(dtype, nextafterf(half, (float)value)) != bits ||
			    narrow(dtype, nextafterf(half, away)) != next)
				ck_abort_msg("near %04x (%.9g)", (unsigned)bits, value);
		}
	}
}

START_TEST(rule_10_float16_is_rounded_to_nearest_even)
{
	check_narrowing(ATTN_FLOAT16, 0x7BFF, 65536);
	ck_assert_uint_eq(narrow(ATTN_FLOAT16, INFINITY), 0x7C00);
	ck_assert_uint_eq(narrow(ATTN_FLOAT16, -FLT_MAX), 0xFC00);
	ck_assert_uint_eq(narrow(ATTN_FLOAT16, FLT_TRUE_MIN), 0);
	ck_assert_uint_eq(narrow(ATTN_FLOAT16, -FLT_MIN), 0x8000);
}
END_TEST

START_TEST(rule_10_bfloat16_is_rounded_to_nearest_even)
{
	/* Its largest numbers are near the largest float32, whose halves are exact still. */
	check_narrowing(ATTN_BFLOAT16, 0x7F7F, 0x1p128);
	ck_assert_uint_eq(narrow(ATTN_BFLOAT16, INFINITY), 0x7F80);
	ck_assert_uint_eq(narrow(ATTN_BFLOAT16, -FLT_MAX), 0xFF80);
}
END_TEST

START_TEST(nan_stays_nan_however_narrow)
{
	const uint32_t nans[] = {0x7FC00000, 0x7F800001, 0xFFFFFFFF, 0xFF800001};
	const attn_dtype narrower[] = {ATTN_FLOAT16, ATTN_BFLOAT16};
	for (size_t d = 0; d < 2; d++) {
		for (size_t i = 0; i < sizeof(nans) / sizeof(nans[0]); i++) {
			float value;
			memcpy(&value, &nans[i], sizeof(value));
			uint16_t bits = narrow(narrower[d], value);
			ck_assert(isnan(convert(narrower[d], &bits)));
			ck_assert_uint_eq(bits >> 15, nans[i] >> 31);
		}
	}
}
END_TEST

START_TEST(float32_and_float64_are_written_exactly_at_any_alignment)
{
	const float values[] = {0.1f, -0.0f, FLT_MAX, FLT_TRUE_MIN, -INFINITY};
	unsigned char bytes[1 + sizeof(double) * 5];
	float back[5];
	ck_assert_int_eq(attn_from_float32(ATTN_FLOAT32, values, 5, bytes + 1), ATTN_OK);
	ck_assert_mem_eq(bytes + 1, values, sizeof(values));
	ck_assert_int_eq(attn_from_float32(ATTN_FLOAT64, values, 5, bytes + 1), ATTN_OK);
	for (size_t i = 0; i < 5; i++) {
		double wide;
		memcpy(&wide, bytes + 1 + i * sizeof(wide), sizeof(wide));
		ck_assert(wide == (double)values[i] && !signbit(wide) == !signbit(values[i]));
	}
	ck_assert_int_eq(attn_to_float32(ATTN_FLOAT64, bytes + 1, 5, back), ATTN_OK);
	ck_assert_mem_eq(back, values, sizeof(values));
}
END_TEST

START_TEST(integers_and_booleans_are_not_written)
{
	const attn_dtype others[] = {ATTN_INT64, ATTN_INT32, ATTN_UINT8, ATTN_BOOL};
	const float value = 1;
	uint64_t out = 7;
	for (size_t i = 0; i < 4; i++)
		ck_assert_int_eq(attn_from_float32(others[i], &value, 1, &out), ATTN_UNSUPPORTED);
	ck_assert_uint_eq(out, 7);
}
END_TEST

SUITE_MAIN("dtype", sizes_and_names_are_those_of_safetensors, float32_keeps_its_bits,
           every_float16_is_converted_exactly, every_bfloat16_is_converted_exactly,
           float64_rounds_to_nearest_even, integers_round_to_nearest_even, elements_may_lie_at_any_alignment,
           booleans_are_not_numbers, rule_10_float16_is_rounded_to_nearest_even,
           rule_10_bfloat16_is_rounded_to_nearest_even, nan_stays_nan_however_narrow,
           float32_and_float64_are_written_exactly_at_any_alignment, integers_and_booleans_are_not_written)
