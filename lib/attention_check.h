/*
 * attention_check.h - whether the arguments of attn_attend make sense.
 */
#ifndef ATTN_ATTENTION_CHECK_H
#define ATTN_ATTENTION_CHECK_H

#include "attn.h"

/* ATTN_OK, ATTN_INVALID or ATTN_OVERFLOW, as attn_attend says. */
attn_status attn_call_check(const attn_shape *shape, const attn_options *options,
                            const attn_sequence *sequences, size_t count);

#endif
