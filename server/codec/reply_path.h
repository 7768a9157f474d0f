/*
 * reply_path.h - where in a reply a tensor stands: names from the top down with dots between, where a number
 * is the place in a list ("stages.masked", "weights.encoder.3").
 *
 * In a binary reply the path is the tensor's name as it is; in text it makes the objects and lists around it.
 * One thread at a time.
 */
#ifndef ATTND_CODEC_REPLY_PATH_H
#define ATTND_CODEC_REPLY_PATH_H

#include "codec/json_path.h"
#include "codec/json_writer.h"

/* Leaves the groups of `before`, "" at first, and enters those of path: `"group":{"name":`. Paths of one
 * group come side by side; a list's elements come in order, whatever their numbers. */
void reply_path_write(struct json_writer *writer, const char *before, const char *path);
/* Leaves the groups of the last path. */
void reply_path_leave(struct json_writer *writer, const char *before);

/* The JSON pointer of an element of the tensor at the path. */
void reply_path_pointer(const char *path, const size_t *index, size_t rank, char out[JSON_POINTER_MAX]);

#endif
