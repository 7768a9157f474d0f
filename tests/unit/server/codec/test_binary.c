#include "codec/binary.h"

#include "suite.h"

#include <math.h>
#include <string.h>

static struct problem problem;

static float *floats(attn_dtype dtype, const void *bytes, size_t count)
{
	problem = (struct problem){.code = PROBLEM_NONE};
	return binary_floats(dtype, bytes, count, "/x/base64", &problem);
}

START_TEST(numbers_of_every_type_become_float32)
{
	static const float singles[] = {1.5f, -0.0f, 3e38f};
	static const uint16_t halves[] = {0x3E00, 0x8000, 0xFC00};
	static const uint16_t brains[] = {0x3FC0, 0x8000, 0x7F80};
	static const double doubles[] = {1.5, -1e-300, 0.1};
	static const struct {
		attn_dtype dtype;
		const void *bytes;
		float expected[3];
	} cases[] = {
	    {ATTN_FLOAT32, singles, {1.5f, -0.0f, 3e38f}},
	    {ATTN_FLOAT16, halves, {1.5f, -0.0f, -INFINITY}},
	    {ATTN_BFLOAT16, brains, {1.5f, -0.0f, INFINITY}},
	    {ATTN_FLOAT64, doubles, {1.5f, -0.0f, 0.1f}},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert(binary_is_number(cases[i].dtype));
		float *found = floats(cases[i].dtype, cases[i].bytes, 3);
		ck_assert_ptr_nonnull(found);
		ck_assert_mem_eq(found, cases[i].expected, sizeof(cases[i].expected));
		free(found);
	}
	ck_assert(!binary_is_number(ATTN_BOOL) && !binary_is_number(ATTN_INT64));
}
END_TEST

START_TEST(nan_and_infinity_pass_but_no_finite_number_becomes_one)
{
	static const double wild[] = {NAN, INFINITY, -INFINITY}, beyond[] = {1, INFINITY, -1e39};
	float *found = floats(ATTN_FLOAT64, wild, 3);
	ck_assert(isnan(found[0]) && found[1] == INFINITY && found[2] == -INFINITY);
	free(found);
	ck_assert_ptr_null(floats(ATTN_FLOAT64, beyond, 3));
	ck_assert_int_eq(problem.code, PROBLEM_BEYOND_FLOAT32);
	ck_assert_str_eq(problem.pointer, "/x/base64");
	ck_assert_ptr_nonnull(strstr(problem.detail, "number 2 "));
}
END_TEST

START_TEST(no_numbers_are_an_empty_tensor)
{
	float *found = floats(ATTN_FLOAT16, "", 0);
	ck_assert_ptr_nonnull(found);
	free(found);
}
END_TEST

START_TEST(a_boolean_is_the_byte_0_or_1)
{
	static const uint8_t bytes[] = {0, 1, 1, 2};
	problem = (struct problem){.code = PROBLEM_NONE};
	ck_assert(binary_check_booleans(bytes, 3, "/mask/base64", &problem));
	ck_assert(!binary_check_booleans(bytes, 4, "/mask/base64", &problem));
	ck_assert_int_eq(problem.code, PROBLEM_BAD_VALUE);
	ck_assert_ptr_nonnull(strstr(problem.detail, "boolean 3 "));
}
END_TEST

SUITE_MAIN("binary", numbers_of_every_type_become_float32,
           nan_and_infinity_pass_but_no_finite_number_becomes_one, no_numbers_are_an_empty_tensor,
           a_boolean_is_the_byte_0_or_1)
