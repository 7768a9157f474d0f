#include "attn.h"
#include "suite.h"

#include <string.h>

START_TEST(a_product_is_exact_or_refused)
{
	size_t out = 7;
	ck_assert(attn_size_product((const size_t[]){2, 3, 5}, 3, &out));
	ck_assert_uint_eq(out, 30);
	ck_assert(!attn_size_product((const size_t[]){SIZE_MAX, 2}, 2, &out));
	ck_assert(!attn_size_product((const size_t[]){(size_t)1 << 32, (size_t)1 << 32}, 2, &out));
	ck_assert(attn_size_product((const size_t[]){SIZE_MAX, 1}, 2, &out));
	ck_assert_uint_eq(out, SIZE_MAX);
}
END_TEST

START_TEST(the_empty_product_is_one)
{
	size_t out = 0;
	ck_assert(attn_size_product(NULL, 0, &out));
	ck_assert_uint_eq(out, 1);
}
END_TEST

START_TEST(a_zero_dimension_does_not_hide_an_overflow)
{
	size_t out = 7;
	ck_assert(attn_size_product((const size_t[]){3, 0, 4}, 3, &out));
	ck_assert_uint_eq(out, 0);
	ck_assert(!attn_size_product((const size_t[]){0, (size_t)1 << 40, (size_t)1 << 40}, 3, &out));
	ck_assert(!attn_size_product((const size_t[]){(size_t)1 << 40, (size_t)1 << 40, 0}, 3, &out));
}
END_TEST

START_TEST(sums_and_products_of_two_are_exact_or_refused)
{
	size_t out = 0;
	ck_assert(attn_size_add(SIZE_MAX - 1, 1, &out));
	ck_assert_uint_eq(out, SIZE_MAX);
	ck_assert(!attn_size_add(SIZE_MAX, 1, &out));
	ck_assert(attn_size_mul(SIZE_MAX, 0, &out));
	ck_assert_uint_eq(out, 0);
	ck_assert(!attn_size_mul(SIZE_MAX, 2, &out));
}
END_TEST

START_TEST(every_status_has_its_own_text)
{
	for (int a = ATTN_OK; a <= ATTN_SELF_CHECK; a++) {
		ck_assert_ptr_nonnull(attn_status_text((attn_status)a));
		for (int b = ATTN_OK; b < a; b++)
			ck_assert_str_ne(attn_status_text((attn_status)a), attn_status_text((attn_status)b));
	}
	ck_assert_str_eq(attn_status_text((attn_status)1000), "unknown status");
}
END_TEST

SUITE_MAIN("shape", a_product_is_exact_or_refused, the_empty_product_is_one,
           a_zero_dimension_does_not_hide_an_overflow, sums_and_products_of_two_are_exact_or_refused,
           every_status_has_its_own_text)
