/*
 * forward_narrowing.h - which layers, heads and queries a forward request is about, resolved against its
 * model: of weights and statistics, and of what is ablated.
 *
 * One thread at a time.
 */
#ifndef ATTND_CODEC_FORWARD_NARROWING_H
#define ATTND_CODEC_FORWARD_NARROWING_H

#include "codec/forward_fields.h"

/* Fills layers, heads, queries (taken over from fields), top_k, ablations and checks `output_dtype`; inputs
 * and groups are resolved. false with the problem set. */
bool forward_narrowing_resolve(struct forward_request *request, struct forward_fields *fields,
                               struct problem *problem);

#endif
