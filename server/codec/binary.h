/*
 * binary.h - elements of binary tensors (base64, safetensors) as a request holds them: float32, or booleans
 * of one byte.
 *
 * Any thread; no state.
 */
#ifndef ATTND_CODEC_BINARY_H
#define ATTND_CODEC_BINARY_H

#include "attn.h"
#include "codec/problem.h"

#include <stddef.h>
#include <stdint.h>

/* Whether a tensor of numbers may be sent in the type. */
bool binary_is_number(attn_dtype dtype);

/* count little-endian elements at any alignment to malloc'd float32, rounded to nearest even; NaN and
 * infinity pass. NULL with a problem noted: BEYOND_FLOAT32 at pointer for a finite number that float32 has
 * not, MEMORY. dtype is one that binary_is_number. */
float *binary_floats(attn_dtype dtype, const void *bytes, size_t count, const char *pointer,
                     struct problem *problem);

/* Whether each of the bytes is 0 or 1; else a problem is noted at pointer. */
bool binary_check_booleans(const uint8_t *bytes, size_t count, const char *pointer, struct problem *problem);

#endif
