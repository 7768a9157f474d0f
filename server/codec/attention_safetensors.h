/*
 * attention_safetensors.h - an attention request in a safetensors body.
 *
 * Its tensors have the names of the fields, dots between (`projections.query`), and go to the places of a
 * JSON body's; what is not a tensor is read as safetensors_body.h says. What both bodies say the same is read
 * from the same envelope by the same code. One thread at a time.
 */
#ifndef ATTND_CODEC_ATTENTION_SAFETENSORS_H
#define ATTND_CODEC_ATTENTION_SAFETENSORS_H

#include "codec/attention_request.h"

#include <jansson.h>

/* Copies the body's tensors into the request, `sink` into request->sink, and returns the rest as the envelope
 * of a JSON body, with an index where each tensor stood; the caller frees it. NULL with the problem set:
 * BAD_SAFETENSORS, BODY_TOO_LARGE for the header, and those of JSON bodies with the same pointers. model: the
 * route through a model's layer. */
json_t *attention_safetensors_read(const char *body, size_t length, bool model,
                                   const struct attention_limits *limits, struct attention_request *request,
                                   struct problem *problem);

#endif
