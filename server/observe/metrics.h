/*
 * metrics.h - counters and histograms, and their Prometheus text.
 *
 * The one global of the daemon. Each thread that counts owns a shard (metrics_thread_start, at most
 * METRICS_MAX_THREADS of them) and is its only writer; a scrape on the loop thread adds the shards up with
 * relaxed loads. No label is taken from a request: series are bounded by the enums below.
 */
#ifndef ATTND_OBSERVE_METRICS_H
#define ATTND_OBSERVE_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define METRICS_MAX_THREADS 1026

/* X(NAME, label) */
#define METRICS_OPERATION_MAP(X)                                                                             \
	X(ATTENTION, "attention")                                                                            \
	X(MODEL_ATTENTION, "model_attention")                                                                \
	X(FORWARD, "forward")
enum metrics_operation {
#define X(name, label) METRICS_##name,
	METRICS_OPERATION_MAP(X)
#undef X
	    METRICS_OPERATIONS
};

#define METRICS_STAGE_MAP(X)                                                                                 \
	X(READ, "read")                                                                                      \
	X(PARSE, "parse")                                                                                    \
	X(QUEUE, "queue")                                                                                    \
	X(COMPUTE, "compute")                                                                                \
	X(FORMAT, "format")
enum metrics_stage {
#define X(name, label) STAGE_##name,
	METRICS_STAGE_MAP(X)
#undef X
	    STAGES
};

/* What of a connection was not done by its deadline, so that it was closed without more ado. */
#define METRICS_PART_MAP(X)                                                                                  \
	X(HEADER, "header") /* of a request */                                                               \
	X(BODY, "body")     /* likewise */                                                                   \
	X(REPLY, "reply")   /* being read by the client */
enum metrics_part {
#define X(name, label) METRICS_PART_##name,
	METRICS_PART_MAP(X)
#undef X
	    METRICS_PARTS
};

const char *metrics_operation_label(enum metrics_operation operation);
const char *metrics_stage_label(enum metrics_stage stage);
const char *metrics_part_label(enum metrics_part part);

/* Upper bound of the power-of-two bucket of a sequence length: 0 and 1 -> 1, 5 -> 8, over 65536 -> 65536. */
uint32_t metrics_length_bucket(size_t length);

/* Takes a shard for the calling thread, to be used until metrics_thread_stop; counts of a stopped thread
 * stay. false when all shards are taken. Counting on a thread without a shard does nothing. */
bool metrics_thread_start(void);
void metrics_thread_stop(void);

/* Each of these counts on the calling thread's shard. Seconds and lengths as they are, no rounding by the
 * caller. */
/* attnd_requests_total; a status that no reply of ours has (a client that went, say 0) counts under code
 * "other". */
void metrics_request_done(enum metrics_operation operation, int http_status);
void metrics_request_seconds(enum metrics_operation operation, size_t length, double seconds);
void metrics_stage_seconds(enum metrics_stage stage, size_t length, double seconds);
void metrics_batch(size_t sequences, size_t tokens);
void metrics_connection_closed_late(enum metrics_part part); /* attnd_deadline_closes_total */

/* What the scrape is told besides: gauges as they are now and facts of the build. */
struct metrics_gauges {
	size_t queue_depth, inflight_bytes, workers_busy, workers, connections;
	const char *version, *kernels, *blas_core, *blas_config;
};

/* Prometheus text (format 0.0.4) of everything, process metrics included, in malloc'd memory with its length;
 * NULL when the system refuses memory. */
char *metrics_render(const struct metrics_gauges *gauges, size_t *length);

/* Forgets every count; for tests, with no other thread counting. */
void metrics_reset(void);

#endif
