/*
 * context.h - what the HTTP side is given and shares among its modules. Belongs to the loop thread.
 */
#ifndef ATTND_HTTP_CONTEXT_H
#define ATTND_HTTP_CONTEXT_H

#include "http/connection.h"
#include "observe/latency.h"
#include "observe/metrics.h"
#include "options.h"
#include "pipeline/budget.h"
#include "pipeline/pipeline.h"
#include "pipeline/registry.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct listener;
struct tokens;

struct http_context {
	/* set before the listener starts; all outlive it */
	uv_loop_t *loop;
	const struct options *options;
	struct budget *budget;
	struct registry *registry; /* another after a reload, between two turns of the loop */
	struct pipeline *pipeline;
	struct latency *latency;
	int socket;                  /* passed by the service manager, to listen at; -1: none was */
	struct metrics_gauges facts; /* version, kernels and BLAS; the gauges are filled in at a scrape */
	struct tokens *tokens;       /* NULL: none is needed; may be changed between two turns of the loop */

	/* set by the listener and its modules */
	struct listener *listener;
	bool local; /* it listens at a unix socket */
	struct connections connections;
	bool draining;    /* nothing is let in any more */
	size_t admitted;  /* operations let in whose exchange has not ended */
	uint64_t id_base; /* makes the request ids of this process its own */
	uint64_t id_next;
};

#endif
