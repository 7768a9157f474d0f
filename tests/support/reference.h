/*
 * reference.h - attention by plain loops in double, straight from the definition: what tests compare with.
 *
 * It shares no code with lib: every key is asked whether every rule allows it, one after the other.
 */
#ifndef ATTND_TESTS_REFERENCE_H
#define ATTND_TESTS_REFERENCE_H

#include "attn.h"

/* All that can be said of one sequence, contiguous. */
struct reference {
	double *query;                              /* [heads, queries, head_width] after rotation */
	double *key, *value;                        /* [kv_heads, keys, ...], past before new */
	double *scores, *capped, *masked, *weights; /* [heads, queries, keys] */
	double *context;                            /* [heads, queries, value_width] */
	double *entropy, *logsumexp, *maximum;      /* [heads, queries] */
};

/* Everything lies in the arena; selection and outputs asked for are not looked at. */
struct reference reference_attend(attn_arena *arena, const attn_shape *shape, const attn_options *options,
                                  const attn_sequence *sequence);

/* y [rows, out] = x [rows, in] W + b in double; weight NULL copies. */
void reference_linear(const attn_linear *linear, const double *x, size_t rows, double *y);

/* Turns the pairs of one row in place (rope). */
void reference_rotate(attn_rotation rotation, double theta, double position, double *row, size_t width);

/* Number `column` of the sinusoid of a position. */
double reference_sinusoid(double position, size_t column, size_t width);

#endif
