/*
 * tiles.h - work on texts in tiles, by an executor where the caller lends one.
 */
#ifndef ATTND_CODEC_TILES_H
#define ATTND_CODEC_TILES_H

#include "attn.h"

/* As the executor's parallel_for; NULL: one tile after the other on this thread, without scratch. */
attn_status tiles_run(attn_executor *executor, size_t tiles, attn_tile_fn *run, void *arg);

/* ATTN_CANCELLED when nobody waits for the work any more, else ATTN_OK. */
attn_status tiles_wanted(attn_executor *executor);

#endif
