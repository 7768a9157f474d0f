/*
 * linear.h - affine maps of rows of several sequences: y = activation(x W + b) [* factor] [+ residual].
 *
 * A call is cut into tiles of rows and columns that run on the caller's executor; calls that do not depend on
 * each other may run as one. Bits of a row depend on that row, on W, b and its own operands alone: not on
 * rows, count, the row's place or the executor.
 */
#ifndef ATTN_LINEAR_H
#define ATTN_LINEAR_H

#include "activation.h"
#include "attn.h"

/* Rows of an operand: of all sequences one after the other, or, where sequences is set, of each by itself.
 * Neither: the operand is absent. Rows of a sequence adjoin. */
struct attn_linear_rows {
	const float *data;             /* [count * rows, width] */
	const float *const *sequences; /* [count], each [rows, width] */
};
struct attn_linear_output {
	float *data;
	float *const *sequences;
};

struct attn_linear_call {
	const attn_linear *linear;   /* not the identity */
	size_t rows, count;          /* of a sequence; sequences */
	struct attn_linear_rows x;   /* width in; none of its memory is y's */
	struct attn_linear_output y; /* width out */
	enum attn_activation activation;
	struct attn_linear_rows factor;   /* width out, or absent; may be y */
	struct attn_linear_rows residual; /* likewise */
};

/* Whether it maps its input to itself. */
bool attn_linear_is_identity(const attn_linear *linear);
/* Whether b's columns follow a's in one matrix of the same input, so that both are one product. */
bool attn_linear_adjoin(const attn_linear *a, const attn_linear *b);
/* Whether its numbers fit each other: widths over 0, strides and packed matrices wide enough. */
bool attn_linear_fits(const attn_linear *linear);

/* Runs calls at a time. ATTN_INVALID when weights are packed for other kernels; ATTN_MEMORY; what the
 * executor returned. Scratch is taken from the executor's and given back. */
attn_status attn_linear_run(const attn_kernels *kernels, attn_executor *executor,
                            const struct attn_linear_call *calls, size_t call_count);

/* Bytes of scratch that one call of attn_linear_run may take with any kernels (an upper bound; calls of one
 * run add up); SIZE_MAX on overflow. Tiles take none of the executor's. */
size_t attn_linear_scratch_bytes(const attn_linear *linear, size_t rows, size_t count);

#endif
