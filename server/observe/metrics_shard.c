#include "observe/metrics_shard.h"

#define BOUNDS(array)                                                                                        \
	{                                                                                                    \
		sizeof(array) / sizeof((array)[0]), (array)                                                  \
	}

static const double seconds_le[] = {1e-5,   2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2,
                                    2.5e-2, 5e-2,   0.1,  0.25, 0.5,    1,    2.5,  5,      10};
static const double sequences_le[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
static const double tokens_le[] = {16,   32,    64,    128,   256,    512,    1024,   2048,   4096,
                                   8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576};

const struct metrics_bounds metrics_bounds_seconds = BOUNDS(seconds_le);
const struct metrics_bounds metrics_bounds_sequences = BOUNDS(sequences_le);
const struct metrics_bounds metrics_bounds_tokens = BOUNDS(tokens_le);

_Static_assert(sizeof(seconds_le) / sizeof(double) < METRICS_MAX_BUCKETS, "too many bounds");
_Static_assert(sizeof(tokens_le) / sizeof(double) < METRICS_MAX_BUCKETS, "too many bounds");

size_t metrics_length_index(size_t length)
{
	size_t index = 0;
	while (index < METRICS_LENGTHS - 1 && ((size_t)1 << index) < length)
		index++;
	return index;
}

static void cell_add(_Atomic uint64_t *cell, uint64_t by)
{
	uint64_t now = atomic_load_explicit(cell, memory_order_relaxed);
	atomic_store_explicit(cell, now + by, memory_order_relaxed);
}

static void sum_add(_Atomic double *sum, double by)
{
	double now = atomic_load_explicit(sum, memory_order_relaxed);
	atomic_store_explicit(sum, now + by, memory_order_relaxed);
}

void metrics_count(_Atomic uint64_t *cell)
{
	cell_add(cell, 1);
}

void metrics_observe(struct metrics_histogram *histogram, const struct metrics_bounds *bounds, double value)
{
	size_t bucket = 0;
	while (bucket < bounds->count && value > bounds->le[bucket])
		bucket++;
	cell_add(&histogram->buckets[bucket], 1);
	sum_add(&histogram->sum, value);
}

static void cells_add(_Atomic uint64_t *total, const _Atomic uint64_t *from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		cell_add(&total[i], atomic_load_explicit(&from[i], memory_order_relaxed));
}

static void histograms_add(struct metrics_histogram *total, const struct metrics_histogram *from,
                           size_t count)
{
	for (size_t i = 0; i < count; i++) {
		cells_add(total[i].buckets, from[i].buckets, METRICS_MAX_BUCKETS);
		sum_add(&total[i].sum, atomic_load_explicit(&from[i].sum, memory_order_relaxed));
	}
}

void metrics_shard_add(struct metrics_shard *total, const struct metrics_shard *from)
{
	cells_add(&total->requests[0][0], &from->requests[0][0], METRICS_OPERATIONS * METRICS_STATUSES);
	cells_add(total->closes, from->closes, METRICS_PARTS);
	for (size_t i = 0; i < METRICS_OPERATIONS; i++)
		histograms_add(total->request_seconds[i], from->request_seconds[i], METRICS_LENGTHS);
	for (size_t i = 0; i < STAGES; i++)
		histograms_add(total->stage_seconds[i], from->stage_seconds[i], METRICS_LENGTHS);
	histograms_add(&total->batch_sequences, &from->batch_sequences, 1);
	histograms_add(&total->batch_tokens, &from->batch_tokens, 1);
}
