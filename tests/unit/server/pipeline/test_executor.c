#include "pipeline/executor.h"

#include "observe/clock.h"
#include "suite.h"

#include <sched.h>
#include <string.h>
#include <uv.h>

#define HELPERS 3
#define TILES 500

static const struct queue_config config = {
    .limit = 4,
    .caps = {.jobs = 4, .sequences = 4, .tokens = SIZE_MAX, .scores = SIZE_MAX},
    .rules = {.batch_wait = 0, .batch_max_age = CLOCK_NS_PER_S},
};

/* A pool that has nothing to do but to help. */
struct helper {
	uv_thread_t thread;
	struct queue *queue;
	attn_arena *scratch;
	struct job *room[4];
};

static struct queue *queue;
static attn_arena *own;
static struct heartbeat own_heart;
static struct executor *executor;
static struct helper helpers[HELPERS];

static void help(void *arg)
{
	struct helper *helper = arg;
	struct task task = {.jobs = helper->room};
	while (task.kind != TASK_STOP) {
		queue_take(helper->queue, &task, clock_now());
		if (task.kind == TASK_TILE)
			tile_set_run(task.tiles, task.tile, helper->scratch);
	}
}

static void start(size_t count)
{
	queue = queue_new(&config);
	own = attn_arena_new(1 << 20);
	executor = executor_new(queue, own, &own_heart);
	for (size_t i = 0; i < count; i++) {
		helpers[i] = (struct helper){.queue = queue, .scratch = attn_arena_new(1 << 20)};
		uv_thread_create(&helpers[i].thread, help, &helpers[i]);
	}
	while (queue_state_of(queue).idle < count)
		sched_yield();
}

static void stop(size_t count)
{
	queue_stop(queue);
	for (size_t i = 0; i < count; i++) {
		uv_thread_join(&helpers[i].thread);
		attn_arena_free(helpers[i].scratch);
	}
	executor_free(executor);
	attn_arena_free(own);
	queue_free(queue);
}

static attn_status run_tiles(size_t tiles, attn_tile_fn *run, void *arg)
{
	attn_executor *face = executor_for(executor, NULL, 0);
	return face->parallel_for(face, tiles, run, arg);
}

static attn_status count_tile(void *arg, size_t tile, attn_arena *scratch)
{
	int *runs = arg; /* each tile writes its own */
	int *mine = attn_arena_alloc(scratch, sizeof(int));
	*mine = 1;
	runs[tile] += *mine;
	return ATTN_OK;
}

START_TEST(every_tile_runs_once_with_any_number_of_helpers)
{
	static int runs[TILES];
	for (size_t count = 0; count <= HELPERS; count++) {
		start(count);
		memset(runs, 0, sizeof(runs));
		for (int round = 1; round <= 20; round++) {
			ck_assert_int_eq(run_tiles(TILES, count_tile, runs), ATTN_OK);
			for (size_t i = 0; i < TILES; i++)
				ck_assert_int_eq(runs[i], round);
		}
		ck_assert_int_eq(run_tiles(0, count_tile, NULL), ATTN_OK);
		stop(count);
	}
}
END_TEST

/* Tiles that end only when all of them run at one time. */
struct meeting {
	uv_mutex_t lock;
	uv_cond_t all;
	size_t there, wanted;
	attn_arena *scratches[HELPERS + 1];
};

static attn_status meet(void *arg, size_t tile, attn_arena *scratch)
{
	struct meeting *meeting = arg;
	uv_mutex_lock(&meeting->lock);
	meeting->scratches[tile] = scratch;
	meeting->there++;
	if (meeting->there == meeting->wanted)
		uv_cond_broadcast(&meeting->all);
	while (meeting->there < meeting->wanted)
		uv_cond_wait(&meeting->all, &meeting->lock);
	uv_mutex_unlock(&meeting->lock);
	return ATTN_OK;
}

START_TEST(idle_workers_help_each_with_scratch_of_its_own)
{
	struct meeting meeting = {.wanted = HELPERS + 1};
	uv_mutex_init(&meeting.lock);
	uv_cond_init(&meeting.all);
	start(HELPERS);
	ck_assert_int_eq(run_tiles(HELPERS + 1, meet, &meeting), ATTN_OK);
	for (size_t i = 0; i <= HELPERS; i++) {
		for (size_t k = 0; k < i; k++)
			ck_assert_ptr_ne(meeting.scratches[i], meeting.scratches[k]);
	}
	stop(HELPERS);
	uv_cond_destroy(&meeting.all);
	uv_mutex_destroy(&meeting.lock);
}
END_TEST

static attn_status fail_tile_3(void *arg, size_t tile, attn_arena *scratch)
{
	(void)scratch;
	atomic_fetch_add((atomic_size_t *)arg, 1);
	return tile == 3 ? ATTN_MEMORY : ATTN_OK;
}

START_TEST(a_tile_that_fails_ends_the_call_with_its_status)
{
	for (size_t count = 0; count <= HELPERS; count++) {
		start(count);
		atomic_size_t runs = 0;
		ck_assert_int_eq(run_tiles(1000000, fail_tile_3, &runs), ATTN_MEMORY);
		if (count == 0)
			ck_assert_uint_eq(runs, 4);
		ck_assert_uint_lt(runs, 1000000);
		runs = 0; /* the next call is not touched by it */
		ck_assert_int_eq(run_tiles(3, fail_tile_3, &runs), ATTN_OK);
		ck_assert_uint_eq(runs, 3);
		stop(count);
	}
}
END_TEST

struct cancelling {
	struct job *cancel; /* by tile 2 */
	atomic_size_t runs;
};

static attn_status cancel_in_tile_2(void *arg, size_t tile, attn_arena *scratch)
{
	struct cancelling *cancelling = arg;
	(void)scratch;
	cancelling->runs++;
	if (tile == 2)
		atomic_store(&cancelling->cancel->cancelled, true);
	return ATTN_OK;
}

START_TEST(what_is_left_is_skipped_only_when_every_job_is_cancelled)
{
	struct job jobs[2] = {0};
	struct job *batch[2] = {&jobs[0], &jobs[1]};
	start(0);
	attn_executor *face = executor_for(executor, batch, 2);
	struct cancelling cancelling = {.cancel = &jobs[0]};
	ck_assert_int_eq(face->parallel_for(face, 10, cancel_in_tile_2, &cancelling), ATTN_OK);
	ck_assert_uint_eq(cancelling.runs, 10);
	cancelling = (struct cancelling){.cancel = &jobs[1]};
	ck_assert_int_eq(face->parallel_for(face, 10, cancel_in_tile_2, &cancelling), ATTN_CANCELLED);
	ck_assert_uint_eq(cancelling.runs, 3);
	ck_assert_int_eq(face->parallel_for(face, 1, cancel_in_tile_2, &cancelling), ATTN_CANCELLED);
	stop(0);
}
END_TEST

static attn_status stop_in_tile_2(void *arg, size_t tile, attn_arena *scratch)
{
	(void)scratch;
	++*(size_t *)arg;
	if (tile == 2)
		queue_stop(queue);
	return ATTN_OK;
}

START_TEST(a_stopping_pool_skips_what_is_left)
{
	size_t runs = 0;
	start(0);
	ck_assert_int_eq(run_tiles(10, stop_in_tile_2, &runs), ATTN_CANCELLED);
	ck_assert_uint_eq(runs, 3);
	stop(0);
}
END_TEST

static attn_status look_at_scratch(void *arg, size_t tile, attn_arena *scratch)
{
	attn_arena_mark *first = arg;
	attn_arena_mark here = attn_arena_here(scratch);
	if (tile == 0)
		*first = here;
	if (here.chunk != first->chunk || here.used != first->used)
		return ATTN_INVALID;
	return attn_arena_floats(scratch, 100) != NULL ? ATTN_OK : ATTN_MEMORY;
}

START_TEST(each_tile_finds_the_scratch_as_the_call_left_it)
{
	start(0);
	float *before = attn_arena_floats(own, 10);
	before[9] = 7;
	attn_arena_mark first = {0};
	ck_assert_int_eq(run_tiles(50, look_at_scratch, &first), ATTN_OK);
	ck_assert_float_eq(before[9], 7);
	stop(0);
}
END_TEST

/* Two owners at once, each helping the other when its own call is done. */
struct owner {
	uv_thread_t thread;
	struct executor *executor;
	attn_arena *scratch;
	struct heartbeat heart;
	int runs[TILES];
};

static void own_calls(void *arg)
{
	struct owner *owner = arg;
	attn_executor *face = executor_for(owner->executor, NULL, 0);
	for (int round = 0; round < 20; round++)
		face->parallel_for(face, TILES, count_tile, owner->runs);
}

START_TEST(calls_of_several_owners_do_not_mix)
{
	static struct owner owners[2];
	start(HELPERS);
	for (size_t i = 0; i < 2; i++) {
		owners[i].scratch = attn_arena_new(1 << 20);
		owners[i].executor = executor_new(queue, owners[i].scratch, &owners[i].heart);
		uv_thread_create(&owners[i].thread, own_calls, &owners[i]);
	}
	for (size_t i = 0; i < 2; i++) {
		uv_thread_join(&owners[i].thread);
		for (size_t k = 0; k < TILES; k++)
			ck_assert_int_eq(owners[i].runs[k], 20);
		executor_free(owners[i].executor);
		attn_arena_free(owners[i].scratch);
	}
	stop(HELPERS);
}
END_TEST

SUITE_MAIN("executor", every_tile_runs_once_with_any_number_of_helpers,
           idle_workers_help_each_with_scratch_of_its_own, a_tile_that_fails_ends_the_call_with_its_status,
           what_is_left_is_skipped_only_when_every_job_is_cancelled, a_stopping_pool_skips_what_is_left,
           each_tile_finds_the_scratch_as_the_call_left_it, calls_of_several_owners_do_not_mix)
