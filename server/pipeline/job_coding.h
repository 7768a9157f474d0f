/*
 * job_coding.h - a job's body out of its compression, and its reply into one.
 *
 * A worker calls these, around the operation's parse and format. What they take is charged to the budget
 * before it is taken.
 */
#ifndef ATTND_PIPELINE_JOB_CODING_H
#define ATTND_PIPELINE_JOB_CODING_H

#include "pipeline/job.h"

#include <stddef.h>

/* Replaces the body by what body_coding hides, at most `limit` bytes, charged as it grows. BODY_TOO_LARGE
 * beyond that, NEVER_FITS or BUDGET_FULL, BAD_ENCODING for a stream that is broken, cut short or followed by
 * other bytes, MEMORY. A job cancelled on the way keeps its body. */
void job_decode(struct job *job, size_t limit);

/* Compresses the reply as reply_coding says when it has at least reply_coding_least bytes. Where it is
 * shorter, or memory or budget have no room, the reply stays as it is and reply_coding becomes IDENTITY. */
void job_encode(struct job *job);

#endif
