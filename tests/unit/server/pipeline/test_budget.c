#include "pipeline/budget.h"

#include "suite.h"

#include <stdint.h>
#include <uv.h>

#define THREADS 4
#define ROUNDS 20000

static struct budget budget;

START_TEST(what_fits_is_charged_and_what_does_not_changes_nothing)
{
	budget_init(&budget, 100);
	ck_assert_int_eq(budget_grow(&budget, 0, 60), BUDGET_OK);
	ck_assert_int_eq(budget_grow(&budget, 0, 41), BUDGET_LATER);
	ck_assert_uint_eq(budget_used(&budget), 60);
	ck_assert_int_eq(budget_grow(&budget, 0, 40), BUDGET_OK);
	ck_assert_uint_eq(budget_used(&budget), 100);
	budget_give_back(&budget, 100);
	ck_assert_uint_eq(budget_used(&budget), 0);
}
END_TEST

START_TEST(what_can_never_fit_is_told_apart_from_what_does_not_fit_now)
{
	budget_init(&budget, 100);
	ck_assert_int_eq(budget_grow(&budget, 0, 90), BUDGET_OK);
	ck_assert_int_eq(budget_grow(&budget, 0, 100), BUDGET_LATER);
	ck_assert_int_eq(budget_grow(&budget, 0, 101), BUDGET_NEVER);
	ck_assert_int_eq(budget_grow(&budget, 90, 101), BUDGET_NEVER);
	ck_assert_int_eq(budget_grow(&budget, 0, SIZE_MAX), BUDGET_NEVER);
	ck_assert_int_eq(budget_grow(&budget, 90, 100), BUDGET_OK);
	ck_assert_uint_eq(budget_used(&budget), 100);
}
END_TEST

static atomic_size_t over;

static void charge_and_give_back(void *arg)
{
	size_t bytes = *(size_t *)arg, charged = 0;
	for (size_t i = 0; i < ROUNDS; i++) {
		if (budget_grow(&budget, charged, charged + bytes) == BUDGET_OK) {
			charged += bytes;
		} else {
			budget_give_back(&budget, charged);
			charged = 0;
		}
		if (budget_used(&budget) > 1000)
			over++;
	}
	budget_give_back(&budget, charged);
}

START_TEST(threads_together_never_exceed_the_limit_and_lose_no_byte)
{
	uv_thread_t threads[THREADS];
	size_t bytes[THREADS] = {1, 7, 130, 400};
	budget_init(&budget, 1000);
	for (size_t i = 0; i < THREADS; i++)
		uv_thread_create(&threads[i], charge_and_give_back, &bytes[i]);
	for (size_t i = 0; i < THREADS; i++)
		uv_thread_join(&threads[i]);
	ck_assert_uint_eq(over, 0);
	ck_assert_uint_eq(budget_used(&budget), 0);
}
END_TEST

SUITE_MAIN("budget", what_fits_is_charged_and_what_does_not_changes_nothing,
           what_can_never_fit_is_told_apart_from_what_does_not_fit_now,
           threads_together_never_exceed_the_limit_and_lose_no_byte)
