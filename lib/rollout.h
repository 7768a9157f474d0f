/*
 * rollout.h - attention rollout (Abnar, Zuidema 2020): how much of each position of the input reaches each
 * position of a layer, if residuals carry as much as attention.
 *
 * R_0 = (I + W_0) / 2 and R_l = (I + W_l) / 2 R_(l-1), where W_l are weights averaged over heads.
 */
#ifndef ATTN_ROLLOUT_H
#define ATTN_ROLLOUT_H

#include "attn.h"

/* One sequence's. */
struct attn_rollout {
	float *weights; /* [length, length] of the layer, averaged over heads */
	float *product; /* [length, length] to compute in */
	float *rollout; /* [length, length] R of the layer below; unset at the first layer */
};

/* Takes a layer into the rollouts of count sequences. */
attn_status attn_rollout_step(const attn_kernels *kernels, attn_executor *executor,
                              const struct attn_rollout *rollouts, size_t count, size_t length, bool first);

/* Bytes of scratch it may take; SIZE_MAX on overflow. */
size_t attn_rollout_scratch_bytes(size_t length, size_t count);

#endif
