/*
 * calls.h - the sequences of a batch of jobs, cut into calls of the library.
 *
 * An operation says which of its jobs' sequences may share a call (a lot) and how each stands in one; the
 * walk over them, the caps, and what becomes of a failure are the same for all. A worker's thread.
 */
#ifndef ATTND_PIPELINE_CALLS_H
#define ATTND_PIPELINE_CALLS_H

#include "attn.h"
#include "pipeline/job.h"

#include <stdbool.h>
#include <stddef.h>

/* What calls run with, and how much one may hold. */
struct call_means {
	const attn_kernels *kernels;
	attn_executor *executor;
	size_t max_sequences, max_scores;
};

/* Sequences of equal shapes and options, over all jobs of a batch. */
struct call_lot {
	const struct job *like; /* one of the jobs */
	const void *shape;      /* the operation's own */
	size_t length;          /* positions of a sequence, for the metrics */
	size_t scores;          /* of a sequence, for the caps */
	size_t item_size;       /* bytes of what stands for a sequence in a call */

	/* Sequences that a job has in the lot. */
	size_t (*count)(const struct call_lot *lot, const struct job *job);
	/* Sequence `index` of them as it stands in a call; false: no memory. Scratch lasts until the call has
	 * run. */
	bool (*fill)(const struct call_lot *lot, const struct job *job, size_t index, void *item,
	             attn_arena *scratch);
	attn_status (*run)(const struct call_lot *lot, const void *items, size_t count,
	                   const struct call_means *means);
};

/* All sequences of the lot in as few calls as the caps allow; a lone sequence over max_scores runs alone.
 * Raises the jobs' batch_sequences. ATTN_MEMORY, or what run returned first. */
attn_status calls_run(struct job *const *jobs, size_t count, const struct call_lot *lot,
                      const struct call_means *means);

typedef attn_status calls_together(struct job *const *jobs, size_t count, const struct call_means *means);

/* Runs together on all jobs, rewinding scratch after; where that fails, on each job by itself, so that what
 * one meets does not harm its mates. Sets the problems of those that fail. A call is cancelled for all. */
void calls_compute(struct job *const *jobs, size_t count, calls_together *together,
                   const struct call_means *means);

#endif
