/*
 * reply_output.h - one tensor of a reply, and its place there.
 *
 * One thread at a time.
 */
#ifndef ATTND_CODEC_REPLY_OUTPUT_H
#define ATTND_CODEC_REPLY_OUTPUT_H

#include "codec/json_writer.h"
#include "codec/problem.h"
#include "codec/tensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A tensor of the reply: floats (data), or integers (indices); the other pointer is NULL. */
struct reply_tensor {
	float *data;
	int64_t *indices;
	size_t rank; /* 0: not asked for */
	size_t dims[TENSOR_MAX_RANK];
	size_t count; /* product of dims, SIZE_MAX on overflow */
};

struct reply_output {
	const char *path;           /* as reply_path.h */
	struct reply_tensor tensor; /* a view */
	bool integers;              /* the tensor's indices hold it, not its data */
	bool lowest;                /* text writes -infinity as the lowest float32 */
};

/* A shape of up to TENSOR_MAX_RANK dimensions; count 0 where one is 0. */
void reply_tensor_shape(struct reply_tensor *tensor, const size_t *dims, size_t rank);

/* Bytes of the tensor as text, at most, its path not counted; SIZE_MAX on overflow. */
size_t reply_output_text_bytes(const struct reply_output *output);

/* Writes it behind the output at path `before`, "" at first. RESULT_NOT_FINITE with the place of the number,
 * or DEADLINE. */
bool reply_output_write(struct json_writer *writer, const char *before, const struct reply_output *output,
                        struct problem *problem);

#endif
