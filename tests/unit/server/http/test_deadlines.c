#include "http/deadlines.h"
#include "suite.h"

#include <stdint.h>

#define MANY 200

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

START_TEST(nothing_is_due_before_its_time)
{
	struct deadlines deadlines;
	ck_assert(deadlines_init(&deadlines, 2));
	struct deadline one = {0};
	ck_assert_ptr_null(deadlines_first(&deadlines));
	deadlines_set(&deadlines, &one, 100);
	ck_assert_ptr_null(deadlines_take_due(&deadlines, 99));
	ck_assert_ptr_eq(deadlines_take_due(&deadlines, 100), &one);
	ck_assert_ptr_null(deadlines_take_due(&deadlines, UINT64_MAX));
	deadlines_clear(&deadlines);
}
END_TEST

START_TEST(a_moved_deadline_counts_once_at_its_new_time)
{
	struct deadlines deadlines;
	ck_assert(deadlines_init(&deadlines, 3));
	struct deadline a = {0}, b = {0}, c = {0};
	deadlines_set(&deadlines, &a, 10);
	deadlines_set(&deadlines, &b, 20);
	deadlines_set(&deadlines, &c, 30);
	deadlines_set(&deadlines, &a, 40);
	deadlines_set(&deadlines, &c, 5);
	ck_assert_uint_eq(deadlines.count, 3);
	ck_assert_ptr_eq(deadlines_take_due(&deadlines, 100), &c);
	ck_assert_ptr_eq(deadlines_take_due(&deadlines, 100), &b);
	ck_assert_ptr_eq(deadlines_take_due(&deadlines, 100), &a);
	ck_assert_ptr_null(deadlines_take_due(&deadlines, 100));
	deadlines_clear(&deadlines);
}
END_TEST

START_TEST(dropping_twice_or_when_not_set_does_nothing)
{
	struct deadlines deadlines;
	ck_assert(deadlines_init(&deadlines, 2));
	struct deadline a = {0}, b = {0};
	deadlines_drop(&deadlines, &a);
	deadlines_set(&deadlines, &a, 1);
	deadlines_set(&deadlines, &b, 2);
	deadlines_drop(&deadlines, &a);
	deadlines_drop(&deadlines, &a);
	ck_assert_ptr_eq(deadlines_first(&deadlines), &b);
	ck_assert_uint_eq(deadlines.count, 1);
	deadlines_clear(&deadlines);
}
END_TEST

/* Against a plain list that is searched from end to end. */
START_TEST(the_soonest_comes_first_whatever_is_set_moved_and_dropped)
{
	struct deadlines deadlines;
	ck_assert(deadlines_init(&deadlines, MANY));
	struct deadline all[MANY] = {{0}};
	uint64_t random = 7;
	for (int step = 0; step < 20000; step++) {
		struct deadline *picked = &all[next_random(&random) % MANY];
		if (next_random(&random) % 3 == 0)
			deadlines_drop(&deadlines, picked);
		else
			deadlines_set(&deadlines, picked, next_random(&random) % 1000);
		uint64_t soonest = UINT64_MAX;
		size_t set = 0;
		for (size_t i = 0; i < MANY; i++) {
			if (all[i].slot == 0)
				continue;
			set++;
			soonest = all[i].at < soonest ? all[i].at : soonest;
		}
		ck_assert_uint_eq(deadlines.count, set);
		if (set > 0)
			ck_assert_uint_eq(deadlines_first(&deadlines)->at, soonest);
	}
	uint64_t before = 0;
	for (struct deadline *due; (due = deadlines_take_due(&deadlines, 1000));) {
		ck_assert_uint_ge(due->at, before);
		before = due->at;
	}
	ck_assert_uint_eq(deadlines.count, 0);
	deadlines_clear(&deadlines);
}
END_TEST

SUITE_MAIN("deadlines", nothing_is_due_before_its_time, a_moved_deadline_counts_once_at_its_new_time,
           dropping_twice_or_when_not_set_does_nothing,
           the_soonest_comes_first_whatever_is_set_moved_and_dropped)
