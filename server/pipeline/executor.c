#include "pipeline/executor.h"

#include <assert.h>
#include <stdlib.h>
#include <uv.h>

struct executor {
	attn_executor face; /* first, so that self can be cast back */
	struct queue *queue;
	struct heartbeat *heartbeat;
	struct job *const *jobs;
	size_t count;
	bool running;
	uv_cond_t left; /* the last helper of the running parallel_for has left; with the queue's lock */
};

static attn_status executor_parallel_for(attn_executor *self, size_t tiles, attn_tile_fn *run, void *arg)
{
	struct executor *executor = (struct executor *)self;
	struct tile_set set = {
	    .run = run,
	    .arg = arg,
	    .tiles = tiles,
	    .jobs = executor->jobs,
	    .count = executor->count,
	    .stopping = queue_stopping(executor->queue),
	    .left = &executor->left,
	};
	bool shared = tiles > 1;
	size_t tile;

	assert(!executor->running);
	executor->running = true;
	if (shared)
		queue_tiles_offer(executor->queue, &set);
	while (tile_set_claim(&set, &tile)) {
		tile_set_run(&set, tile, self->scratch);
		heartbeat_tile(executor->heartbeat);
	}
	if (shared)
		queue_tiles_withdraw(executor->queue, &set);
	executor->running = false;
	return (attn_status)atomic_load(&set.status);
}

struct executor *executor_new(struct queue *queue, attn_arena *scratch, struct heartbeat *heartbeat)
{
	struct executor *executor = calloc(1, sizeof(*executor));
	if (executor == NULL)
		return NULL;
	executor->face = (attn_executor){.parallel_for = executor_parallel_for, .scratch = scratch};
	executor->queue = queue;
	executor->heartbeat = heartbeat;
	if (uv_cond_init(&executor->left) != 0) {
		free(executor);
		return NULL;
	}
	return executor;
}

void executor_free(struct executor *executor)
{
	if (executor == NULL)
		return;
	uv_cond_destroy(&executor->left);
	free(executor);
}

attn_executor *executor_for(struct executor *executor, struct job *const *jobs, size_t count)
{
	executor->jobs = jobs;
	executor->count = count;
	return &executor->face;
}
