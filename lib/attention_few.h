/*
 * attention_few.h - few queries against many keys, as one step of a generation is: bound by the reading of
 * keys and values, which are therefore read once, where they are.
 *
 * Keys are cut into segments, so that one sequence with one head keeps every core busy. The cut follows from
 * the shape alone, and sums of segments are added in their order.
 */
#ifndef ATTN_ATTENTION_FEW_H
#define ATTN_ATTENTION_FEW_H

#include "attention_panel.h"

/* Whether a call of this shape comes here, where the kernels have attention of their own. */
bool attn_few_fits(const attn_shape *shape);

/* attn_attend for such a call. ATTN_MEMORY; what the executor returned. */
attn_status attn_few_run(const struct attn_call *call, attn_executor *executor, size_t count);

/* sums [segments, rows of the panel, value_width] of the panel's exponentials times values [hi - lo,
 * value_width], stride floats apart: what attn_few_run makes of the sequence's own. */
void attn_few_sums(const struct attn_panel *panel, const float *values, size_t stride, float *sums);
/* Segments of the keys of a head. */
size_t attn_few_segments(const attn_shape *shape);

/* Bytes it takes of the executor's scratch, besides its tiles; SIZE_MAX on overflow. 0 for other shapes. */
size_t attn_few_bytes(const attn_shape *shape, size_t count);

#endif
