#include "shuffled_executor.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct loop {
	attn_tile_fn *run;
	void *arg;
	size_t *order;
	size_t tiles;
	atomic_size_t next;
	atomic_int status;
};

struct part {
	struct loop *loop;
	attn_arena *scratch;
};

static void *part_run(void *arg)
{
	struct part *part = arg;
	struct loop *loop = part->loop;
	while (atomic_load(&loop->status) == ATTN_OK) {
		size_t at = atomic_fetch_add(&loop->next, 1);
		if (at >= loop->tiles)
			break;
		attn_arena_mark mark = attn_arena_here(part->scratch);
		attn_status status = loop->run(loop->arg, loop->order[at], part->scratch);
		attn_arena_rewind(part->scratch, mark);
		int ok = ATTN_OK;
		if (status != ATTN_OK)
			atomic_compare_exchange_strong(&loop->status, &ok, (int)status);
	}
	return NULL;
}

static size_t *shuffled(uint64_t *seed, size_t count)
{
	size_t *order = calloc(count + 1, sizeof(*order));
	if (order == NULL)
		abort();
	for (size_t i = 0; i < count; i++) {
		*seed = *seed * 6364136223846793005u + 1442695040888963407u;
		size_t at = (size_t)(*seed >> 33) % (i + 1);
		order[i] = order[at];
		order[at] = i;
	}
	return order;
}

static attn_status shuffled_for(attn_executor *self, size_t tiles, attn_tile_fn *run, void *arg)
{
	struct shuffled_executor *shuffled_self = (struct shuffled_executor *)self;
	struct loop loop = {.run = run, .arg = arg, .tiles = tiles};
	struct part parts[SHUFFLED_THREADS_MAX];
	pthread_t threads[SHUFFLED_THREADS_MAX];
	loop.order = shuffled(&shuffled_self->seed, tiles);
	for (size_t i = 0; i < shuffled_self->threads; i++) {
		parts[i] = (struct part){&loop, shuffled_self->scratch[i]};
		if (i > 0 && pthread_create(&threads[i], NULL, part_run, &parts[i]) != 0)
			abort();
	}
	part_run(&parts[0]);
	for (size_t i = 1; i < shuffled_self->threads; i++)
		pthread_join(threads[i], NULL);
	free(loop.order);
	return (attn_status)atomic_load(&loop.status);
}

void shuffled_executor_init(struct shuffled_executor *shuffled_self, size_t threads, uint64_t seed)
{
	*shuffled_self = (struct shuffled_executor){.threads = threads, .seed = seed};
	for (size_t i = 0; i < threads; i++) {
		shuffled_self->scratch[i] = attn_arena_new((size_t)1 << 20);
		if (shuffled_self->scratch[i] == NULL)
			abort();
	}
	shuffled_self->executor = (attn_executor){shuffled_for, shuffled_self->scratch[0]};
}

void shuffled_executor_close(struct shuffled_executor *shuffled_self)
{
	for (size_t i = 0; i < shuffled_self->threads; i++)
		attn_arena_free(shuffled_self->scratch[i]);
}
