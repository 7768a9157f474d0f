/*
 * attention_plan.h - how a call of attention is cut into panels and units of work, and the scratch they take.
 *
 * A panel is some query rows of one head of one sequence against all keys; its scores stay in L2. A unit is
 * some panels of the heads that share keys and values, which it packs for itself; where that would make it
 * long, keys and values of a sequence are packed before its units. Everything here follows from the shape and
 * the set of kernels, so that bits do not depend on anything else.
 */
#ifndef ATTN_ATTENTION_PLAN_H
#define ATTN_ATTENTION_PLAN_H

#include "attn.h"
#include "kernels.h"

/* What a tile computes at most where it can choose: about a tenth of a millisecond of one core. */
#define ATTN_TILE_FLOPS ((size_t)8 * 1000 * 1000)

struct attn_plan {
	size_t rows;   /* query rows of a panel */
	size_t panels; /* of each head */
	size_t stride; /* floats between rows of a panel */
	size_t flops;  /* of a panel, about */

	bool few;           /* attention_few.h runs it; nothing is packed */
	bool packs_keys;    /* keys are packed into strips: the kernels have attention of their own */
	bool packs_values;  /* values too; else they are read where they are */
	bool packs_before;  /* by the sequence, before its units; else by each unit */
	size_t unit_heads;  /* heads of a unit */
	size_t unit_panels; /* of each of its heads */
	size_t units;       /* of a sequence */
	bool streams;       /* weights go past the caches, which they would only fill */
	size_t keys_floats; /* of the packed keys of a head */
	size_t values_floats;
};

/* The shape is one that attn_attend_tile_bytes has a number for. all_heads: a unit has to hold a panel of
 * every head, for the mean over heads. */
struct attn_plan attn_plan_make(const attn_shape *shape, const attn_kernels *kernels, bool all_heads);

/* Floats between rows of a panel. */
size_t attn_panel_stride(const attn_shape *shape);

/* Bytes a call takes for keys and values that are packed before units: an upper bound; SIZE_MAX on overflow.
 */
size_t attn_plan_bytes(const attn_shape *shape);

/* Keys [lo, hi) of a row or panel. */
struct attn_span {
	size_t lo, hi;
};

#endif
