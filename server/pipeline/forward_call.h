/*
 * forward_call.h - a parsed forward request as the library wants it: what the sequences of some lengths share
 * in a call, and one sequence with views of its inputs and outputs.
 *
 * The request must outlive both; they hold pointers into it. Pure: any thread.
 */
#ifndef ATTND_PIPELINE_FORWARD_CALL_H
#define ATTND_PIPELINE_FORWARD_CALL_H

#include "codec/forward_request.h"

/* A call and what it points to. */
struct forward_call {
	attn_forward_call call;
	attn_selection selections[ATTN_STACK_KINDS];
};

/* Sizes of the list of queries that forward_call_make needs room for. */
size_t forward_call_room(const struct forward_request *request);

/* Fills *out, which stays where it is, for sequences of those lengths; queries has forward_call_room bytes.
 */
void forward_call_make(const struct forward_request *request, const size_t lengths[ATTN_STACKS],
                       size_t *queries, struct forward_call *out);

/* Bytes of what forward_sequence_fill takes of scratch. */
size_t forward_sequence_room(const struct forward_request *request);

/* Sequence `index` of a request that is reserved; false: no memory. */
bool forward_sequence_fill(const struct forward_request *request, size_t index, attn_forward_sequence *out,
                           attn_arena *scratch);

#endif
