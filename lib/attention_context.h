/*
 * attention_context.h - exponentials times values, and the care that values which are not finite need.
 */
#ifndef ATTN_ATTENTION_CONTEXT_H
#define ATTN_ATTENTION_CONTEXT_H

#include "attention_panel.h"

/* Writes the context of the panel's rows, once attn_panel_softmax has seen them all. ATTN_MEMORY. */
attn_status attn_panel_context(const struct attn_panel *panel, attn_arena *scratch);

/* The same from sums of segments of keys [segments, rows, value_width], stride floats between segments. */
attn_status attn_panel_context_sums(const struct attn_panel *panel, const float *sums, size_t stride,
                                    size_t segments, attn_arena *scratch);

#endif
