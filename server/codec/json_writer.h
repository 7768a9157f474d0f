/*
 * json_writer.h - nested arrays of float32 and a frame of text around them, into memory of known size.
 *
 * The caller reserves the upper bound before; the writer never grows. One thread at a time.
 */
#ifndef ATTND_CODEC_JSON_WRITER_H
#define ATTND_CODEC_JSON_WRITER_H

#include "attn.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* JSON_CANCELLED: the executor was. After either failure the text is of no use. */
enum json_written { JSON_WRITTEN, JSON_NOT_FINITE, JSON_CANCELLED };

struct json_writer {
	char *text;    /* malloc'd by json_writer_open; the caller's */
	size_t length; /* bytes written */
	size_t room;
	int precision; /* significant digits of numbers, 0: shortest */
	bool lowest;   /* -infinity is written as the lowest float32 */
	attn_executor *executor;
};

/* false when the system refuses memory. The executor, which outlives the writer, runs parts of a large
 * tensor, as many as its size says: the text does not depend on it. NULL: all is done here. */
bool json_writer_open(struct json_writer *writer, size_t room, int precision, attn_executor *executor);

/* Text as it is: names, brackets, integers. */
void json_writer_text(struct json_writer *writer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A contiguous tensor of `dims` as nested arrays; empty dimensions print as numpy's tolist() has them. Takes
 * at most 3 bytes an array and NUMBER_TEXT_MAX a number. JSON_NOT_FINITE at the first number that is not
 * finite, with its indices in index[rank]. */
enum json_written json_writer_tensor(struct json_writer *writer, const float *data, const size_t *dims,
                                     size_t rank, size_t *index);
/* The same of integers, none over 15 digits. */
enum json_written json_writer_indices(struct json_writer *writer, const int64_t *data, const size_t *dims,
                                      size_t rank);

#endif
