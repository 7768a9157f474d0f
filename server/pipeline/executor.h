/*
 * executor.h - the attn_executor that the pool lends to calls: each parallel_for is offered to idle workers.
 *
 * One a worker, used by that worker only. The owner runs tiles itself; a helper takes one tile at a time and
 * goes back to the queue for the next thing; at the end the owner waits only for tiles that are running. No
 * nesting: a tile gets no executor. When all jobs of the batch are cancelled, or the pool stops, what is left
 * is skipped and the call ends with ATTN_CANCELLED.
 */
#ifndef ATTND_PIPELINE_EXECUTOR_H
#define ATTND_PIPELINE_EXECUTOR_H

#include "attn.h"
#include "pipeline/heartbeat.h"
#include "pipeline/job.h"
#include "pipeline/queue.h"

#include <stddef.h>

struct executor;

/* scratch and heartbeat are the worker's own and outlive the executor, as does the queue. NULL: no memory. */
struct executor *executor_new(struct queue *queue, attn_arena *scratch, struct heartbeat *heartbeat);
void executor_free(struct executor *executor);

/* The executor for parsing, computing or formatting these jobs, who stay until the next call or its end. */
attn_executor *executor_for(struct executor *executor, struct job *const *jobs, size_t count);

#endif
