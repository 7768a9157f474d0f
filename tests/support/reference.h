/*
 * reference.h - attention by plain loops in double, straight from the definition: what tests compare with.
 *
 * It shares no code with lib: every key is asked whether every rule allows it, one after the other.
 */
#ifndef ATTND_TESTS_REFERENCE_H
#define ATTND_TESTS_REFERENCE_H

#include "attn.h"

/* Weights [heads, queries, keys] and context [heads, queries, value_width], both contiguous. */
void reference_attend(const attn_shape *shape, const attn_options *options, const attn_sequence *sequence,
                      double *weights, double *context);

/* y [rows, out] = x [rows, in] W + b in double; weight NULL copies. */
void reference_linear(const attn_linear *linear, const double *x, size_t rows, double *y);

#endif
