/*
 * attention_options.h - the options of an attention request, resolved against its shape: masks by rule,
 * positions, and which results are wanted.
 *
 * One thread at a time.
 */
#ifndef ATTND_CODEC_ATTENTION_OPTIONS_H
#define ATTND_CODEC_ATTENTION_OPTIONS_H

#include "codec/attention_fields.h"
#include "codec/attention_request.h"

/* Fills options and what they point to, lists by sequence, and what is wanted of the outputs. The shape, keys
 * of the past counted, is resolved. false with the problem set. */
bool attention_options_resolve(struct attention_request *request, const struct attention_fields *fields,
                               struct problem *problem);

#endif
