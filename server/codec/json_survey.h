/*
 * json_survey.h - a quick look over an array: where it ends, which shape it has if it is a tensor, and where
 * it can be read in parts.
 *
 * Commas and brackets are counted and nothing else is looked at, so that what it says holds only once the
 * text has been read and found to be so. Plain data: one thread at a time.
 */
#ifndef ATTND_CODEC_JSON_SURVEY_H
#define ATTND_CODEC_JSON_SURVEY_H

#include "codec/tensor.h"

#include <stdbool.h>
#include <stddef.h>

/* Bytes of text in a part, at least; and parts, at most. */
#define JSON_PART_BYTES ((size_t)128 << 10)
#define JSON_PARTS_MAX 256

/* Where a part begins: behind a comma, and with which element. */
struct json_part {
	const char *at;
	size_t element;
};

struct json_survey {
	size_t rank, dims[TENSOR_MAX_RANK];
	size_t count; /* product of dims */
	size_t part_count;
	struct json_part parts[JSON_PARTS_MAX + 1]; /* the last is the end: behind the array, and count */
};

/* The array at text, which begins with its bracket. false when it has no end before `end`, holds a quote or
 * a brace, or is no tensor with at least one element. */
bool json_survey_array(const char *text, const char *end, struct json_survey *out);

#endif
