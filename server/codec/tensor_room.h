/*
 * tensor_room.h - the limit of elements that the tensors of a request share, in whatever form they come.
 * Plain data: one thread at a time.
 */
#ifndef ATTND_CODEC_TENSOR_ROOM_H
#define ATTND_CODEC_TENSOR_ROOM_H

#include "codec/problem.h"

#include <stdbool.h>
#include <stddef.h>

struct tensor_room {
	size_t limit; /* of elements, and of any dimension */
	size_t taken; /* elements so far */
};

/* Takes the elements of a tensor with the shape from the room. Empty tensors are bounded too: no dimension is
 * over the limit. TOO_MANY_ELEMENTS is noted at pointer for either; false when the elements do not fit. */
bool tensor_room_take(struct tensor_room *room, const char *pointer, size_t count, const size_t *dims,
                      size_t rank, struct problem *problem);

#endif
