#include "pipeline/watchdog.h"

#include "pipeline/heartbeat.h"
#include "suite.h"

static bool alive(uint64_t previous, uint64_t now)
{
	return watchdog_alive(&previous, &now, 1);
}

START_TEST(a_pool_without_work_is_well)
{
	const uint64_t beats[3] = {0, 8, 1000};
	ck_assert(watchdog_alive(beats, beats, 3));
}
END_TEST

START_TEST(a_worker_that_begins_ends_or_tiles_is_well)
{
	struct heartbeat heart = {0};
	uint64_t before = heartbeat_read(&heart);
	heartbeat_task(&heart); /* a task */
	ck_assert(alive(before, heartbeat_read(&heart)));
	before = heartbeat_read(&heart);
	heartbeat_tile(&heart); /* goes on with it */
	ck_assert(alive(before, heartbeat_read(&heart)));
	before = heartbeat_read(&heart);
	heartbeat_task(&heart); /* and ends it */
	ck_assert(alive(before, heartbeat_read(&heart)));
	ck_assert(alive(heartbeat_read(&heart), heartbeat_read(&heart)));
	before = heartbeat_read(&heart);
	heartbeat_task(&heart); /* one task ended and another begun between two looks */
	heartbeat_task(&heart);
	heartbeat_task(&heart);
	ck_assert(alive(before, heartbeat_read(&heart)));
}
END_TEST

START_TEST(a_worker_in_one_task_without_a_tile_all_along_is_stuck)
{
	struct heartbeat heart = {0};
	heartbeat_task(&heart);
	ck_assert(!alive(heartbeat_read(&heart), heartbeat_read(&heart)));
	heartbeat_tile(&heart);
	ck_assert(!alive(heartbeat_read(&heart), heartbeat_read(&heart)));
}
END_TEST

START_TEST(one_stuck_worker_is_not_hidden_by_others_that_go_on)
{
	const uint64_t previous[4] = {10, 21, 7, 40}, now[4] = {12, 27, 7, 41};
	ck_assert(!watchdog_alive(previous, now, 4));
	ck_assert(watchdog_alive(previous, now, 2));
}
END_TEST

SUITE_MAIN("watchdog", a_pool_without_work_is_well, a_worker_that_begins_ends_or_tiles_is_well,
           a_worker_in_one_task_without_a_tile_all_along_is_stuck,
           one_stuck_worker_is_not_hidden_by_others_that_go_on)
