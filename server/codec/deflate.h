/*
 * deflate.h - bytes in memory, compressed as a whole.
 *
 * For replies that clients asked to have smaller: quick rather than tight. Takes about 256 KiB beside what
 * the caller gives. Any thread.
 */
#ifndef ATTND_CODEC_DEFLATE_H
#define ATTND_CODEC_DEFLATE_H

#include "codec/coding.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Room that compressing `size` bytes may take. */
size_t deflate_room(size_t size);

/* Writes data, compressed as GZIP or DEFLATE, to out; *length bytes of it. false, with nothing to be used,
 * when it does not fit room, memory is refused, or *stop (not NULL) became true on the way. */
bool deflate_whole(enum coding coding, const void *data, size_t size, char *out, size_t room, size_t *length,
                   const atomic_bool *stop);

#endif
