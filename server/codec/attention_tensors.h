/*
 * attention_tensors.h - the tensors of an attention request: where they may stand, and their shapes.
 *
 * One table of places serves the scan of the body and the move of what it found into the request. One thread
 * at a time.
 */
#ifndef ATTND_CODEC_ATTENTION_TENSORS_H
#define ATTND_CODEC_ATTENTION_TENSORS_H

#include "codec/attention_request.h"
#include "codec/json_scan.h"

#include <jansson.h>

/* Places, by the number of their rule. The first ATTENTION_MODEL_PLACES are those of the route of a model. */
enum attention_place {
	PLACE_QUERY,
	PLACE_EMBEDDINGS,
	PLACE_KEY,
	PLACE_VALUE,
	PLACE_MASK,
	PLACE_BIAS,
	PLACE_PAST_KEY,
	PLACE_PAST_VALUE,
	PLACE_PROJECTIONS, /* and the seven after it, in the order of struct attention_request */
	ATTENTION_PLACES = PLACE_PROJECTIONS + 8,
	ATTENTION_MODEL_PLACES = PLACE_PROJECTIONS,
};

extern const struct json_rule attention_rules[ATTENTION_PLACES];

/* Where the request holds the numbers of a place; NULL for the mask. Query and embeddings are one. */
struct tensor *attention_tensors_at(struct attention_request *request, enum attention_place place);

/* The place of the query in an envelope; notes both of query and embeddings given. */
enum attention_place attention_tensors_query(const json_t *envelope, struct problem *problem);

/* Notes lengths over the limit: of query, key and value, and of past and new keys together. */
void attention_tensors_note_lengths(const struct attention_request *request, enum attention_place query,
                                    size_t limit, struct problem *problem);

/* Moves what the scan found into the request, with shapes; notes what is wrong with them, lengths over the
 * limit, and both of query and embeddings given. Returns false when the problem, which may hold notes of the
 * scan, holds anything after. */
bool attention_tensors_take(struct json_scan *scan, const json_t *envelope,
                            const struct attention_limits *limits, struct attention_request *request,
                            struct problem *problem);

#endif
