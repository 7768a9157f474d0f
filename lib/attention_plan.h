/*
 * attention_plan.h - how a call of attention is cut into panels, and the scratch a panel takes.
 *
 * A panel is some query rows of one head of one sequence against all keys; its scores stay in L2. Everything
 * here follows from the shape alone, so that bits do not depend on anything else.
 */
#ifndef ATTN_ATTENTION_PLAN_H
#define ATTN_ATTENTION_PLAN_H

#include "attn.h"

/* What a tile computes at most where it can choose: about a millisecond of one core. */
#define ATTN_TILE_FLOPS ((size_t)50 * 1000 * 1000)

struct attn_plan {
	size_t rows;   /* query rows of a panel */
	size_t panels; /* of each head */
	size_t stride; /* floats between rows of a panel */
	size_t flops;  /* of a panel, about */
};

/* The shape is one that attn_attend_tile_bytes has a number for. */
struct attn_plan attn_plan_make(const attn_shape *shape);

/* Keys [lo, hi) of a row or panel. */
struct attn_span {
	size_t lo, hi;
};

#endif
