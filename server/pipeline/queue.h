/*
 * queue.h - everything that waits for a worker, under one lock: jobs to parse, jobs to compute in groups
 * (batcher.h), jobs to format, and the tiles of running calls that idle workers may help with (tile_set.h).
 *
 * The loop submits and removes; workers take and put. A job in the queue belongs to it; one that was taken
 * belongs to the worker until it is put back. job->place, stage_begun and the links are written under the
 * lock only. Times are given: nanoseconds of one monotonic clock.
 */
#ifndef ATTND_PIPELINE_QUEUE_H
#define ATTND_PIPELINE_QUEUE_H

#include "pipeline/batcher.h"
#include "pipeline/choose.h"
#include "pipeline/job.h"
#include "pipeline/tile_set.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct queue_config {
	size_t limit; /* of waiting jobs, for queue_submit */
	struct batch_caps caps;
	struct choose_rules rules;
};

enum task_kind { TASK_NONE, TASK_PARSE, TASK_COMPUTE, TASK_FORMAT, TASK_TILE, TASK_STOP };

/* What a worker is to do. One object a worker; {.jobs = room for caps.jobs} at first. */
struct task {
	enum task_kind kind;
	struct job **jobs; /* count of them: one to parse or format, a batch to compute */
	size_t count;
	struct tile_set *tiles; /* and the tile claimed */
	size_t tile;
};

struct queue;

struct queue *queue_new(const struct queue_config *config); /* NULL: no memory */
void queue_free(struct queue *queue);                       /* when empty and no worker uses it */

/* A new job to be parsed; false when the limit is reached. */
bool queue_submit(struct queue *queue, struct job *job, uint64_t now);
/* A parsed job, to be computed; false when the system refuses memory. The worker that puts asks queue_take
 * for its next task right after: nobody else is woken. */
bool queue_put_parsed(struct queue *queue, struct job *job, uint64_t now);
/* Computed jobs, to be formatted; likewise. */
void queue_put_computed(struct queue *queue, struct job **jobs, size_t count, uint64_t now);
/* For the estimates: a batch took `seconds` to compute. */
void queue_record(struct queue *queue, double seconds, double work, size_t jobs);

/* Takes the job out if it waits here; false when a worker has it. */
bool queue_remove(struct queue *queue, struct job *job);
/* Takes out any job that waits; NULL when there is none. */
struct job *queue_remove_any(struct queue *queue);
/* Whether the job waits to be parsed or computed, or is being parsed. */
bool queue_job_waits(struct queue *queue, const struct job *job);

/* Hands back the task done (the one given out before with this object) and chooses the next by choose.h.
 * Where there is nothing to do it waits once, until something comes or a held batch is due, and gives
 * TASK_NONE: ask again with a new time. TASK_STOP after queue_stop. Adds the time a job waited to its stages.
 */
void queue_take(struct queue *queue, struct task *task, uint64_t now);
/* Makes every queue_take give TASK_STOP, and running calls skip their tiles. */
void queue_stop(struct queue *queue);
const atomic_bool *queue_stopping(const struct queue *queue);

/* Offers the set to idle workers; takes it back and waits for the helpers still running a tile of it. */
void queue_tiles_offer(struct queue *queue, struct tile_set *set);
void queue_tiles_withdraw(struct queue *queue, struct tile_set *set);

struct queue_state {
	size_t unparsed, waiting; /* waiting: to be parsed or computed */
	size_t busy, idle;        /* workers with a task; asleep in queue_take */
	double seconds;           /* estimated to compute what waits, on one worker */
};
struct queue_state queue_state_of(struct queue *queue);

#endif
