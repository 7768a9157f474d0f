/*
 * forward_head.h - what a forward pass makes of the last hidden states: pooled vectors and logits.
 */
#ifndef ATTN_FORWARD_HEAD_H
#define ATTN_FORWARD_HEAD_H

#include "forward_rows.h"
#include "model.h"

/* Writes the pooled vectors that sequences ask for, of x [count * length, width]. */
attn_status attn_pooled_write(attn_executor *executor, const struct attn_rows *rows,
                              const attn_forward_call *call, const float *x);

/* Whether a sequence asks for logits of any kind, and for what is of the last position. */
bool attn_logits_wanted(const attn_forward_sequence *sequence);
bool attn_last_logits_wanted(const attn_forward_sequence *sequence);

/* Writes the logits that sequences ask for; there is a last position if one asks for its. ATTN_MEMORY; what
 * the executor returned. */
attn_status attn_logits_write(const attn_kernels *kernels, attn_executor *executor, const attn_head *head,
                              const struct attn_rows *rows, const attn_forward_call *call, const float *x);

/* Bytes of scratch that attn_logits_write may take, and of each helping thread; SIZE_MAX on overflow. */
size_t attn_logits_scratch_bytes(const attn_head *head, const attn_forward_call *call, size_t length,
                                 size_t count);
size_t attn_logits_tile_bytes(const attn_forward_call *call);

#endif
