/*
 * random_attention.h - attention calls drawn at random from a seed, over combinations of every option.
 *
 * Everything drawn lies in the arena of the draw. Equal seeds draw equal calls.
 */
#ifndef ATTND_TESTS_RANDOM_ATTENTION_H
#define ATTND_TESTS_RANDOM_ATTENTION_H

#include "attn.h"

struct draw {
	uint64_t state;
	attn_arena *arena;
};

uint64_t draw_bits(struct draw *draw);
/* In [low, high]. */
size_t draw_size(struct draw *draw, size_t low, size_t high);
bool draw_chance(struct draw *draw, unsigned percent);
/* count floats in [-1, 1]. */
float *draw_floats(struct draw *draw, size_t count);

/* Lengths up to longest, few heads, widths up to 128 (seldom over 32), with odd ones among them. */
attn_shape draw_shape(struct draw *draw, size_t longest);
/* Scale 1/sqrt(D) times up to 2; each other option present with a chance of its own. */
attn_options draw_options(struct draw *draw, const attn_shape *shape);
/* Inputs, masks and outputs of a sequence, head-major or row-major. */
attn_sequence draw_sequence(struct draw *draw, const attn_shape *shape, const attn_options *options);
/* Outputs of its own for a sequence: context always, each other by chance. */
void draw_outputs(struct draw *draw, const attn_shape *shape, const attn_options *options,
                  attn_sequence *sequence);

/* What a selection shows: how many rows of [H', Lq'], the row of [heads, queries] in place number slot, and
 * k. */
size_t shown_rows(const attn_shape *shape, const attn_options *options);
size_t shown_row(const attn_shape *shape, const attn_options *options, size_t slot);
size_t shown_top(const attn_options *options);

#endif
