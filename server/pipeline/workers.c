#include "pipeline/workers.h"

#include "observe/clock.h"
#include "observe/metrics.h"
#include "pipeline/executor.h"
#include "pipeline/heartbeat.h"
#include "pipeline/job_coding.h"
#include "pipeline/operation.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#define WORKER_STACK ((size_t)4 << 20)
/* Scratch that a worker keeps between calls; what a large call took beyond goes back to the system. */
#define WORKER_SCRATCH_KEEP ((size_t)16 << 20)

struct worker {
	uv_thread_t thread;
	const struct workers_config *config;
	struct heartbeat heartbeat;
	attn_arena *scratch;
	struct executor *executor;
	struct job **jobs; /* room for max_jobs, for its task */
};

struct workers {
	struct workers_config config;
	size_t started;
	struct worker list[]; /* config.count */
};

/* The job goes back to the loop: the worker must not touch it any more. */
static void worker_return(struct worker *worker, struct job *job)
{
	job_drop_work(job);
	mailbox_post(worker->config->mailbox, &job->mail_returned);
}

/* The task's one job, worker->jobs[0]. */
static void worker_parse(struct worker *worker)
{
	struct job *job = worker->jobs[0];
	const struct workers_config *config = worker->config;
	if (!job_over(job)) {
		uint64_t begun = clock_now();
		uint64_t deadline = job->deadline;
		job_decode(job, config->max_body);
		if (!job_over(job))
			job->operation->parse(job, executor_for(worker->executor, worker->jobs, 1),
			                      &config->limits, config->max_sequences);
		job->stages[STAGE_PARSE] = clock_now() - begun;
		if (job->deadline < deadline)
			mailbox_post(config->mailbox, &job->mail_deadline);
	}
	if (!job_over(job)) {
		if (queue_put_parsed(config->queue, job, clock_now()))
			return;
		problem_set_status(&job->problem, ATTN_MEMORY);
	}
	worker_return(worker, job);
}

/* Returns the jobs that are over and closes the ranks of the others; how many are left. */
static size_t worker_sift(struct worker *worker, struct job **jobs, size_t count)
{
	size_t left = 0;
	for (size_t i = 0; i < count; i++) {
		if (job_over(jobs[i]))
			worker_return(worker, jobs[i]);
		else
			jobs[left++] = jobs[i];
	}
	return left;
}

static void worker_compute(struct worker *worker, struct job **jobs, size_t count)
{
	const struct workers_config *config = worker->config;
	count = worker_sift(worker, jobs, count);
	if (count == 0)
		return;

	attn_executor *executor = executor_for(worker->executor, jobs, count);
	attn_arena_mark mark = attn_arena_here(worker->scratch);
	uint64_t begun = clock_now();
	jobs[0]->operation->compute(jobs, count, config->kernels, executor, config->max_sequences,
	                            config->max_scores);
	uint64_t ended = clock_now();
	attn_arena_rewind(worker->scratch, mark);

	double work = 0;
	for (size_t i = 0; i < count; i++) {
		jobs[i]->stages[STAGE_COMPUTE] = ended - begun;
		work += jobs[i]->work;
	}
	size_t computed = count;
	count = worker_sift(worker, jobs, count);
	if (count == computed) /* a call cut short would teach the estimates a wrong speed */
		queue_record(config->queue, (double)(ended - begun) / (double)CLOCK_NS_PER_S, work, count);
	queue_put_computed(config->queue, jobs, count, ended);
}

static void worker_format(struct worker *worker)
{
	struct job *job = worker->jobs[0];
	if (!job_over(job)) {
		uint64_t begun = clock_now();
		job->operation->format(job, executor_for(worker->executor, worker->jobs, 1));
		if (!job_over(job))
			job_encode(job);
		job->stages[STAGE_FORMAT] = clock_now() - begun;
	}
	worker_return(worker, job);
}

static void worker_run(struct worker *worker, struct task *task)
{
	switch (task->kind) {
	case TASK_PARSE:
		worker_parse(worker);
		break;
	case TASK_COMPUTE:
		worker_compute(worker, task->jobs, task->count);
		break;
	case TASK_FORMAT:
		worker_format(worker);
		break;
	case TASK_TILE:
		tile_set_run(task->tiles, task->tile, worker->scratch);
		break;
	case TASK_NONE:
	case TASK_STOP:
		break;
	}
}

static void worker_main(void *arg)
{
	struct worker *worker = arg;
	struct task task = {.kind = TASK_NONE, .jobs = worker->jobs};

	metrics_thread_start(); /* without a shard this worker only goes uncounted */
	while (task.kind != TASK_STOP) {
		queue_take(worker->config->queue, &task, clock_now());
		heartbeat_task(&worker->heartbeat);
		worker_run(worker, &task);
		heartbeat_task(&worker->heartbeat);
	}
	metrics_thread_stop();
}

static void worker_clear(struct worker *worker)
{
	free(worker->jobs);
	executor_free(worker->executor);
	attn_arena_free(worker->scratch);
}

static bool worker_start(struct worker *worker, const struct workers_config *config, attn_error *err)
{
	uv_thread_options_t options = {.flags = UV_THREAD_HAS_STACK_SIZE, .stack_size = WORKER_STACK};
	*worker = (struct worker){.config = config};
	worker->scratch = attn_arena_new(WORKER_SCRATCH_KEEP);
	worker->jobs = calloc(config->max_jobs, sizeof(struct job *));
	if (worker->scratch != NULL)
		worker->executor = executor_new(config->queue, worker->scratch, &worker->heartbeat);
	if (worker->executor == NULL || worker->jobs == NULL) {
		err->status = ATTN_MEMORY;
		snprintf(err->message, sizeof(err->message), "no memory for a worker");
		goto failed;
	}
	sigset_t all, before; /* signals are the loop thread's */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = uv_thread_create_ex(&worker->thread, &options, worker_main, worker);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error != 0) {
		err->status = ATTN_MEMORY;
		snprintf(err->message, sizeof(err->message), "cannot start a worker thread: %s",
		         uv_strerror(error));
		goto failed;
	}
	return true;
failed:
	worker_clear(worker);
	return false;
}

struct workers *workers_new(const struct workers_config *config, attn_error *err)
{
	struct workers *workers = malloc(sizeof(*workers) + config->count * sizeof(struct worker));
	if (workers == NULL) {
		err->status = ATTN_MEMORY;
		snprintf(err->message, sizeof(err->message), "no memory for %zu workers", config->count);
		return NULL;
	}
	workers->config = *config;
	workers->started = 0;
	while (workers->started < config->count) {
		if (!worker_start(&workers->list[workers->started], &workers->config, err)) {
			workers_stop(workers);
			return NULL;
		}
		workers->started++;
	}
	return workers;
}

void workers_beats(const struct workers *workers, uint64_t *beats)
{
	for (size_t i = 0; i < workers->config.count; i++)
		beats[i] = heartbeat_read(&workers->list[i].heartbeat);
}

void workers_stop(struct workers *workers)
{
	queue_stop(workers->config.queue);
	for (size_t i = 0; i < workers->started; i++)
		uv_thread_join(&workers->list[i].thread);
	for (size_t i = 0; i < workers->started; i++)
		worker_clear(&workers->list[i]);
	free(workers);
}
