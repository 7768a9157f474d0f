/*
 * workers.h - the pool of threads that parse, compute and format.
 *
 * Each worker takes a task from the queue, runs it through the job's operation, and puts the job back or
 * posts it to the mailbox. It has an arena and an executor of its own. Made and joined on the loop thread.
 */
#ifndef ATTND_PIPELINE_WORKERS_H
#define ATTND_PIPELINE_WORKERS_H

#include "attn.h"
#include "codec/attention_request.h"
#include "pipeline/mailbox.h"
#include "pipeline/queue.h"

#include <stddef.h>
#include <stdint.h>

struct workers_config {
	size_t count;
	size_t max_jobs;      /* of a batch: caps.jobs of the queue */
	size_t max_sequences; /* of a library call */
	size_t max_scores;    /* likewise */
	size_t max_body;      /* bytes of a body once inflated */
	struct attention_limits limits;
	const attn_kernels *kernels;
	struct queue *queue; /* these outlive the workers */
	struct mailbox *mailbox;
};

struct workers;

/* Starts count threads, or none: NULL with err set. */
struct workers *workers_new(const struct workers_config *config, attn_error *err);
/* The heartbeat (heartbeat.h) of each: count of them. */
void workers_beats(const struct workers *workers, uint64_t *beats);
/* Stops the queue, waits for each worker to finish its task, and frees them. */
void workers_stop(struct workers *workers);

#endif
