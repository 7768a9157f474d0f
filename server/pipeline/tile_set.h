/*
 * tile_set.h - the tiles of one running parallel_for: whoever claims a tile runs it.
 *
 * Made by the worker that owns the call, on its stack. Helpers hold it only between queue_take, which counts
 * them in, and the next, which counts them out; the owner leaves when none is in. next and status are atomic;
 * the links and the count of helpers are under the queue's lock.
 */
#ifndef ATTND_PIPELINE_TILE_SET_H
#define ATTND_PIPELINE_TILE_SET_H

#include "attn.h"
#include "pipeline/job.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

struct tile_set {
	attn_tile_fn *run;
	void *arg;
	size_t tiles;
	struct job *const *jobs; /* for whom: when all are cancelled the rest is skipped; none: never */
	size_t count;
	const atomic_bool *stopping; /* skip the rest for this too */
	atomic_size_t next;          /* first tile not claimed; tiles or more: none left */
	atomic_int status;           /* ATTN_OK or the first other one */

	uv_cond_t *left; /* signalled when the last helper leaves */
	size_t helpers;
	struct tile_set *link_next, *link_previous;
};

/* Whether a tile is left to claim; it may be gone a moment later. */
bool tile_set_open(const struct tile_set *set);
/* Takes the next tile; false when none is left. */
bool tile_set_claim(struct tile_set *set, size_t *tile);
/* Runs a claimed tile, or skips it when nobody wants it; scratch is rewound after. A failure closes the set.
 */
void tile_set_run(struct tile_set *set, size_t tile, attn_arena *scratch);

#endif
