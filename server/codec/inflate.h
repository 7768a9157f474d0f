/*
 * inflate.h - compressed bytes in memory, read piece by piece into room that the caller gives.
 *
 * The caller decides after each piece whether there may be more, so nothing expands beyond what it allows.
 * Takes about 48 KiB beside that. Any thread, one at a time; the compressed bytes stay the caller's and must
 * outlive the inflater.
 */
#ifndef ATTND_CODEC_INFLATE_H
#define ATTND_CODEC_INFLATE_H

#include "codec/coding.h"

#include <stddef.h>

enum inflate_result {
	INFLATE_MORE,      /* the room is full; there may be more */
	INFLATE_END,       /* the stream ended well, with the last of its input */
	INFLATE_BROKEN,    /* not such a stream, or its check does not hold */
	INFLATE_CUT_SHORT, /* the input ended before the stream */
	INFLATE_TRAILING,  /* input is left behind the end of the stream */
	INFLATE_MEMORY,    /* the system refused memory */
};

struct inflater;

/* coding: GZIP, which may be several members on end, or DEFLATE. NULL when the system refuses memory. */
struct inflater *inflater_new(enum coding coding, const void *data, size_t size);
void inflater_free(struct inflater *inflater); /* NULL: nothing */

/* Writes the next bytes, at most room (not 0) of them; *written is how many, whatever the result. After
 * anything but MORE there is no more to read. */
enum inflate_result inflater_read(struct inflater *inflater, char *out, size_t room, size_t *written);

#endif
