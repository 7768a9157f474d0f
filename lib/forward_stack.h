/*
 * forward_stack.h - runs the sequences of a call through one stack of a model.
 */
#ifndef ATTN_FORWARD_STACK_H
#define ATTN_FORWARD_STACK_H

#include "forward_rows.h"
#include "model.h"

struct attn_stack_run {
	const attn_model *model;
	const attn_kernels *kernels;
	attn_executor *executor;
	const attn_forward_call *call;
	struct attn_rows rows; /* not none */
	/* What the second stack attends to: the first's result [count * memory_length, width of the first].
	 */
	const float *memory;
	size_t memory_length;
};

/* x [count * length, width] = the stack's result, after its final norm; writes hidden states, weights and
 * rollouts that are asked for. What attention and the executor return. */
attn_status attn_stack_run(const struct attn_stack_run *run, float *x);

/* Bytes of scratch it may take (an upper bound), and bytes of each helping thread; SIZE_MAX on overflow. */
size_t attn_stack_scratch_bytes(const attn_model *model, const attn_forward_call *call, size_t stack,
                                size_t count);
size_t attn_stack_tile_bytes(const attn_model *model, const attn_forward_call *call, size_t stack);
/* Floating point operations of one sequence, about. */
double attn_stack_work(const attn_model *model, const attn_forward_call *call, size_t stack);

#endif
