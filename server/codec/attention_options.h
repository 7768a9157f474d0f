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
 * of the past and those a layer appends counted, is resolved, and so is the layer of a model, whose own
 * options hold where nothing else was sent; model NULL: none. false with the problem set. */
bool attention_options_resolve(struct attention_request *request, const struct attention_fields *fields,
                               const attn_model *model, struct problem *problem);

#endif
