/*
 * attention_reply.h - what the replies of all forms, and their upper bounds, agree on. The reply's contract
 * is in attention_request.h.
 */
#ifndef ATTND_CODEC_ATTENTION_REPLY_H
#define ATTND_CODEC_ATTENTION_REPLY_H

#include "codec/attention_request.h"
#include "codec/numbers.h"

/* Bytes of a JSON reply that are not tensors, at most: names, brackets and the seven numbers of `shape`. */
#define ATTENTION_REPLY_FRAME 512

/* `shape` as JSON text, terminated. */
#define ATTENTION_SHAPE_TEXT_MAX 256
void attention_reply_shape(const struct attention_request *request, char out[ATTENTION_SHAPE_TEXT_MAX]);

/* The safetensors reply, whatever the request's reply_form: as attention_reply_format and
 * attention_request_reply_bytes. */
char *attention_reply_binary(const struct attention_request *request, size_t *length,
                             struct problem *problem);
size_t attention_reply_binary_bytes(const struct attention_request *request);

#endif
