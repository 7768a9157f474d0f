#include "observe/metrics.h"
#include "observe/metrics_shard.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The lock guards the slots and who has which; counting takes no lock. A shard stays when its thread stops
 * and goes, counts and all, to the next thread that starts. */
static struct {
	pthread_mutex_t lock;
	struct {
		struct metrics_shard *shard; /* NULL: never used */
		bool taken;
	} slots[METRICS_MAX_THREADS];
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local struct metrics_shard *mine;

const char *metrics_operation_label(enum metrics_operation operation)
{
	static const char *const labels[] = {
#define X(name, label) label,
	    METRICS_OPERATION_MAP(X)
#undef X
	};
	return labels[operation];
}

const char *metrics_stage_label(enum metrics_stage stage)
{
	static const char *const labels[] = {
#define X(name, label) label,
	    METRICS_STAGE_MAP(X)
#undef X
	};
	return labels[stage];
}

const char *metrics_part_label(enum metrics_part part)
{
	static const char *const labels[] = {
#define X(name, label) label,
	    METRICS_PART_MAP(X)
#undef X
	};
	return labels[part];
}

uint32_t metrics_length_bucket(size_t length)
{
	return (uint32_t)1 << metrics_length_index(length);
}

static struct metrics_shard *shard_new(void)
{
	struct metrics_shard *shard = NULL;
	if (posix_memalign((void **)&shard, 64, sizeof(*shard)) != 0)
		return NULL;
	memset(shard, 0, sizeof(*shard));
	return shard;
}

bool metrics_thread_start(void)
{
	assert(mine == NULL);
	pthread_mutex_lock(&registry.lock);
	size_t slot = 0;
	while (slot < METRICS_MAX_THREADS && registry.slots[slot].taken)
		slot++;
	if (slot < METRICS_MAX_THREADS) {
		if (registry.slots[slot].shard == NULL)
			registry.slots[slot].shard = shard_new();
		mine = registry.slots[slot].shard;
		registry.slots[slot].taken = mine != NULL;
	}
	pthread_mutex_unlock(&registry.lock);
	return mine != NULL;
}

void metrics_thread_stop(void)
{
	pthread_mutex_lock(&registry.lock);
	for (size_t slot = 0; slot < METRICS_MAX_THREADS; slot++) {
		if (mine != NULL && registry.slots[slot].shard == mine)
			registry.slots[slot].taken = false;
	}
	pthread_mutex_unlock(&registry.lock);
	mine = NULL;
}

static size_t status_index(int http_status)
{
	switch (http_status) {
#define X(status)                                                                                            \
	case status:                                                                                         \
		return METRICS_STATUS_##status;
		METRICS_STATUS_MAP(X)
#undef X
	default:
		return METRICS_STATUS_OTHER;
	}
}

void metrics_request_done(enum metrics_operation operation, int http_status)
{
	if (mine != NULL)
		metrics_count(&mine->requests[operation][status_index(http_status)]);
}

void metrics_request_seconds(enum metrics_operation operation, size_t length, double seconds)
{
	assert(seconds >= 0);
	if (mine != NULL)
		metrics_observe(&mine->request_seconds[operation][metrics_length_index(length)],
		                &metrics_bounds_seconds, seconds);
}

void metrics_stage_seconds(enum metrics_stage stage, size_t length, double seconds)
{
	assert(seconds >= 0);
	if (mine != NULL)
		metrics_observe(&mine->stage_seconds[stage][metrics_length_index(length)],
		                &metrics_bounds_seconds, seconds);
}

void metrics_batch(size_t sequences, size_t tokens)
{
	if (mine == NULL)
		return;
	metrics_observe(&mine->batch_sequences, &metrics_bounds_sequences, (double)sequences);
	metrics_observe(&mine->batch_tokens, &metrics_bounds_tokens, (double)tokens);
}

void metrics_connection_closed_late(enum metrics_part part)
{
	if (mine != NULL)
		metrics_count(&mine->closes[part]);
}

void metrics_collect(struct metrics_shard *total)
{
	pthread_mutex_lock(&registry.lock);
	for (size_t slot = 0; slot < METRICS_MAX_THREADS; slot++) {
		if (registry.slots[slot].shard != NULL)
			metrics_shard_add(total, registry.slots[slot].shard);
	}
	pthread_mutex_unlock(&registry.lock);
}

void metrics_reset(void)
{
	pthread_mutex_lock(&registry.lock);
	for (size_t slot = 0; slot < METRICS_MAX_THREADS; slot++) {
		if (registry.slots[slot].taken)
			memset(registry.slots[slot].shard, 0, sizeof(*registry.slots[slot].shard));
		else {
			free(registry.slots[slot].shard);
			registry.slots[slot].shard = NULL;
		}
	}
	pthread_mutex_unlock(&registry.lock);
}
