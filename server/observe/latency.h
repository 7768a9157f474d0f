/*
 * latency.h - latency against sequence length: quantiles by exact length and the fitted curve.
 *
 * Owned by the loop thread, which records each computed reply as it comes back. Bounded: at most
 * LATENCY_MAX_SERIES combinations of operation, model, heads and width, and LATENCY_MAX_LENGTHS lengths over
 * all of them; what is over goes to one entry "other", which has no fit.
 */
#ifndef ATTND_OBSERVE_LATENCY_H
#define ATTND_OBSERVE_LATENCY_H

#include "observe/metrics.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LATENCY_MAX_SERIES 64
#define LATENCY_MAX_LENGTHS 1024

struct latency;

struct latency *latency_new(void);
void latency_free(struct latency *latency);

struct latency_sample {
	enum metrics_operation operation;
	const char *model;   /* NULL for raw attention; copied (names over 64 bytes are cut) */
	size_t heads, width; /* width is heads times head width */
	size_t length;       /* max(queries, keys) */
	double total;        /* seconds, arrival to reply made */
	double compute;      /* seconds of the call divided by its sequences */
};
void latency_record(struct latency *latency, const struct latency_sample *sample);

/* One point of the curve and the least-squares fit t = a + b L + c L^2 through count of them, weighted by
 * 1/t^2 so that short lengths count; the exponent is the log-log slope over lengths from 128 up, NAN with
 * fewer than three. false (no fit) with fewer than three points. Pure. */
struct latency_point {
	double length, seconds;
};
struct latency_fit {
	double a, b, c, exponent;
	size_t from, to;
};
bool latency_fit_points(const struct latency_point *points, size_t count, struct latency_fit *out);

/* The body of GET /v1/latency (API.md), malloc'd, with its length; NULL when the system refuses memory. */
char *latency_to_json(const struct latency *latency, size_t *length);

#endif
