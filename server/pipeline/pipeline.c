#include "pipeline/pipeline.h"

#include "observe/clock.h"
#include "pipeline/mailbox.h"
#include "pipeline/queue.h"
#include "pipeline/workers.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

struct pipeline {
	struct pipeline_config config;
	struct pipeline_events events;
	struct queue *queue;
	struct mailbox *mailbox;
	struct workers *workers;
	size_t submitted; /* and not yet returned */
	bool stopping;
	void (*closed)(void *context);
	void *closed_context;
};

static void pipeline_deliver(void *context, struct mail *mail)
{
	struct pipeline *pipeline = context;
	struct job *job = mail->job;
	switch (mail->kind) {
	case MAIL_DEADLINE:
		if (!atomic_load(&job->cancelled))
			pipeline->events.deadline(pipeline->events.context, job);
		break;
	case MAIL_RETURNED:
		if (pipeline->stopping)
			atomic_store(&job->cancelled, true);
		pipeline->submitted--;
		pipeline->events.returned(pipeline->events.context, job);
		break;
	}
}

/* Jobs that can wait at once: queue_limit of them, and one more a worker that comes back from parsing. */
static size_t pipeline_max_jobs(const struct pipeline_config *config)
{
	size_t most;
	if (!attn_size_add(config->queue_limit, config->workers, &most))
		most = SIZE_MAX;
	return most < config->max_batch ? most : config->max_batch;
}

static struct queue *pipeline_new_queue(const struct pipeline_config *config)
{
	struct queue_config queue = {
	    .limit = config->queue_limit,
	    .caps = {.jobs = pipeline_max_jobs(config),
	             .sequences = config->max_batch,
	             .tokens = config->max_batch_tokens,
	             .scores = config->max_batch_scores},
	    .rules = {.batch_wait = config->batch_wait_ns, .batch_max_age = config->batch_max_age_ns},
	};
	return queue_new(&queue);
}

static struct workers *pipeline_new_workers(struct pipeline *pipeline, attn_error *err)
{
	const struct pipeline_config *config = &pipeline->config;
	struct workers_config workers = {
	    .count = config->workers,
	    .max_jobs = pipeline_max_jobs(config),
	    .max_sequences = config->max_batch,
	    .max_scores = config->max_batch_scores,
	    .max_body = config->max_body,
	    .limits = config->limits,
	    .kernels = config->kernels,
	    .queue = pipeline->queue,
	    .mailbox = pipeline->mailbox,
	};
	return workers_new(&workers, err);
}

static void pipeline_closed(void *context)
{
	struct pipeline *pipeline = context;
	void (*closed)(void *context) = pipeline->closed;
	void *closed_context = pipeline->closed_context;
	queue_free(pipeline->queue);
	free(pipeline);
	if (closed != NULL)
		closed(closed_context);
}

struct pipeline *pipeline_new(uv_loop_t *loop, const struct pipeline_config *config,
                              const struct pipeline_events *events, attn_error *err)
{
	assert(config->workers > 0 && config->max_batch > 0);
	err->status = ATTN_MEMORY;
	snprintf(err->message, sizeof(err->message), "no memory for the queue");
	struct pipeline *pipeline = calloc(1, sizeof(*pipeline));
	if (pipeline == NULL)
		return NULL;
	pipeline->config = *config;
	pipeline->events = *events;
	pipeline->queue = pipeline_new_queue(config);
	if (pipeline->queue == NULL)
		goto no_queue;
	pipeline->mailbox = mailbox_new(loop, pipeline_deliver, pipeline);
	if (pipeline->mailbox == NULL)
		goto no_mailbox;
	pipeline->workers = pipeline_new_workers(pipeline, err);
	if (pipeline->workers == NULL) {
		mailbox_close(pipeline->mailbox, pipeline_closed, pipeline);
		return NULL;
	}
	*err = (attn_error){.status = ATTN_OK};
	return pipeline;
no_mailbox:
	queue_free(pipeline->queue);
no_queue:
	free(pipeline);
	return NULL;
}

bool pipeline_submit(struct pipeline *pipeline, struct job *job)
{
	if (pipeline->stopping || !queue_submit(pipeline->queue, job, clock_now()))
		return false;
	pipeline->submitted++;
	return true;
}

void pipeline_cut(struct pipeline *pipeline, struct job *job)
{
	atomic_store(&job->cancelled, true);
	if (queue_remove(pipeline->queue, job))
		mailbox_post(pipeline->mailbox, &job->mail_returned);
}

bool pipeline_job_waits(struct pipeline *pipeline, const struct job *job)
{
	return queue_job_waits(pipeline->queue, job);
}

struct pipeline_state pipeline_state_of(struct pipeline *pipeline)
{
	struct queue_state queue = queue_state_of(pipeline->queue);
	return (struct pipeline_state){
	    .waiting = queue.waiting,
	    .submitted = pipeline->submitted,
	    .workers_busy = queue.busy,
	    .workers = pipeline->config.workers,
	    .queued_seconds = queue.seconds / (double)pipeline->config.workers,
	};
}

size_t pipeline_workers(const struct pipeline *pipeline)
{
	return pipeline->config.workers;
}

void pipeline_beats(const struct pipeline *pipeline, uint64_t *beats)
{
	workers_beats(pipeline->workers, beats);
}

void pipeline_stop(struct pipeline *pipeline, void (*closed)(void *context), void *context)
{
	pipeline->stopping = true;
	pipeline->closed = closed;
	pipeline->closed_context = context;
	workers_stop(pipeline->workers);

	struct job *job;
	while ((job = queue_remove_any(pipeline->queue)) != NULL)
		mailbox_post(pipeline->mailbox, &job->mail_returned);
	mailbox_drain(pipeline->mailbox);
	mailbox_close(pipeline->mailbox, pipeline_closed, pipeline);
}
