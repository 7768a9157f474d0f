/*
 * observed.h - what is counted, timed and logged of each request. Loop thread only.
 */
#ifndef ATTND_HTTP_OBSERVED_H
#define ATTND_HTTP_OBSERVED_H

#include "codec/problem.h"
#include "observe/latency.h"
#include "pipeline/job.h"

#include <stddef.h>
#include <stdint.h>

struct observed {
	const char *method, *path, *request_id, *traceparent; /* traceparent may be NULL */
	const struct operation *operation;                    /* NULL: not one; it is not counted */
	const struct problem *problem;
	int status;
	size_t bytes;
	double seconds;
};

/* A request is answered: counted, and logged (at warning when it failed on our side, else at debug). */
void observed_answer(const struct observed *observed);
/* A client went before its answer. */
void observed_gone(const char *request_id, const struct operation *operation);
/* A job came back computed: its stages and its place on the latency curve. */
void observed_job(struct latency *latency, const struct job *job, uint64_t now);

#endif
