#include "pipeline/estimate.h"

#include "suite.h"

START_TEST(nothing_is_estimated_before_anything_was_computed)
{
	struct estimate estimate = {0};
	ck_assert_double_eq(estimate_seconds(&estimate, 1e12, 100), 0);
	estimate_record(&estimate, 0, 0, 0);
	ck_assert_double_eq(estimate_seconds(&estimate, 1e12, 100), 0);
}
END_TEST

START_TEST(what_waits_takes_as_long_as_the_like_took)
{
	struct estimate estimate = {0};
	estimate_record(&estimate, 2, 1000, 4);
	ck_assert_double_eq_tol(estimate_seconds(&estimate, 500, 0), 1, 1e-12);
	ck_assert_double_eq_tol(estimate_seconds(&estimate, 0, 6), 3, 1e-12);
	ck_assert_double_eq_tol(estimate_seconds(&estimate, 500, 6), 4, 1e-12);
}
END_TEST

START_TEST(the_estimate_follows_a_change_of_speed)
{
	struct estimate estimate = {0};
	for (int i = 0; i < 100; i++)
		estimate_record(&estimate, 1, 1000, 1);
	for (int i = 0; i < 100; i++)
		estimate_record(&estimate, 3, 1000, 1);
	ck_assert_double_eq_tol(estimate_seconds(&estimate, 1000, 0), 3, 0.01);
}
END_TEST

SUITE_MAIN("estimate", nothing_is_estimated_before_anything_was_computed,
           what_waits_takes_as_long_as_the_like_took, the_estimate_follows_a_change_of_speed)
