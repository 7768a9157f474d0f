/*
 * attention_meaning.h - what the tensors and fields of a request mean together: the shape, layer, options and
 * broadcasts that the computation needs, or the rule of the attention contract that they break.
 *
 * One thread at a time.
 */
#ifndef ATTND_CODEC_ATTENTION_MEANING_H
#define ATTND_CODEC_ATTENTION_MEANING_H

#include "codec/attention_fields.h"
#include "codec/attention_request.h"

/* Fills all of the request but tensors and outputs' memory; takes sinks over from fields. query_pointer is
 * the place of the query, for messages. model NULL: the route of tensors. false with the problem set. */
bool attention_meaning_resolve(struct attention_request *request, struct attention_fields *fields,
                               const attn_model *model, const char *query_pointer, struct problem *problem);

#endif
