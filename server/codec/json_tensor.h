/*
 * json_tensor.h - one tensor of a JSON body, in any of its forms: what json_scan found of it and what stands
 * in the envelope, as one array with a shape.
 *
 * One thread at a time.
 */
#ifndef ATTND_CODEC_JSON_TENSOR_H
#define ATTND_CODEC_JSON_TENSOR_H

#include "codec/json_scan.h"
#include "codec/tensor_room.h"

#include <jansson.h>

/* Where tensors are taken from, and how many elements are left to them. */
struct json_tensor_source {
	struct json_scan *scan;
	const json_t *envelope;
	const struct json_rule *rules;
	struct tensor_room room;
	struct problem *problem;
};

/* Moves the array at the place of a rule out of the scan: malloc'd float or uint8_t, by the rule's kind.
 * false when there is no tensor, or one that is noted to be wrong: `shape`, the count of `data`, `dtype` or
 * bytes that do not fit, too many elements. */
bool json_tensor_take(struct json_tensor_source *source, size_t rule, struct json_array *out);

#endif
