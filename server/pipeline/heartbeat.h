/*
 * heartbeat.h - a count that a worker moves on as it works, for a watchdog to look at.
 *
 * Odd while the worker has a task, even between tasks; a tile adds two. Written by its worker, read by any
 * thread.
 */
#ifndef ATTND_PIPELINE_HEARTBEAT_H
#define ATTND_PIPELINE_HEARTBEAT_H

#include <stdatomic.h>
#include <stdint.h>

struct heartbeat {
	_Atomic uint64_t beats;
};

/* A task begins, and ends. */
static inline void heartbeat_task(struct heartbeat *heartbeat)
{
	atomic_fetch_add_explicit(&heartbeat->beats, 1, memory_order_relaxed);
}

/* A tile of the running task is done. */
static inline void heartbeat_tile(struct heartbeat *heartbeat)
{
	atomic_fetch_add_explicit(&heartbeat->beats, 2, memory_order_relaxed);
}

static inline uint64_t heartbeat_read(const struct heartbeat *heartbeat)
{
	return atomic_load_explicit(&heartbeat->beats, memory_order_relaxed);
}

#endif
