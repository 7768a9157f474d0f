/*
 * batcher.h - jobs waiting to be computed, in groups that may share a call.
 *
 * Plain data under its owner's lock; jobs are linked, not owned. A group holds the jobs of one batch key in
 * order of arrival, wherever they stand among others. Groups are kept in order of their oldest member, so
 * none starves.
 *
 * The caps limit joining: a take holds the first job of a group whatever its size, then those that still fit,
 * up to the first that does not. So a take is never empty, and a job over a cap goes alone.
 */
#ifndef ATTND_PIPELINE_BATCHER_H
#define ATTND_PIPELINE_BATCHER_H

#include "pipeline/job.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct batch_caps {
	size_t jobs, sequences, tokens, scores; /* each at least 1 */
};

struct batcher_view {
	size_t jobs;           /* 0: the rest says nothing */
	double work;           /* of all jobs */
	uint64_t oldest_since; /* stage_begun of the oldest job */
	bool full;             /* some group reaches a cap */
	uint64_t full_since;   /* of the oldest job of such groups */
};

struct batcher;

struct batcher *batcher_new(const struct batch_caps *caps); /* NULL: no memory */
void batcher_free(struct batcher *batcher);                 /* when it holds no job */

/* By job->key and job->stage_begun. false when the system refuses memory. */
bool batcher_add(struct batcher *batcher, struct job *job);
void batcher_remove(struct batcher *batcher, struct job *job);
struct batcher_view batcher_view_of(const struct batcher *batcher);

/* Takes a batch out of the oldest group or, with `full`, of the oldest full one, which must exist: 1 to
 * caps.jobs jobs in order of arrival, written to out. */
size_t batcher_take(struct batcher *batcher, bool full, struct job **out);

/* Takes out the oldest job, whatever its group; NULL when there is none. */
struct job *batcher_take_job(struct batcher *batcher);

#endif
