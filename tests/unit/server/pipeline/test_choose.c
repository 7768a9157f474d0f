#include "pipeline/choose.h"

#include "suite.h"

#define MS 1000000ull

static const struct choose_rules plain = {.batch_wait = 0, .batch_max_age = 50 * MS};
static const struct choose_rules holding = {.batch_wait = 10 * MS, .batch_max_age = 50 * MS};

static enum choice choose(struct choose_view view, const struct choose_rules *rules, uint64_t now)
{
	uint64_t again;
	return choose_task(&view, rules, now, &again);
}

START_TEST(a_format_task_goes_before_everything)
{
	struct choose_view view = {.format = true, .parse = true, .batch = true, .full = true, .tile = true};
	ck_assert_int_eq(choose(view, &plain, 1000 * MS), CHOOSE_FORMAT);
}
END_TEST

START_TEST(a_full_batch_goes_before_a_parse_task_that_waited_longer)
{
	struct choose_view view = {.parse = true,
	                           .parse_since = 1,
	                           .batch = true,
	                           .batch_since = 2 * MS,
	                           .full = true,
	                           .full_since = 3 * MS};
	ck_assert_int_eq(choose(view, &plain, 4 * MS), CHOOSE_FULL_BATCH);
}
END_TEST

START_TEST(a_batch_older_than_the_limit_goes_before_parsing_and_before_younger_full_ones)
{
	struct choose_view view = {
	    .parse = true, .parse_since = 1, .batch = true, .batch_since = 2, .full = true, .full_since = 3};
	ck_assert_int_eq(choose(view, &plain, 50 * MS + 2), CHOOSE_FULL_BATCH);
	ck_assert_int_eq(choose(view, &plain, 50 * MS + 3), CHOOSE_BATCH);
	view.full = false;
	ck_assert_int_eq(choose(view, &plain, 50 * MS + 2), CHOOSE_PARSE);
	ck_assert_int_eq(choose(view, &plain, 50 * MS + 3), CHOOSE_BATCH);
}
END_TEST

START_TEST(between_parsing_and_computing_the_longer_wait_goes_first)
{
	struct choose_view view = {.parse = true, .parse_since = 7, .batch = true, .batch_since = 8};
	ck_assert_int_eq(choose(view, &plain, 9), CHOOSE_PARSE);
	view.parse_since = 9;
	ck_assert_int_eq(choose(view, &plain, 9), CHOOSE_BATCH);
}
END_TEST

START_TEST(a_burst_is_parsed_before_it_is_computed)
{
	/* All came at one time; each goes to the batch queue when it is parsed, where its age starts again.
	 */
	struct choose_view view = {.parse = true, .parse_since = 5, .batch = true};
	for (uint64_t now = 5; now < 40; now++) {
		view.batch_since = now;
		ck_assert_int_eq(choose(view, &plain, now), CHOOSE_PARSE);
	}
	view.parse = false;
	ck_assert_int_eq(choose(view, &plain, 40), CHOOSE_BATCH);
}
END_TEST

START_TEST(only_an_idle_worker_helps_with_tiles)
{
	struct choose_view view = {.tile = true};
	ck_assert_int_eq(choose(view, &plain, 1), CHOOSE_TILE);
	view.parse = true;
	ck_assert_int_eq(choose(view, &plain, 1), CHOOSE_PARSE);
	view = (struct choose_view){.tile = true, .batch = true};
	ck_assert_int_eq(choose(view, &plain, 1), CHOOSE_BATCH);
}
END_TEST

START_TEST(a_free_worker_takes_a_batch_that_is_not_full_at_once)
{
	struct choose_view view = {.batch = true, .batch_since = 3};
	ck_assert_int_eq(choose(view, &plain, 3), CHOOSE_BATCH);
}
END_TEST

START_TEST(batch_wait_holds_a_batch_that_is_not_full)
{
	struct choose_view view = {.batch = true, .batch_since = 5};
	uint64_t again;
	ck_assert_int_eq(choose_task(&view, &holding, 6, &again), CHOOSE_NOTHING);
	ck_assert_uint_eq(again, 5 + 10 * MS);
	ck_assert_int_eq(choose_task(&view, &holding, again - 1, &again), CHOOSE_NOTHING);
	ck_assert_int_eq(choose_task(&view, &holding, again, &again), CHOOSE_BATCH);
	view.full = true;
	view.full_since = 6;
	ck_assert_int_eq(choose_task(&view, &holding, 6, &again), CHOOSE_FULL_BATCH);
}
END_TEST

START_TEST(while_a_batch_is_held_other_work_goes_on)
{
	struct choose_view view = {.batch = true, .batch_since = 5, .parse = true, .parse_since = 6};
	ck_assert_int_eq(choose(view, &holding, 7), CHOOSE_PARSE);
	view.parse = false;
	view.tile = true;
	ck_assert_int_eq(choose(view, &holding, 7), CHOOSE_TILE);
}
END_TEST

START_TEST(a_hold_longer_than_the_age_limit_is_kept)
{
	struct choose_rules rules = {.batch_wait = 200 * MS, .batch_max_age = 50 * MS};
	struct choose_view view = {.batch = true, .batch_since = 0, .parse = true, .parse_since = 199 * MS};
	ck_assert_int_eq(choose(view, &rules, 199 * MS), CHOOSE_PARSE);
	ck_assert_int_eq(choose(view, &rules, 200 * MS), CHOOSE_BATCH);
}
END_TEST

START_TEST(nothing_to_do_is_said_so)
{
	struct choose_view view = {0};
	uint64_t again = 0;
	ck_assert_int_eq(choose_task(&view, &plain, 9, &again), CHOOSE_NOTHING);
	ck_assert_uint_eq(again, CHOOSE_NEVER);
}
END_TEST

START_TEST(times_at_the_ends_of_their_range_do_not_wrap)
{
	struct choose_rules rules = {.batch_wait = UINT64_MAX, .batch_max_age = UINT64_MAX};
	struct choose_view view = {.batch = true, .batch_since = 5};
	uint64_t again = 0;
	ck_assert_int_eq(choose_task(&view, &rules, 6, &again), CHOOSE_NOTHING);
	ck_assert_uint_eq(again, CHOOSE_NEVER);
	/* put by another thread just after this one read the clock */
	ck_assert_int_eq(choose(view, &plain, 4), CHOOSE_BATCH);
	ck_assert_int_eq(choose(view, &holding, 4), CHOOSE_NOTHING);
}
END_TEST

SUITE_MAIN("choose", a_format_task_goes_before_everything,
           a_full_batch_goes_before_a_parse_task_that_waited_longer,
           a_batch_older_than_the_limit_goes_before_parsing_and_before_younger_full_ones,
           between_parsing_and_computing_the_longer_wait_goes_first, a_burst_is_parsed_before_it_is_computed,
           only_an_idle_worker_helps_with_tiles, a_free_worker_takes_a_batch_that_is_not_full_at_once,
           batch_wait_holds_a_batch_that_is_not_full, while_a_batch_is_held_other_work_goes_on,
           a_hold_longer_than_the_age_limit_is_kept, nothing_to_do_is_said_so,
           times_at_the_ends_of_their_range_do_not_wrap)
