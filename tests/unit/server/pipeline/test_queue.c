#include "pipeline/queue.h"

#include "observe/clock.h"
#include "suite.h"

#include <sched.h>
#include <string.h>
#include <uv.h>

#define JOBS 8

static struct job jobs[JOBS];
static struct job *room[JOBS];

static const struct queue_config plain = {
    .limit = 4,
    .caps = {.jobs = JOBS, .sequences = JOBS, .tokens = SIZE_MAX, .scores = SIZE_MAX},
    .rules = {.batch_wait = 0, .batch_max_age = CLOCK_NS_PER_S},
};

static struct job *job_number(size_t i)
{
	memset(&jobs[i], 0, sizeof(jobs[i]));
	jobs[i].sequences = 1;
	return &jobs[i];
}

static void take(struct queue *queue, struct task *task, uint64_t now, enum task_kind kind)
{
	queue_take(queue, task, now);
	ck_assert_int_eq(task->kind, kind);
}

START_TEST(a_job_goes_through_its_stages_and_its_waits_add_up)
{
	struct queue *queue = queue_new(&plain);
	struct task task = {.jobs = room};
	struct job *job = job_number(0);
	ck_assert(queue_submit(queue, job, 100));
	ck_assert(queue_job_waits(queue, job));
	take(queue, &task, 110, TASK_PARSE);
	ck_assert(queue_job_waits(queue, job)); /* it is being read */
	ck_assert(queue_put_parsed(queue, job, 200));
	ck_assert(queue_job_waits(queue, job));
	take(queue, &task, 205, TASK_COMPUTE);
	ck_assert(!queue_job_waits(queue, job));
	queue_put_computed(queue, task.jobs, task.count, 300);
	ck_assert(!queue_job_waits(queue, job));
	take(queue, &task, 303, TASK_FORMAT);
	ck_assert_uint_eq(job->stages[STAGE_QUEUE], 10 + 5 + 3);
	queue_free(queue);
}
END_TEST

START_TEST(what_is_running_does_not_count_as_waiting)
{
	struct queue *queue = queue_new(&plain);
	struct task task = {.jobs = room};
	for (size_t i = 0; i < 4; i++)
		ck_assert(queue_submit(queue, job_number(i), 1));
	ck_assert(!queue_submit(queue, job_number(4), 1));
	take(queue, &task, 2, TASK_PARSE);
	ck_assert_uint_eq(queue_state_of(queue).busy, 1);
	ck_assert_uint_eq(queue_state_of(queue).waiting, 3);
	ck_assert(queue_submit(queue, &jobs[4], 3));
	ck_assert(queue_put_parsed(queue, &jobs[0], 4));
	ck_assert_uint_eq(queue_state_of(queue).waiting, 5);
	ck_assert(!queue_submit(queue, job_number(5), 5));
	while (queue_remove_any(queue) != NULL)
		;
	queue_stop(queue);
	take(queue, &task, 6, TASK_STOP);
	ck_assert_uint_eq(queue_state_of(queue).busy, 0);
	queue_free(queue);
}
END_TEST

START_TEST(a_job_can_be_taken_out_wherever_it_waits_and_only_there)
{
	struct queue *queue = queue_new(&plain);
	struct task task = {.jobs = room};
	ck_assert(queue_submit(queue, job_number(0), 1));
	ck_assert(queue_remove(queue, &jobs[0]));
	ck_assert(!queue_remove(queue, &jobs[0]));

	ck_assert(queue_submit(queue, &jobs[0], 1));
	take(queue, &task, 2, TASK_PARSE);
	ck_assert(!queue_remove(queue, &jobs[0]));
	ck_assert(queue_put_parsed(queue, &jobs[0], 3));
	ck_assert(queue_remove(queue, &jobs[0]));

	ck_assert(queue_put_parsed(queue, &jobs[0], 3));
	take(queue, &task, 4, TASK_COMPUTE);
	ck_assert(!queue_remove(queue, &jobs[0]));
	queue_put_computed(queue, task.jobs, task.count, 5);
	ck_assert(queue_remove(queue, &jobs[0]));
	ck_assert_uint_eq(queue_state_of(queue).waiting, 0);
	queue_free(queue);
}
END_TEST

START_TEST(what_waits_is_estimated_from_what_was_computed)
{
	struct queue *queue = queue_new(&plain);
	queue_record(queue, 2, 100, 2);
	ck_assert(queue_submit(queue, job_number(0), 1));
	job_number(1)->work = 300;
	ck_assert(queue_put_parsed(queue, &jobs[1], 1));
	ck_assert_double_eq_tol(queue_state_of(queue).seconds, 1 + 6, 1e-9);
	while (queue_remove_any(queue) != NULL)
		;
	queue_free(queue);
}
END_TEST

/* ---- with other threads */

/* A worker that parses until it gets another task, or a job of length 1, with which it stays away. */
struct taker {
	uv_thread_t thread;
	struct queue *queue;
	struct task task;
	struct job *room[JOBS];
};

static void take_until(void *arg)
{
	struct taker *taker = arg;
	struct task *task = &taker->task;
	for (;;) {
		queue_take(taker->queue, task, clock_now());
		bool parse = task->kind == TASK_PARSE && task->jobs[0]->length == 0;
		if (parse)
			queue_put_parsed(taker->queue, task->jobs[0], clock_now());
		else if (task->kind != TASK_NONE)
			return;
	}
}

static void taker_start(struct taker *taker, struct queue *queue)
{
	*taker = (struct taker){.queue = queue};
	taker->task.jobs = taker->room;
	uv_thread_create(&taker->thread, take_until, taker);
}

static void await_idle(struct queue *queue, size_t count)
{
	while (queue_state_of(queue).idle < count)
		sched_yield();
}

START_TEST(a_lone_worker_wakes_when_a_held_batch_is_due)
{
	struct queue_config config = plain;
	config.rules.batch_wait = 20 * CLOCK_NS_PER_MS;
	struct queue *queue = queue_new(&config);
	struct taker taker;
	uint64_t put = clock_now();
	ck_assert(queue_submit(queue, job_number(0), put));
	ck_assert(queue_submit(queue, job_number(1), put));
	taker_start(&taker, queue);
	uv_thread_join(&taker.thread);
	ck_assert_int_eq(taker.task.kind, TASK_COMPUTE);
	ck_assert_uint_eq(taker.task.count, 2);
	ck_assert_uint_ge(clock_now() - put, 20 * CLOCK_NS_PER_MS);
	queue_free(queue);
}
END_TEST

START_TEST(a_held_batch_goes_at_once_when_it_is_full)
{
	struct queue_config config = plain;
	config.limit = JOBS;
	config.rules.batch_wait = 3600 * CLOCK_NS_PER_S;
	struct queue *queue = queue_new(&config);
	struct taker taker;
	taker_start(&taker, queue);
	for (size_t i = 0; i < JOBS; i++)
		ck_assert(queue_submit(queue, job_number(i), clock_now()));
	uv_thread_join(&taker.thread);
	ck_assert_int_eq(taker.task.kind, TASK_COMPUTE);
	ck_assert_uint_eq(taker.task.count, JOBS);
	queue_free(queue);
}
END_TEST

START_TEST(a_held_batch_is_not_forgotten_when_its_watcher_takes_other_work)
{
	struct queue_config config = plain;
	config.rules.batch_wait = 20 * CLOCK_NS_PER_MS;
	struct queue *queue = queue_new(&config);
	struct taker takers[2];
	for (size_t i = 0; i < 2; i++)
		taker_start(&takers[i], queue);
	await_idle(queue, 2);
	ck_assert(queue_submit(queue, job_number(0), clock_now()));
	job_number(1)->length = 1;
	ck_assert(queue_submit(queue, &jobs[1], clock_now()));
	for (size_t i = 0; i < 2; i++)
		uv_thread_join(&takers[i].thread);
	ck_assert_int_eq(takers[0].task.kind + takers[1].task.kind, TASK_PARSE + TASK_COMPUTE);
	queue_free(queue);
}
END_TEST

START_TEST(what_a_worker_leaves_behind_wakes_the_next)
{
	struct queue_config config = plain;
	config.caps.jobs = config.caps.sequences = 1;
	struct queue *queue = queue_new(&config);
	struct task task = {.jobs = room};
	struct taker takers[2];
	for (size_t i = 0; i < 2; i++)
		taker_start(&takers[i], queue);
	await_idle(queue, 2);
	for (size_t i = 0; i < 3; i++)
		ck_assert(queue_put_parsed(queue, job_number(i), 1));
	take(queue, &task, 2, TASK_COMPUTE); /* this thread's; each of the others must get one too */
	for (size_t i = 0; i < 2; i++) {
		uv_thread_join(&takers[i].thread);
		ck_assert_int_eq(takers[i].task.kind, TASK_COMPUTE);
	}
	queue_free(queue);
}
END_TEST

START_TEST(stopping_wakes_every_worker)
{
	struct queue *queue = queue_new(&plain);
	struct taker takers[3];
	for (size_t i = 0; i < 3; i++)
		taker_start(&takers[i], queue);
	await_idle(queue, 3);
	queue_stop(queue);
	for (size_t i = 0; i < 3; i++) {
		uv_thread_join(&takers[i].thread);
		ck_assert_int_eq(takers[i].task.kind, TASK_STOP);
	}
	queue_free(queue);
}
END_TEST

SUITE_MAIN("queue", a_job_goes_through_its_stages_and_its_waits_add_up,
           what_is_running_does_not_count_as_waiting, a_job_can_be_taken_out_wherever_it_waits_and_only_there,
           what_waits_is_estimated_from_what_was_computed, a_lone_worker_wakes_when_a_held_batch_is_due,
           a_held_batch_goes_at_once_when_it_is_full, what_a_worker_leaves_behind_wakes_the_next,
           a_held_batch_is_not_forgotten_when_its_watcher_takes_other_work, stopping_wakes_every_worker)
