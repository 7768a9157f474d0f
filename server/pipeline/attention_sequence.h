/*
 * attention_sequence.h - one sequence of a parsed request as the library wants it: views of its inputs and
 * outputs.
 *
 * The request must be reserved and outlive the views. Pure: any thread.
 */
#ifndef ATTND_PIPELINE_ATTENTION_SEQUENCE_H
#define ATTND_PIPELINE_ATTENTION_SEQUENCE_H

#include "codec/attention_request.h"

/* index is below request->batch; of a request without, and with, split_heads. */
attn_layer_sequence attention_sequence_through_layer(const struct attention_request *request, size_t index);
attn_sequence attention_sequence_of_heads(const struct attention_request *request, size_t index);

#endif
