/*
 * forward_inputs.h - what the stacks of a forward request read, tokens or embeddings, out of either form of
 * body.
 *
 * In a safetensors body embeddings, and tokens of equal lengths, are tensors of those names; what is not a
 * tensor is read as safetensors_body.h says, lists of tokens that differ in length too. One thread at a time.
 */
#ifndef ATTND_CODEC_FORWARD_INPUTS_H
#define ATTND_CODEC_FORWARD_INPUTS_H

#include "codec/forward_request.h"

#include <jansson.h>

/* Field names of a stack's tokens, embeddings and text, with a '/' before. */
struct forward_input_pointers {
	const char *tokens, *embeddings, *text;
};
extern const struct forward_input_pointers forward_input_pointers[ATTN_STACKS];

/* That of what the stack was given. */
const char *forward_input_pointer(const struct forward_request *request, size_t stack);

/* Moves the inputs of a body of that form, texts as their tokens, into the request, whose info and reader are
 * set, and returns the rest as the envelope of a JSON body, for the caller to free. NULL with the problem
 * set: what the form of a body can have wrong, and lengths over the limit or the positions of the stack. */
json_t *forward_inputs_read(const char *body, size_t length, enum body_form form,
                            const struct attention_limits *limits, attn_executor *executor,
                            struct forward_request *request, struct problem *problem);

#endif
