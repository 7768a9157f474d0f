/*
 * metrics_shard.h - what one thread has counted; inside metrics only.
 *
 * A shard has one writer at a time, the thread that took it, and any readers: every cell is a relaxed atomic,
 * so a reader sees each count whole but may see one count of an event before another.
 */
#ifndef ATTND_OBSERVE_METRICS_SHARD_H
#define ATTND_OBSERVE_METRICS_SHARD_H

#include "observe/metrics.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Length buckets 2^0 to 2^16. */
#define METRICS_LENGTHS 17

/* X(status): the ones replies have; all others are one code, "other", which stands last. */
#define METRICS_STATUS_MAP(X)                                                                                \
	X(200)                                                                                               \
	X(400) X(401) X(404) X(405) X(406) X(413) X(415) X(422) X(429) X(500) X(503) X(504)
enum {
#define X(status) METRICS_STATUS_##status,
	METRICS_STATUS_MAP(X)
#undef X
	    METRICS_STATUS_OTHER,
	METRICS_STATUSES
};

/* Upper bounds of a histogram's buckets, ascending; one more bucket, without a bound, follows. */
#define METRICS_MAX_BUCKETS 20
struct metrics_bounds {
	size_t count; /* under METRICS_MAX_BUCKETS */
	const double *le;
};
extern const struct metrics_bounds metrics_bounds_seconds, metrics_bounds_sequences, metrics_bounds_tokens;

struct metrics_histogram {
	_Atomic uint64_t buckets[METRICS_MAX_BUCKETS]; /* not cumulative; [bounds->count] has no bound */
	_Atomic double sum;
};

struct metrics_shard {
	_Atomic uint64_t requests[METRICS_OPERATIONS][METRICS_STATUSES];
	_Atomic uint64_t closes[METRICS_PARTS];
	struct metrics_histogram request_seconds[METRICS_OPERATIONS][METRICS_LENGTHS];
	struct metrics_histogram stage_seconds[STAGES][METRICS_LENGTHS];
	struct metrics_histogram batch_sequences, batch_tokens;
};

/* Index of a length's bucket: metrics_length_bucket(length) == 1 << index. */
size_t metrics_length_index(size_t length);

/* By the shard's writer. */
void metrics_count(_Atomic uint64_t *cell);
void metrics_observe(struct metrics_histogram *histogram, const struct metrics_bounds *bounds, double value);

/* Adds what was counted in from to total, whose writer calls. */
void metrics_shard_add(struct metrics_shard *total, const struct metrics_shard *from);

/* Adds every thread's shard to total (metrics.c). */
void metrics_collect(struct metrics_shard *total);

#endif
