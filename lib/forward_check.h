/*
 * forward_check.h - whether the arguments of attn_model_forward make sense.
 */
#ifndef ATTN_FORWARD_CHECK_H
#define ATTN_FORWARD_CHECK_H

#include "model.h"

/* ATTN_OK, ATTN_INVALID or ATTN_OVERFLOW, as attn_model_forward says. */
attn_status attn_forward_check(const attn_model *model, const attn_forward_call *call,
                               const attn_forward_sequence *sequences, size_t count);

/* The stack that runs last. */
static inline size_t attn_last_stack(const attn_forward_call *call)
{
	return call->second ? ATTN_SECOND_STACK : ATTN_FIRST_STACK;
}

#endif
