/*
 * crew.h - an executor of two threads for the benchmarks: the caller and one helper that waits in between.
 */
#ifndef ATTND_TESTS_CREW_H
#define ATTND_TESTS_CREW_H

#include "bench.h"

#include "attn.h"

#include <pthread.h>
#include <stdatomic.h>

#define CREW_SCRATCH ((size_t)64 << 20)

struct crew {
	attn_executor face; /* first, so that self can be cast back */
	attn_arena *helper_scratch;
	pthread_t helper;
	pthread_mutex_t lock;
	pthread_cond_t begun, ended;
	size_t call; /* grows with each parallel_for */
	bool helping, stopping;
	/* of the running parallel_for */
	size_t tiles;
	attn_tile_fn *run;
	void *arg;
	atomic_size_t next;
	atomic_int status;
};

static inline void crew_work(struct crew *crew, attn_arena *scratch)
{
	size_t tile;
	while ((tile = atomic_fetch_add(&crew->next, 1)) < crew->tiles &&
	       atomic_load(&crew->status) == ATTN_OK) {
		attn_arena_mark mark = attn_arena_here(scratch);
		attn_status status = crew->run(crew->arg, tile, scratch);
		attn_arena_rewind(scratch, mark);
		if (status != ATTN_OK)
			atomic_store(&crew->status, (int)status);
	}
}

static inline void *crew_help(void *arg)
{
	struct crew *crew = arg;
	size_t call = 0;
	pthread_mutex_lock(&crew->lock);
	while (!crew->stopping) {
		if (crew->call == call) {
			pthread_cond_wait(&crew->begun, &crew->lock);
			continue;
		}
		call = crew->call;
		crew->helping = true;
		pthread_mutex_unlock(&crew->lock);
		crew_work(crew, crew->helper_scratch);
		pthread_mutex_lock(&crew->lock);
		crew->helping = false;
		pthread_cond_signal(&crew->ended);
	}
	pthread_mutex_unlock(&crew->lock);
	return NULL;
}

/* Until the helper is out of the tiles; with the lock held. */
static inline void crew_wait(struct crew *crew)
{
	while (crew->helping)
		pthread_cond_wait(&crew->ended, &crew->lock);
}

/* A helper that wakes when the tiles are gone finds none. */
static inline attn_status crew_parallel_for(attn_executor *self, size_t tiles, attn_tile_fn *run, void *arg)
{
	struct crew *crew = (struct crew *)self;
	pthread_mutex_lock(&crew->lock);
	crew_wait(crew);
	crew->tiles = tiles;
	crew->run = run;
	crew->arg = arg;
	atomic_store(&crew->next, 0);
	atomic_store(&crew->status, ATTN_OK);
	if (tiles > 1) {
		crew->call++;
		pthread_cond_signal(&crew->begun);
	}
	pthread_mutex_unlock(&crew->lock);
	crew_work(crew, self->scratch);
	pthread_mutex_lock(&crew->lock);
	crew_wait(crew);
	crew->tiles = 0;
	pthread_mutex_unlock(&crew->lock);
	return (attn_status)atomic_load(&crew->status);
}

static inline struct crew *crew_new(void)
{
	struct crew *crew = calloc(1, sizeof(*crew));
	if (crew == NULL)
		bench_check(ATTN_MEMORY, "crew");
	crew->face = (attn_executor){crew_parallel_for, attn_arena_new(CREW_SCRATCH)};
	crew->helper_scratch = attn_arena_new(CREW_SCRATCH);
	if (crew->face.scratch == NULL || crew->helper_scratch == NULL)
		bench_check(ATTN_MEMORY, "scratch");
	pthread_mutex_init(&crew->lock, NULL);
	pthread_cond_init(&crew->begun, NULL);
	pthread_cond_init(&crew->ended, NULL);
	if (pthread_create(&crew->helper, NULL, crew_help, crew) != 0)
		bench_check(ATTN_MEMORY, "thread");
	return crew;
}

static inline attn_executor *crew_executor(struct crew *crew)
{
	return &crew->face;
}

static inline void crew_free(struct crew *crew)
{
	pthread_mutex_lock(&crew->lock);
	crew->stopping = true;
	pthread_cond_signal(&crew->begun);
	pthread_mutex_unlock(&crew->lock);
	pthread_join(crew->helper, NULL);
	attn_arena_free(crew->face.scratch);
	attn_arena_free(crew->helper_scratch);
	free(crew);
}

#endif
