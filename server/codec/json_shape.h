/*
 * json_shape.h - where the brackets of a tensor written as nested arrays stand: known from the shape and the
 * number of an element, so that a text can be read or written from any element on.
 *
 * Plain data; any thread.
 */
#ifndef ATTND_CODEC_JSON_SHAPE_H
#define ATTND_CODEC_JSON_SHAPE_H

#include "codec/tensor.h"

#include <stddef.h>

struct json_shape {
	size_t rank;
	size_t size[TENSOR_MAX_RANK + 1]; /* elements in each array of a level, the outermost is 0; then 1 */
};

/* Of 1 to TENSOR_MAX_RANK dims, whose product does not overflow. */
struct json_shape json_shape_of(const size_t *dims, size_t rank);

/* Elements in all; and of an innermost array. */
static inline size_t json_shape_count(const struct json_shape *shape)
{
	return shape->size[0];
}

static inline size_t json_shape_row(const struct json_shape *shape)
{
	return shape->size[shape->rank - 1];
}

/* Arrays that begin with an element, or that have ended before it: no dimension is 0. */
size_t json_shape_edges(const struct json_shape *shape, size_t element);

/* Elements from `first` on, up to last at most, that stand in one innermost array. */
size_t json_shape_run(const struct json_shape *shape, size_t first, size_t last);

/* Of all arrays: how many begin with an element before this one, and how many have ended before it. */
size_t json_shape_begun(const struct json_shape *shape, size_t element);
size_t json_shape_ended(const struct json_shape *shape, size_t element);

#endif
