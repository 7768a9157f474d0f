/*
 * forward_rows.h - what a forward pass does to the rows of its sequences between attention and products.
 *
 * Rows are independent of each other and cut into tiles by their width alone, so that neither their number
 * nor the executor shows in the bits.
 */
#ifndef ATTN_FORWARD_ROWS_H
#define ATTN_FORWARD_ROWS_H

#include "attn.h"
#include "stack.h"

/* The rows of the sequences of a call in one stack, one after the other: [count * length, width]. */
struct attn_rows {
	const attn_kernels *kernels;
	const attn_forward_sequence *sequences;
	size_t count, length, width;
	size_t stack; /* which one, ATTN_FIRST_STACK or ATTN_SECOND_STACK */
};

/* x = embedded tokens or embeddings, normed; hidden states number 0 are written. */
attn_status attn_rows_embed(attn_executor *executor, const struct attn_rows *rows,
                            const attn_embedding *embedding, float *x);

#define ATTN_NO_HIDDEN SIZE_MAX

struct attn_rows_pass {
	float *x;
	const float *add;      /* added to x; NULL: nothing */
	const attn_norm *norm; /* of what x is then */
	float *normed;         /* where it goes: may be x; NULL: nowhere */
	size_t hidden;         /* x is then copied to hidden states of this number, or ATTN_NO_HIDDEN */
};
attn_status attn_rows_run(attn_executor *executor, const struct attn_rows *rows,
                          const struct attn_rows_pass *pass);

#endif
