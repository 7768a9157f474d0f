/*
 * attention_adjust.h - what comes between the scores and their softmax: softcap, biases, masks.
 */
#ifndef ATTN_ATTENTION_ADJUST_H
#define ATTN_ATTENTION_ADJUST_H

#include "attention_panel.h"

/* Everything between the product and the softmax for the rows of a panel: softcap, bias, ALiBi, relative
 * biases, masks. Excluded keys of the groups of lanes that a row's span touches become -infinity. */
void attn_panel_adjust(const struct attn_panel *panel);

/* softcap * tanh(score / softcap). */
void attn_scores_cap(const attn_kernels *kernels, float *scores, size_t count, float softcap);

#endif
