#include "pipeline/queue.h"

#include "pipeline/estimate.h"

#include <assert.h>
#include <stdlib.h>
#include <uv.h>

/* The lock rule: `lock` guards every field below it, the links, place and stage_begun of every job, and the
 * links and helpers of every tile set. No other lock is taken and no operation runs while it is held.
 *
 * Waking: a worker waits on `work` only when choose_task finds nothing, under the same hold of the lock. What
 * the loop submits and what calls offer wakes an idle worker. What a worker puts it comes back to choose from
 * itself, so that wakes nobody; a worker that leaves with a task wakes the next for what remains. So whatever
 * can be done has a worker awake for it, and a lone request is not passed from thread to thread. */
struct queue {
	struct queue_config config; /* never written after queue_new */
	atomic_bool stopping;

	uv_mutex_t lock;
	uv_cond_t work;
	struct job_list parse, format;
	struct batcher *batcher;
	struct tile_set *tiles; /* first of those on offer */
	size_t idle, busy;      /* workers waiting on `work`; with a task */
	struct estimate estimate;
};

struct queue *queue_new(const struct queue_config *config)
{
	struct queue *queue = calloc(1, sizeof(*queue));
	if (queue == NULL)
		return NULL;
	queue->config = *config;
	atomic_init(&queue->stopping, false);
	queue->batcher = batcher_new(&config->caps);
	if (queue->batcher == NULL)
		goto no_batcher;
	if (uv_mutex_init(&queue->lock) != 0)
		goto no_mutex;
	if (uv_cond_init(&queue->work) != 0)
		goto no_cond;
	return queue;
no_cond:
	uv_mutex_destroy(&queue->lock);
no_mutex:
	batcher_free(queue->batcher);
no_batcher:
	free(queue);
	return NULL;
}

void queue_free(struct queue *queue)
{
	assert(queue->parse.count == 0 && queue->format.count == 0 && queue->tiles == NULL);
	uv_cond_destroy(&queue->work);
	uv_mutex_destroy(&queue->lock);
	batcher_free(queue->batcher);
	free(queue);
}

/* ---- jobs in */

static void queue_enter(struct job *job, enum job_place place, uint64_t now)
{
	job->place = place;
	job->stage_begun = now;
}

static size_t queue_waiting(const struct queue *queue)
{
	return queue->parse.count + batcher_view_of(queue->batcher).jobs;
}

bool queue_submit(struct queue *queue, struct job *job, uint64_t now)
{
	uv_mutex_lock(&queue->lock);
	bool room = queue_waiting(queue) < queue->config.limit;
	if (room) {
		queue_enter(job, JOB_WAITS_PARSE, now);
		job_list_append(&queue->parse, job);
		uv_cond_signal(&queue->work);
	}
	uv_mutex_unlock(&queue->lock);
	return room;
}

bool queue_put_parsed(struct queue *queue, struct job *job, uint64_t now)
{
	uv_mutex_lock(&queue->lock);
	queue_enter(job, JOB_WAITS_BATCH, now);
	bool added = batcher_add(queue->batcher, job);
	if (!added)
		job->place = JOB_PARSING;
	uv_mutex_unlock(&queue->lock);
	return added;
}

void queue_put_computed(struct queue *queue, struct job **jobs, size_t count, uint64_t now)
{
	uv_mutex_lock(&queue->lock);
	for (size_t i = 0; i < count; i++) {
		queue_enter(jobs[i], JOB_WAITS_FORMAT, now);
		job_list_append(&queue->format, jobs[i]);
	}
	uv_mutex_unlock(&queue->lock);
}

void queue_record(struct queue *queue, double seconds, double work, size_t jobs)
{
	uv_mutex_lock(&queue->lock);
	estimate_record(&queue->estimate, seconds, work, jobs);
	uv_mutex_unlock(&queue->lock);
}

/* ---- jobs out, by the loop */

bool queue_remove(struct queue *queue, struct job *job)
{
	bool waited = true;
	uv_mutex_lock(&queue->lock);
	switch (job->place) {
	case JOB_WAITS_PARSE:
		job_list_remove(&queue->parse, job);
		break;
	case JOB_WAITS_BATCH:
		batcher_remove(queue->batcher, job);
		break;
	case JOB_WAITS_FORMAT:
		job_list_remove(&queue->format, job);
		break;
	case JOB_OUTSIDE:
	case JOB_PARSING:
	case JOB_COMPUTING:
	case JOB_FORMATTING:
		waited = false;
		break;
	}
	if (waited)
		job->place = JOB_OUTSIDE;
	uv_mutex_unlock(&queue->lock);
	return waited;
}

struct job *queue_remove_any(struct queue *queue)
{
	uv_mutex_lock(&queue->lock);
	struct job *job = job_list_take_first(&queue->parse);
	if (job == NULL)
		job = batcher_take_job(queue->batcher);
	if (job == NULL)
		job = job_list_take_first(&queue->format);
	if (job != NULL)
		job->place = JOB_OUTSIDE;
	uv_mutex_unlock(&queue->lock);
	return job;
}

bool queue_job_waits(struct queue *queue, const struct job *job)
{
	uv_mutex_lock(&queue->lock);
	bool waits =
	    job->place == JOB_WAITS_PARSE || job->place == JOB_PARSING || job->place == JOB_WAITS_BATCH;
	uv_mutex_unlock(&queue->lock);
	return waits;
}

/* ---- tasks: these are called with the lock held */

static struct tile_set *queue_helpable(const struct queue *queue)
{
	struct tile_set *set = queue->tiles;
	while (set != NULL && !tile_set_open(set))
		set = set->link_next;
	return set;
}

static struct choose_view queue_view(const struct queue *queue)
{
	struct batcher_view batches = batcher_view_of(queue->batcher);
	struct choose_view view = {
	    .format = queue->format.count > 0,
	    .parse = queue->parse.count > 0,
	    .batch = batches.jobs > 0,
	    .full = batches.full,
	    .tile = queue_helpable(queue) != NULL,
	    .batch_since = batches.oldest_since,
	    .full_since = batches.full_since,
	};
	if (view.parse)
		view.parse_since = queue->parse.first->stage_begun;
	return view;
}

static void queue_give_jobs(struct task *task, enum task_kind kind, size_t count, enum job_place place,
                            uint64_t now)
{
	task->kind = kind;
	task->count = count;
	for (size_t i = 0; i < count; i++) {
		struct job *job = task->jobs[i];
		if (now > job->stage_begun)
			job->stages[STAGE_QUEUE] += now - job->stage_begun;
		job->place = place;
	}
}

static void queue_give_one(struct job_list *list, struct task *task, enum task_kind kind,
                           enum job_place place, uint64_t now)
{
	task->jobs[0] = job_list_take_first(list);
	queue_give_jobs(task, kind, 1, place, now);
}

static void queue_give_batch(struct queue *queue, struct task *task, bool full, uint64_t now)
{
	size_t count = batcher_take(queue->batcher, full, task->jobs);
	queue_give_jobs(task, TASK_COMPUTE, count, JOB_COMPUTING, now);
}

static void queue_give_tile(struct queue *queue, struct task *task)
{
	struct tile_set *set = queue_helpable(queue);
	if (set == NULL || !tile_set_claim(set, &task->tile))
		return; /* the owner was quicker: ask again */
	task->kind = TASK_TILE;
	task->tiles = set;
	set->helpers++;
}

static void queue_wait(struct queue *queue, uint64_t now, uint64_t again)
{
	queue->idle++;
	if (again == CHOOSE_NEVER)
		uv_cond_wait(&queue->work, &queue->lock);
	else
		uv_cond_timedwait(&queue->work, &queue->lock, again > now ? again - now : 0);
	queue->idle--;
}

static void queue_take_back(struct queue *queue, struct task *task)
{
	if (task->kind == TASK_NONE)
		return;
	queue->busy--;
	if (task->kind == TASK_TILE && --task->tiles->helpers == 0)
		uv_cond_signal(task->tiles->left);
	task->kind = TASK_NONE;
	task->count = 0;
}

static void queue_give(struct queue *queue, struct task *task, uint64_t now)
{
	uint64_t again;
	struct choose_view view = queue_view(queue);
	switch (choose_task(&view, &queue->config.rules, now, &again)) {
	case CHOOSE_FORMAT:
		queue_give_one(&queue->format, task, TASK_FORMAT, JOB_FORMATTING, now);
		break;
	case CHOOSE_BATCH:
		queue_give_batch(queue, task, false, now);
		break;
	case CHOOSE_FULL_BATCH:
		queue_give_batch(queue, task, true, now);
		break;
	case CHOOSE_PARSE:
		queue_give_one(&queue->parse, task, TASK_PARSE, JOB_PARSING, now);
		break;
	case CHOOSE_TILE:
		queue_give_tile(queue, task);
		break;
	case CHOOSE_NOTHING:
		queue_wait(queue, now, again);
		break;
	}
}

/* A worker leaves with a task: wakes another for what remains, and to watch over a held batch. */
static void queue_pass_on(struct queue *queue, uint64_t now)
{
	if (queue->idle == 0)
		return;
	uint64_t again;
	struct choose_view view = queue_view(queue);
	enum choice next = choose_task(&view, &queue->config.rules, now, &again);
	if (next != CHOOSE_NOTHING || again != CHOOSE_NEVER)
		uv_cond_signal(&queue->work);
}

/* ---- workers */

void queue_take(struct queue *queue, struct task *task, uint64_t now)
{
	uv_mutex_lock(&queue->lock);
	queue_take_back(queue, task);
	if (atomic_load_explicit(&queue->stopping, memory_order_relaxed))
		task->kind = TASK_STOP;
	else
		queue_give(queue, task, now);
	if (task->kind != TASK_NONE && task->kind != TASK_STOP) {
		queue->busy++;
		queue_pass_on(queue, now);
	}
	uv_mutex_unlock(&queue->lock);
}

void queue_stop(struct queue *queue)
{
	uv_mutex_lock(&queue->lock);
	atomic_store_explicit(&queue->stopping, true, memory_order_relaxed);
	uv_cond_broadcast(&queue->work);
	uv_mutex_unlock(&queue->lock);
}

const atomic_bool *queue_stopping(const struct queue *queue)
{
	return &queue->stopping;
}

/* ---- tile sets */

void queue_tiles_offer(struct queue *queue, struct tile_set *set)
{
	uv_mutex_lock(&queue->lock);
	set->helpers = 0;
	set->link_previous = NULL;
	set->link_next = queue->tiles;
	if (queue->tiles != NULL)
		queue->tiles->link_previous = set;
	queue->tiles = set;
	size_t helpful = set->tiles - 1 < queue->idle ? set->tiles - 1 : queue->idle;
	for (size_t i = 0; i < helpful; i++)
		uv_cond_signal(&queue->work);
	uv_mutex_unlock(&queue->lock);
}

void queue_tiles_withdraw(struct queue *queue, struct tile_set *set)
{
	uv_mutex_lock(&queue->lock);
	if (set->link_previous != NULL)
		set->link_previous->link_next = set->link_next;
	else
		queue->tiles = set->link_next;
	if (set->link_next != NULL)
		set->link_next->link_previous = set->link_previous;
	while (set->helpers > 0)
		uv_cond_wait(set->left, &queue->lock);
	uv_mutex_unlock(&queue->lock);
}

struct queue_state queue_state_of(struct queue *queue)
{
	uv_mutex_lock(&queue->lock);
	struct batcher_view batches = batcher_view_of(queue->batcher);
	struct queue_state state = {
	    .unparsed = queue->parse.count,
	    .waiting = queue->parse.count + batches.jobs,
	    .busy = queue->busy,
	    .idle = queue->idle,
	    .seconds = estimate_seconds(&queue->estimate, batches.work, queue->parse.count),
	};
	uv_mutex_unlock(&queue->lock);
	return state;
}
