/*
 * estimate.h - how long what waits will take to compute, from what was computed lately.
 *
 * Plain data under its owner's lock. Decayed sums, so that a call counts by its size and the past fades.
 */
#ifndef ATTND_PIPELINE_ESTIMATE_H
#define ATTND_PIPELINE_ESTIMATE_H

#include <stddef.h>

struct estimate { /* {0}: nothing known, all estimates 0 */
	double seconds, work, jobs;
};

/* A call took `seconds` for `jobs` jobs of `work` units (job->work) together. */
void estimate_record(struct estimate *estimate, double seconds, double work, size_t jobs);

/* Compute seconds of jobs whose work is known, and of `unread` jobs not parsed yet, taken as like the last
 * ones. */
double estimate_seconds(const struct estimate *estimate, double work, size_t unread);

#endif
