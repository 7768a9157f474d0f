/*
 * position.h - what tells positions apart: rotations of heads and sinusoids, from angles in double.
 *
 * Pair i of a row of width numbers turns by position * base^(-2i/width). Pure functions of their arguments.
 */
#ifndef ATTN_POSITION_H
#define ATTN_POSITION_H

#include "attn.h"

/* out [pairs]: base^(-2i/width). */
void attn_frequencies(double base, size_t width, size_t pairs, double *out);

/* Cosine and sine of every pair at one position, side by side: out [pairs, 2]. */
void attn_turns(const double *frequencies, size_t pairs, double position, double *out);

/* out [width] = in turned pair by pair (Su et al. 2021): (a, b) becomes (a cos - b sin, a sin + b cos), in
 * double, rounded once. out may be in; width is even; turns is [width / 2, 2]. */
void attn_rotate(attn_rotation rotation, const double *turns, size_t width, const float *in, float *out);

#define ATTN_SINUSOID_BASE 10000.0
/* attn_sinusoid_add where the turns by ATTN_SINUSOID_BASE are known: [width / 2 rounded up, 2]. */
void attn_sinusoid_add_turns(const double *turns, size_t width, float *out);

#endif
