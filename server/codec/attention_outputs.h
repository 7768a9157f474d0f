/*
 * attention_outputs.h - the tensors of a reply: which of them a request asks for, their shapes, their names
 * and their memory.
 *
 * Every form of reply is written from one list. One thread at a time.
 */
#ifndef ATTND_CODEC_ATTENTION_OUTPUTS_H
#define ATTND_CODEC_ATTENTION_OUTPUTS_H

#include "codec/attention_request.h"

#define ATTENTION_OUTPUTS_MAX 16
#define ATTENTION_PATH_MAX 32 /* bytes of a path, at most */

/* Sets rank, dims and count (SIZE_MAX on overflow) of every output; rank 0 where it is not asked for. All but
 * the outputs must be resolved. */
void attention_outputs_shape(struct attention_request *request);

/* Asks for these weights instead, and for no stages; shapes the outputs again. Not after the reserve. */
void attention_outputs_ask(struct attention_request *request, enum weights_form weights);

/* The outputs asked for, in the order of the reply, those of one group side by side; returns how many.
 * Memory may stand in it twice: projected.key is present_key. */
size_t attention_outputs_list(const struct attention_request *request,
                              struct reply_output out[ATTENTION_OUTPUTS_MAX]);

/* Bytes of their memory; SIZE_MAX on overflow. */
size_t attention_outputs_bytes(const struct attention_request *request);
/* Zeroed memory for each; false when the system refuses. */
bool attention_outputs_reserve(struct attention_request *request);
void attention_outputs_clear(struct attention_request *request);

#endif
