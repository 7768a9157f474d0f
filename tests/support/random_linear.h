/*
 * random_linear.h - affine maps drawn at random, as they are and packed for a set of kernels.
 *
 * Everything drawn lies in the arena of the draw.
 */
#ifndef ATTND_TESTS_RANDOM_LINEAR_H
#define ATTND_TESTS_RANDOM_LINEAR_H

#include "random_attention.h"

/* Numbers in [-1, 1], a bias by chance, rows by chance further apart than they need be. */
attn_linear draw_linear(struct draw *draw, size_t in, size_t out);

/* The same map with its weights packed too, somewhere in a wider matrix; as it is where the kernels take no
 * packed weights. */
attn_linear pack_linear(struct draw *draw, const attn_kernels *kernels, const attn_linear *linear);

/* Packs maps of one input side by side, if the kernels take packed weights. */
void pack_together(struct draw *draw, const attn_kernels *kernels, attn_linear *const *linears, size_t count);

#endif
