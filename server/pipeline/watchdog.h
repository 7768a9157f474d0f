/*
 * watchdog.h - looks at the workers' heartbeats now and then, and says so when they go on.
 *
 * A timer of the loop: a loop that does not turn says nothing either. Loop thread only.
 */
#ifndef ATTND_PIPELINE_WATCHDOG_H
#define ATTND_PIPELINE_WATCHDOG_H

#include "pipeline/pipeline.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

/* Whether no worker was stuck between two looks at the heartbeats (heartbeat.h) of `count` workers: one that
 * has a task has begun it, or ended a tile of it, since the look before. Idle ones are well. Pure. */
bool watchdog_alive(const uint64_t *previous, const uint64_t *now, size_t count);

struct watchdog;

/* Calls `alive` each period when the workers go on; logs when they do not. The pipeline must be there until
 * watchdog_free. NULL: no memory. */
struct watchdog *watchdog_new(uv_loop_t *loop, const struct pipeline *pipeline, uint64_t period_ms,
                              void (*alive)(void));
/* The memory goes when libuv has closed the timer. NULL is allowed. */
void watchdog_free(struct watchdog *watchdog);

#endif
