/*
 * attention_past.h - cached keys and values that a request puts before its own.
 */
#ifndef ATTND_CODEC_ATTENTION_PAST_H
#define ATTND_CODEC_ATTENTION_PAST_H

#include "codec/attention_request.h"

/* Checks past_key and past_value, both or none, against the shape, whose heads and widths are resolved; sets
 * has_past and shape.past, and counts the past in shape.keys. false with the problem set. */
bool attention_past_resolve(struct attention_request *request, struct problem *problem);

#endif
