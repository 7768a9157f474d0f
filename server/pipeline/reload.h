/*
 * reload.h - replaces what is served by a new load of it, while serving goes on.
 *
 * One load at a time, on a thread of libuv's; the loop swaps what was made in, and what it replaces is freed
 * on such a thread too, since giving back large weights takes a while. Asked again meanwhile, it begins once
 * more when all that is over, once however often it was asked. What is loaded is the caller's affair. The
 * functions below, and the steps unless said otherwise, are for the loop thread.
 */
#ifndef ATTND_PIPELINE_RELOAD_H
#define ATTND_PIPELINE_RELOAD_H

#include "attn.h"

#include <uv.h>

struct reload_steps {
	void *context;
	void (*begun)(void *context);
	/* Another thread: makes the new state, or returns NULL with err set. Reads nothing that may change.
	 */
	void *(*load)(void *context, attn_error *err);
	/* Takes the new state into use; returns what it replaces, to be freed. */
	void *(*swap)(void *context, void *loaded);
	/* The load failed: what was served is served on. */
	void (*failed)(void *context, const attn_error *err);
	void (*discard)(void *state); /* another thread; frees a state */
};

struct reload;

struct reload *reload_new(uv_loop_t *loop, const struct reload_steps *steps); /* NULL: no memory */

/* Begins to load, now or when the load that is running is over. Nothing after reload_stop. */
void reload_request(struct reload *reload);
/* Nothing is swapped or begun any more. A load that runs is freed when it is over; the loop runs until then.
 * NULL is allowed. */
void reload_stop(struct reload *reload);
/* When the loop has run out. NULL is allowed. */
void reload_free(struct reload *reload);

#endif
