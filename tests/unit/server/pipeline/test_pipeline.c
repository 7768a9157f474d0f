/* The pipeline over a real loop and real workers, with an operation that does as the letters of a body say.
 */
#include "pipeline/pipeline.h"

#include "observe/clock.h"
#include "pipeline/operation.h"
#include "suite.h"

#include <sched.h>
#include <string.h>
#include <uv.h>

#define JOBS 600

/* ---- the operation: letters of a body
 *   first letter  the batch key
 *   'p', 'c', 'f' stop in parse, compute, format until that gate opens
 *   '!' '*'       is refused by parse, by compute
 *   't'           asks for an earlier deadline
 *   '~'           a call without end, until nobody wants it */

static struct gate {
	uv_mutex_t lock;
	uv_cond_t moved;
	bool open[128];
	size_t inside[128];
} gate;

static atomic_size_t calls, parsed, computed;
static size_t call_sizes[JOBS];

static void gate_init(void)
{
	uv_mutex_init(&gate.lock);
	uv_cond_init(&gate.moved);
}

/* Worker: stays at a gate of the job until it opens. */
static void gate_pass(const struct job *job, int letter)
{
	if (strchr(job->body, letter) == NULL)
		return;
	uv_mutex_lock(&gate.lock);
	gate.inside[letter]++;
	uv_cond_broadcast(&gate.moved);
	while (!gate.open[letter])
		uv_cond_wait(&gate.moved, &gate.lock);
	uv_mutex_unlock(&gate.lock);
}

static void gate_open(int letter)
{
	uv_mutex_lock(&gate.lock);
	gate.open[letter] = true;
	uv_cond_broadcast(&gate.moved);
	uv_mutex_unlock(&gate.lock);
}

/* Test: waits until `count` jobs have come to the gate. */
static void gate_await(int letter, size_t count)
{
	uv_mutex_lock(&gate.lock);
	while (gate.inside[letter] < count)
		uv_cond_wait(&gate.moved, &gate.lock);
	uv_mutex_unlock(&gate.lock);
}

static void letters_parse(struct job *job, attn_executor *executor, const struct attention_limits *limits,
                          size_t max_sequences)
{
	(void)executor;
	(void)limits;
	(void)max_sequences;
	parsed++;
	gate_pass(job, 'p');
	job->key.words[0] = (uint64_t)job->body[0];
	job->sequences = 1;
	job->tokens = job->scores = 1;
	job->work = 1;
	if (strchr(job->body, 't') != NULL)
		job->deadline = 7;
	if (strchr(job->body, '!') != NULL)
		problem_set(&job->problem, PROBLEM_BAD_VALUE, "/letters", "refused");
}

static attn_status endless_tile(void *arg, size_t tile, attn_arena *scratch)
{
	(void)arg;
	(void)scratch;
	if (tile > 0)
		return ATTN_OK;
	uv_mutex_lock(&gate.lock);
	gate.inside['~']++;
	uv_cond_broadcast(&gate.moved);
	uv_mutex_unlock(&gate.lock);
	return ATTN_OK;
}

static void letters_compute(struct job **batch, size_t count, const attn_kernels *kernels,
                            attn_executor *executor, size_t max_sequences, size_t max_scores)
{
	(void)kernels;
	(void)max_sequences;
	(void)max_scores;
	call_sizes[calls++ % JOBS] = count;
	for (size_t i = 0; i < count; i++) {
		computed++;
		gate_pass(batch[i], 'c');
		batch[i]->batch_sequences = count;
		if (strchr(batch[i]->body, '*') != NULL)
			problem_set_status(&batch[i]->problem, ATTN_MEMORY);
		if (strchr(batch[i]->body, '~') != NULL &&
		    executor->parallel_for(executor, SIZE_MAX / 2, endless_tile, NULL) != ATTN_OK)
			problem_set_status(&batch[i]->problem, ATTN_CANCELLED);
	}
}

static void letters_format(struct job *job, attn_executor *executor)
{
	(void)executor;
	gate_pass(job, 'f');
	job->reply = strdup(job->body);
	job->reply_length = strlen(job->reply);
}

static const struct operation letters = {.metric = METRICS_ATTENTION,
                                         .parse = letters_parse,
                                         .compute = letters_compute,
                                         .format = letters_format};

/* ---- a loop with a pipeline */

struct house {
	uv_loop_t loop;
	struct budget budget;
	struct pipeline *pipeline;
	struct job *jobs[JOBS]; /* NULL once returned */
	size_t submitted, returned;
	size_t times_returned[JOBS], deadlines[JOBS];
	enum problem_code problems[JOBS];
	char *replies[JOBS];
	bool cancelled[JOBS];
	bool closed;
};

static size_t *job_number(struct job *job)
{
	return job->exchange;
}

static void house_returned(void *context, struct job *job)
{
	struct house *house = context;
	size_t number = *job_number(job);
	house->returned++;
	house->times_returned[number]++;
	house->problems[number] = job->problem.code;
	house->cancelled[number] = job->cancelled;
	house->replies[number] = job->reply;
	job->reply = NULL;
	house->jobs[number] = NULL;
	job_free(job);
}

static void house_deadline(void *context, struct job *job)
{
	struct house *house = context;
	size_t number = *job_number(job);
	ck_assert_uint_eq(house->times_returned[number], 0);
	ck_assert_uint_eq(job->deadline, 7);
	house->deadlines[number]++;
}

static void house_open(struct house *house, size_t workers, size_t queue_limit)
{
	gate_init();
	memset(house, 0, sizeof(*house));
	budget_init(&house->budget, SIZE_MAX);
	uv_loop_init(&house->loop);
	struct pipeline_config config = {
	    .workers = workers,
	    .queue_limit = queue_limit,
	    .max_batch = 32,
	    .max_batch_tokens = SIZE_MAX,
	    .max_batch_scores = SIZE_MAX,
	    .batch_max_age_ns = 60 * CLOCK_NS_PER_S, /* a slow machine changes no batch here */
	    .budget = &house->budget,
	};
	struct pipeline_events events = {
	    .context = house, .returned = house_returned, .deadline = house_deadline};
	attn_error err;
	house->pipeline = pipeline_new(&house->loop, &config, &events, &err);
	ck_assert_ptr_nonnull(house->pipeline);
	ck_assert_int_eq(err.status, ATTN_OK);
}

/* The number of the job, or JOBS when it is not let in. */
static size_t house_submit(struct house *house, const char *body)
{
	static size_t numbers[JOBS];
	struct job *job = job_new(&letters, &house->budget);
	size_t number = house->submitted;
	numbers[number] = number;
	job->exchange = &numbers[number];
	job->body = strdup(body);
	job->body_length = strlen(body);
	job->deadline = 100;
	ck_assert_int_eq(job_charge(job, job->body_length), BUDGET_OK);
	if (!pipeline_submit(house->pipeline, job)) {
		job_free(job);
		return JOBS;
	}
	house->jobs[number] = job;
	house->submitted++;
	return number;
}

static void house_await(struct house *house, size_t returned)
{
	while (house->returned < returned)
		uv_run(&house->loop, UV_RUN_ONCE);
}

static void house_closed(void *context)
{
	((struct house *)context)->closed = true;
}

static void house_stop(struct house *house)
{
	pipeline_stop(house->pipeline, house_closed, house);
	ck_assert(!house->closed);
	uv_run(&house->loop, UV_RUN_DEFAULT);
	ck_assert(house->closed);
	ck_assert_int_eq(uv_loop_close(&house->loop), 0);
	ck_assert_uint_eq(house->returned, house->submitted);
	for (size_t i = 0; i < house->submitted; i++) {
		ck_assert_uint_eq(house->times_returned[i], 1);
		free(house->replies[i]);
	}
	ck_assert_uint_eq(budget_used(&house->budget), 0);
}

static struct house house;

START_TEST(every_job_comes_back_once_with_its_own_reply)
{
	house_open(&house, 3, JOBS);
	char body[16];
	for (size_t i = 0; i < JOBS; i++) {
		snprintf(body, sizeof(body), "%c%zu", 'A' + (int)(i % 5), i);
		ck_assert_uint_eq(house_submit(&house, body), i);
	}
	house_await(&house, JOBS);
	for (size_t i = 0; i < JOBS; i++) {
		snprintf(body, sizeof(body), "%c%zu", 'A' + (int)(i % 5), i);
		ck_assert_str_eq(house.replies[i], body);
		ck_assert_int_eq(house.problems[i], PROBLEM_NONE);
	}
	house_stop(&house);
}
END_TEST

START_TEST(sixty_four_jobs_alternating_while_the_worker_is_busy_make_two_calls)
{
	house_open(&house, 1, JOBS);
	house_submit(&house, "Xp");
	gate_await('p', 1);
	for (size_t i = 0; i < 64; i++)
		house_submit(&house, i % 2 == 0 ? "A" : "B");
	gate_open('p');
	house_await(&house, 65);
	ck_assert_uint_eq(calls, 3);
	size_t of_32 = 0;
	for (size_t i = 0; i < 3; i++)
		of_32 += call_sizes[i] == 32;
	ck_assert_uint_eq(of_32, 2);
	house_stop(&house);
}
END_TEST

START_TEST(a_job_cut_while_it_waits_comes_back_while_the_workers_are_busy)
{
	house_open(&house, 1, JOBS);
	house_submit(&house, "Ap");
	gate_await('p', 1);
	size_t waits = house_submit(&house, "A");
	ck_assert(pipeline_job_waits(house.pipeline, house.jobs[waits]));
	pipeline_cut(house.pipeline, house.jobs[waits]);
	ck_assert_uint_eq(house.returned, 0); /* not inside the call */
	ck_assert_uint_eq(pipeline_state_of(house.pipeline).waiting, 0);
	pipeline_cut(house.pipeline, house.jobs[waits]); /* again, before it came */
	house_await(&house, 1);
	ck_assert_uint_eq(house.times_returned[waits], 1);
	ck_assert(house.cancelled[waits]);
	gate_open('p');
	house_await(&house, 2);
	ck_assert_uint_eq(parsed, 1);
	house_stop(&house);
}
END_TEST

START_TEST(a_job_cut_while_it_is_parsed_is_not_computed)
{
	house_open(&house, 1, JOBS);
	house_submit(&house, "Apt");
	gate_await('p', 1);
	ck_assert(pipeline_job_waits(house.pipeline, house.jobs[0]));
	pipeline_cut(house.pipeline, house.jobs[0]);
	gate_open('p');
	house_await(&house, 1);
	ck_assert_uint_eq(computed, 0);
	ck_assert_uint_eq(house.deadlines[0], 0); /* nobody waits for it any more */
	house_stop(&house);
}
END_TEST

START_TEST(a_cancelled_job_does_not_harm_its_batch_mates)
{
	house_open(&house, 1, JOBS);
	house_submit(&house, "Xp");
	gate_await('p', 1);
	for (size_t i = 0; i < 4; i++)
		house_submit(&house, "Ac");
	gate_open('p');
	gate_await('c', 1);
	ck_assert(!pipeline_job_waits(house.pipeline, house.jobs[1]));
	pipeline_cut(house.pipeline, house.jobs[1]);
	pipeline_cut(house.pipeline, house.jobs[3]);
	gate_open('c');
	house_await(&house, 5);
	for (size_t i = 1; i < 5; i++) {
		bool cut = i == 1 || i == 3;
		ck_assert(house.cancelled[i] == cut);
		ck_assert((house.replies[i] == NULL) == cut);
	}
	house_stop(&house);
}
END_TEST

START_TEST(a_job_cut_before_its_batch_starts_is_left_out_of_it)
{
	house_open(&house, 1, JOBS);
	house_submit(&house, "Xc");
	gate_await('c', 1);
	for (size_t i = 0; i < 3; i++)
		house_submit(&house, "A");
	pipeline_cut(house.pipeline, house.jobs[2]);
	gate_open('c');
	house_await(&house, 4);
	ck_assert_uint_eq(computed, 3);
	ck_assert_uint_eq(call_sizes[1], 2);
	house_stop(&house);
}
END_TEST

START_TEST(a_job_that_fails_leaves_its_mates_their_replies)
{
	house_open(&house, 1, JOBS);
	house_submit(&house, "Xp");
	gate_await('p', 1);
	size_t refused = house_submit(&house, "A!"), failed = house_submit(&house, "A*");
	size_t fine = house_submit(&house, "A");
	gate_open('p');
	house_await(&house, 4);
	ck_assert_int_eq(house.problems[refused], PROBLEM_BAD_VALUE);
	ck_assert_int_eq(house.problems[failed], PROBLEM_MEMORY);
	ck_assert_int_eq(house.problems[fine], PROBLEM_NONE);
	ck_assert_str_eq(house.replies[fine], "A");
	ck_assert_uint_eq(computed, 3); /* the refused one was not */
	house_stop(&house);
}
END_TEST

START_TEST(a_job_cut_after_it_was_computed_comes_back_once)
{
	house_open(&house, 1, JOBS);
	house_submit(&house, "Xp");
	gate_await('p', 1);
	house_submit(&house, "Af");
	house_submit(&house, "Af");
	gate_open('p');
	gate_await('f', 1);
	ck_assert(!pipeline_job_waits(house.pipeline, house.jobs[2]));
	pipeline_cut(house.pipeline, house.jobs[2]); /* waits to be formatted */
	house_await(&house, 2);
	ck_assert_uint_eq(house.times_returned[2], 1);
	pipeline_cut(house.pipeline, house.jobs[1]); /* is being formatted */
	gate_open('f');
	house_await(&house, 3);
	house_stop(&house);
}
END_TEST

START_TEST(jobs_over_the_queue_limit_are_not_let_in)
{
	house_open(&house, 1, 2);
	house_submit(&house, "Ap");
	gate_await('p', 1);
	ck_assert_uint_ne(house_submit(&house, "A"), JOBS); /* the one that runs does not count */
	ck_assert_uint_ne(house_submit(&house, "A"), JOBS);
	ck_assert_uint_eq(house_submit(&house, "A"), JOBS);
	struct pipeline_state state = pipeline_state_of(house.pipeline);
	ck_assert_uint_eq(state.waiting, 2);
	ck_assert_uint_eq(state.submitted, 3);
	ck_assert_uint_eq(state.workers_busy, 1);
	ck_assert_uint_eq(state.workers, 1);
	gate_open('p');
	house_await(&house, 3);
	ck_assert_uint_ne(house_submit(&house, "A"), JOBS);
	house_await(&house, 4);
	ck_assert_uint_eq(pipeline_state_of(house.pipeline).submitted, 0);
	house_stop(&house);
}
END_TEST

START_TEST(an_earlier_deadline_of_a_body_is_told_once_before_the_job_returns)
{
	house_open(&house, 2, JOBS);
	for (size_t i = 0; i < 50; i++)
		house_submit(&house, i % 2 == 0 ? "At" : "A");
	house_await(&house, 50);
	for (size_t i = 0; i < 50; i++)
		ck_assert_uint_eq(house.deadlines[i], i % 2 == 0);
	house_stop(&house);
}
END_TEST

START_TEST(a_deadline_is_told_while_the_job_still_runs)
{
	house_open(&house, 1, JOBS);
	house_submit(&house, "Atc");
	while (house.deadlines[0] == 0)
		uv_run(&house.loop, UV_RUN_ONCE);
	gate_await('c', 1);
	ck_assert_uint_eq(house.returned, 0);
	gate_open('c');
	house_await(&house, 1);
	house_stop(&house);
}
END_TEST

START_TEST(a_long_call_ends_early_when_its_job_is_cut)
{
	house_open(&house, 2, JOBS);
	house_submit(&house, "A~");
	gate_await('~', 1);
	pipeline_cut(house.pipeline, house.jobs[0]);
	house_await(&house, 1);
	house_stop(&house);
}
END_TEST

START_TEST(stopping_returns_every_job_wherever_it_is)
{
	house_open(&house, 2, JOBS);
	house_submit(&house, "A~");
	house_submit(&house, "B~");
	gate_await('~', 2);
	for (size_t i = 0; i < 20; i++)
		house_submit(&house, "C");
	pipeline_cut(house.pipeline, house.jobs[5]); /* its mail has not been read when the stop comes */
	house_stop(&house);
	for (size_t i = 0; i < 22; i++)
		ck_assert(house.cancelled[i]);
}
END_TEST

START_TEST(nothing_is_let_in_after_a_stop)
{
	house_open(&house, 1, JOBS);
	pipeline_stop(house.pipeline, house_closed, &house);
	ck_assert_uint_eq(house_submit(&house, "A"), JOBS);
	uv_run(&house.loop, UV_RUN_DEFAULT);
	ck_assert(house.closed);
	ck_assert_int_eq(uv_loop_close(&house.loop), 0);
}
END_TEST

START_TEST(cuts_at_any_moment_lose_no_job_and_return_none_twice)
{
	static const char *const bodies[] = {"A", "B", "At", "B*", "A!", "Ct"};
	unsigned seed = 1;
	house_open(&house, 3, JOBS);
	gate_open('p');
	for (size_t i = 0; i < JOBS; i++) {
		house_submit(&house, bodies[(size_t)rand_r(&seed) % 6]);
		size_t cut = (size_t)rand_r(&seed) % JOBS;
		if (house.jobs[cut] != NULL)
			pipeline_cut(house.pipeline, house.jobs[cut]);
		if (rand_r(&seed) % 4 == 0)
			uv_run(&house.loop, UV_RUN_NOWAIT);
	}
	house_await(&house, JOBS);
	house_stop(&house);
}
END_TEST

static uint64_t beats(void)
{
	uint64_t now;
	pipeline_beats(house.pipeline, &now);
	return now;
}

START_TEST(a_worker_that_stays_in_one_task_beats_no_more_until_it_goes_on)
{
	house_open(&house, 1, JOBS);
	ck_assert_uint_eq(pipeline_workers(house.pipeline), 1);
	house_submit(&house, "Ac");
	gate_await('c', 1);
	uint64_t stuck = beats();
	ck_assert_uint_eq(stuck % 2, 1); /* it has a task */
	house_submit(&house, "B");
	ck_assert_uint_eq(beats(), stuck);
	gate_open('c');
	house_await(&house, 2);
	while (beats() % 2 != 0) /* the last task ends just after its job has come back */
		sched_yield();
	ck_assert_uint_gt(beats(), stuck);
	house_stop(&house);
}
END_TEST

START_TEST(a_long_call_beats_with_its_tiles)
{
	house_open(&house, 1, JOBS);
	house_submit(&house, "A~");
	gate_await('~', 1);
	uint64_t before = beats();
	while (beats() < before + 10)
		sched_yield();
	ck_assert_uint_eq(beats() % 2, 1);
	pipeline_cut(house.pipeline, house.jobs[0]);
	house_await(&house, 1);
	house_stop(&house);
}
END_TEST

SUITE_MAIN("pipeline", a_job_cut_after_it_was_computed_comes_back_once,
           every_job_comes_back_once_with_its_own_reply,
           sixty_four_jobs_alternating_while_the_worker_is_busy_make_two_calls,
           a_job_cut_while_it_waits_comes_back_while_the_workers_are_busy,
           a_job_cut_while_it_is_parsed_is_not_computed, a_cancelled_job_does_not_harm_its_batch_mates,
           a_job_cut_before_its_batch_starts_is_left_out_of_it,
           a_job_that_fails_leaves_its_mates_their_replies, jobs_over_the_queue_limit_are_not_let_in,
           an_earlier_deadline_of_a_body_is_told_once_before_the_job_returns,
           a_deadline_is_told_while_the_job_still_runs, a_long_call_ends_early_when_its_job_is_cut,
           stopping_returns_every_job_wherever_it_is, nothing_is_let_in_after_a_stop,
           a_worker_that_stays_in_one_task_beats_no_more_until_it_goes_on, a_long_call_beats_with_its_tiles,
           cuts_at_any_moment_lose_no_job_and_return_none_twice)
