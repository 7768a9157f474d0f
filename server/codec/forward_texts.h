/*
 * forward_texts.h - texts of a forward request as the tokens that the model's tokenizer makes of them.
 */
#ifndef ATTND_CODEC_FORWARD_TEXTS_H
#define ATTND_CODEC_FORWARD_TEXTS_H

#include "codec/forward_request.h"

#include <jansson.h>

/* Gives each stack that has a text, and no tokens or embeddings, the tokens of it and their ranges; problems
 * are noted. A text of another type, and one for a model without a tokenizer, is left to who reads fields. */
void forward_texts_read(const json_t *envelope, struct forward_request *request, struct problem *problem);

#endif
