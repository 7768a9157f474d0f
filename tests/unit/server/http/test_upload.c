#include "http/upload.h"
#include "suite.h"

#include <string.h>

#define KIB 1024

START_TEST(a_sized_body_is_charged_when_announced_and_given_back_when_cleared)
{
	struct budget budget;
	struct upload upload;
	struct problem problem = {0};
	budget_init(&budget, 100);
	ck_assert(upload_begin(&upload, &budget, 50, true, 40, &problem));
	ck_assert_uint_eq(budget_used(&budget), 40);
	ck_assert(upload_append(&upload, &budget, "abc", 3, &problem));
	ck_assert_uint_eq(budget_used(&budget), 40);
	ck_assert_mem_eq(upload.body, "abc", 3);
	upload_clear(&upload, &budget);
	ck_assert_uint_eq(budget_used(&budget), 0);
}
END_TEST

START_TEST(an_announced_body_over_its_limit_holds_nothing)
{
	struct budget budget;
	struct upload upload;
	struct problem problem = {0};
	budget_init(&budget, 100);
	ck_assert(!upload_begin(&upload, &budget, 50, true, 51, &problem));
	ck_assert_int_eq(problem.code, PROBLEM_BODY_TOO_LARGE);
	ck_assert_ptr_nonnull(strstr(problem.detail, "50"));
	ck_assert_ptr_null(upload.body);
	ck_assert_uint_eq(budget_used(&budget), 0);
	upload_clear(&upload, &budget);
}
END_TEST

START_TEST(a_body_that_never_fits_is_413_and_one_that_does_not_fit_now_is_429)
{
	struct budget budget;
	struct upload first, second;
	struct problem never = {0}, later = {0}, none = {0};
	budget_init(&budget, 100);
	ck_assert(!upload_begin(&first, &budget, 500, true, 101, &never));
	ck_assert_int_eq(never.code, PROBLEM_NEVER_FITS);
	ck_assert(upload_begin(&first, &budget, 500, true, 60, &none));
	ck_assert(!upload_begin(&second, &budget, 500, true, 60, &later));
	ck_assert_int_eq(later.code, PROBLEM_BUDGET_FULL);
	ck_assert_uint_eq(budget_used(&budget), 60);
	upload_clear(&first, &budget);
	upload_clear(&second, &budget);
}
END_TEST

START_TEST(a_growing_body_is_charged_as_it_grows_and_stops_at_its_limit)
{
	struct budget budget;
	struct upload upload;
	struct problem problem = {0};
	size_t limit = 300 * KIB;
	char data[10 * KIB];
	memset(data, 'x', sizeof(data));
	budget_init(&budget, 1000 * KIB);
	ck_assert(upload_begin(&upload, &budget, limit, false, 0, &problem));
	ck_assert_ptr_nonnull(upload.body);
	for (size_t i = 0; i < 30; i++) {
		ck_assert(upload_append(&upload, &budget, data, sizeof(data), &problem));
		ck_assert_uint_eq(budget_used(&budget), upload.capacity);
		ck_assert_uint_le(upload.capacity, limit);
		ck_assert_uint_ge(upload.capacity, upload.length);
	}
	ck_assert(!upload_append(&upload, &budget, data, 1, &problem));
	ck_assert_int_eq(problem.code, PROBLEM_BODY_TOO_LARGE);
	ck_assert_uint_eq(upload.length, limit);
	upload_clear(&upload, &budget);
	ck_assert_uint_eq(budget_used(&budget), 0);
}
END_TEST

START_TEST(growth_asks_for_no_more_than_the_budget_could_ever_give)
{
	struct budget budget;
	struct upload upload;
	struct problem problem = {0};
	char data[600] = {0};
	budget_init(&budget, 1000);
	ck_assert(upload_begin(&upload, &budget, 5000, false, 0, &problem));
	ck_assert(upload_append(&upload, &budget, data, 600, &problem));
	ck_assert(!upload_append(&upload, &budget, data, 600, &problem));
	ck_assert_int_eq(problem.code, PROBLEM_NEVER_FITS);
	upload_clear(&upload, &budget);
	ck_assert_uint_eq(budget_used(&budget), 0);
}
END_TEST

SUITE_MAIN("upload", a_sized_body_is_charged_when_announced_and_given_back_when_cleared,
           an_announced_body_over_its_limit_holds_nothing,
           a_body_that_never_fits_is_413_and_one_that_does_not_fit_now_is_429,
           a_growing_body_is_charged_as_it_grows_and_stops_at_its_limit,
           growth_asks_for_no_more_than_the_budget_could_ever_give)
