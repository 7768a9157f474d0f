/*
 * pipeline.h - jobs in, jobs out: queues, the batcher, the worker pool and the mailbox behind one face.
 *
 * All functions are for the loop thread. Inside, workers take tasks from the queue (queue.h, choose.h), run
 * them (operation.h), lend idle threads to big calls (executor.h) and post jobs back (mailbox.h).
 */
#ifndef ATTND_PIPELINE_PIPELINE_H
#define ATTND_PIPELINE_PIPELINE_H

#include "attn.h"
#include "codec/attention_request.h"
#include "pipeline/budget.h"
#include "pipeline/job.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct pipeline_config {
	size_t workers;            /* at least 1 */
	size_t queue_limit;        /* jobs waiting (parse and batch), not those being run */
	size_t max_batch;          /* sequences a call, for joining */
	size_t max_batch_tokens;   /* likewise */
	size_t max_batch_scores;   /* score elements, likewise */
	size_t max_body;           /* bytes of a body once inflated */
	uint64_t batch_wait_ns;    /* a batch not full is held open so long, whatever its age */
	uint64_t batch_max_age_ns; /* a batch whose oldest member waited longer goes before parsing */
	struct attention_limits limits;
	const attn_kernels *kernels; /* outlives the pipeline */
	struct budget *budget;       /* likewise */
};

struct pipeline_events {
	void *context;
	/* The job is done, failed or was cancelled; the callee owns it now. Once for each job submitted. */
	void (*returned)(void *context, struct job *job);
	/* job->deadline became shorter (a timeout_ms in its body). Never after `returned`, nor once it was
	 * cut. */
	void (*deadline)(void *context, struct job *job);
};

struct pipeline;

/* Starts the workers. NULL with err set when threads or memory are refused; the loop must then run once more
 * before it can be closed, as handles close in its turns. */
struct pipeline *pipeline_new(uv_loop_t *loop, const struct pipeline_config *config,
                              const struct pipeline_events *events, attn_error *err);

/* Hands a job with a whole body over. false (the job stays the caller's) when queue_limit jobs wait, or after
 * pipeline_stop. */
bool pipeline_submit(struct pipeline *pipeline, struct job *job);

/* Nobody waits for this submitted job any more: sets cancelled and, where it still waits, takes it out. It
 * comes back through `returned` all the same (not from inside this call), then or when a worker lets go. */
void pipeline_cut(struct pipeline *pipeline, struct job *job);

/* true while the job is being read or waits, so that a client half-closing counts as gone; false once a
 * worker computes or formats it. */
bool pipeline_job_waits(struct pipeline *pipeline, const struct job *job);

struct pipeline_state {
	size_t waiting;   /* jobs in the parse and batch queues */
	size_t submitted; /* jobs not yet returned */
	size_t workers_busy, workers;
	double queued_seconds; /* estimated compute seconds of what waits, divided by the workers */
};
struct pipeline_state pipeline_state_of(struct pipeline *pipeline);

size_t pipeline_workers(const struct pipeline *pipeline);
/* The heartbeat (heartbeat.h) of each worker. */
void pipeline_beats(const struct pipeline *pipeline, uint64_t *beats);

/* Stops and joins the workers (each finishes its task) and returns every job still inside through `returned`,
 * cancelled; then closes its handles. `closed` is called from the loop when all is freed. */
void pipeline_stop(struct pipeline *pipeline, void (*closed)(void *context), void *context);

#endif
