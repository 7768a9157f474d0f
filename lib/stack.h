/*
 * stack.h - a stack of blocks as a family of models describes it and attn_model_forward runs it.
 *
 * One description serves every family: what one of them lacks is left zero. All memory is the model's and is
 * not written once the model is made.
 *
 *   x = norm(tokens * scale + type + positions)          or embeddings in the place of tokens * scale
 *   each block, pre-norm:   x += self(norm(x));  x += cross(norm(x), memory);  x += feed(norm(x))
 *              post-norm:   x = norm(x + self(x)); x = norm(x + cross(x, memory)); x = norm(x + feed(x))
 *   x = norm(x)                                          the final norm
 *
 * memory is the first stack's result.
 */
#ifndef ATTN_STACK_H
#define ATTN_STACK_H

#include "activation.h"
#include "attn.h"
#include "norm.h"

/* Rows to look up, plain or as the columns of a packed head that the table is tied to. */
typedef struct attn_table {
	size_t count, width;
	const float *rows; /* [count, width], or NULL */
	const attn_packed *packed;
} attn_table;

/* out [width] = row number index, which is below count. */
void attn_table_read(const attn_table *table, size_t index, float *out);

typedef struct attn_embedding {
	attn_table tokens;      /* count 0: the stack takes embeddings only */
	float token_scale;      /* factor of what tokens look up */
	const float *type;      /* [width] added to every row (BERT's token type 0), or NULL */
	const float *positions; /* [attn_stack.positions, width] learned or sinusoidal, or NULL */
	attn_norm norm;
} attn_embedding;

/* Attention with the norm before or after it. */
typedef struct attn_sublayer {
	attn_layer *layer;     /* of the model's layers; NULL: the block has none */
	attn_options *options; /* what the model runs it with: scale, causal, window, rotation, buckets ... */
	attn_norm norm;
} attn_sublayer;

/* down(activation(up(x))), or down(activation(gate(x)) * up(x)) where there is a gate (Shazeer 2020). */
typedef struct attn_feed_forward {
	attn_linear gate; /* in 0: none */
	attn_linear up, down;
	enum attn_activation activation;
	attn_norm norm;
} attn_feed_forward;

typedef struct attn_block {
	attn_sublayer self, cross;
	attn_feed_forward feed_forward;
} attn_block;

typedef struct attn_stack {
	size_t layers; /* 0: there is no such stack */
	size_t width;
	size_t positions; /* longest sequence; 0: without bound */
	bool pre_norm;
	attn_embedding embedding;
	attn_block *blocks; /* [layers], all of the same heads */
	attn_norm final_norm;
} attn_stack;

/* Predicts tokens from the last stack's result: logits = linear(x * scale). */
typedef struct attn_head {
	attn_linear linear; /* out 0: none */
	float scale;
} attn_head;

#endif
