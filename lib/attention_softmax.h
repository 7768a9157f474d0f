/*
 * attention_softmax.h - scores of a panel to what a softmax makes of them, but for the division.
 */
#ifndef ATTN_ATTENTION_SOFTMAX_H
#define ATTN_ATTENTION_SOFTMAX_H

#include "attention_panel.h"

/* Scores of every row to exp(score - maximum), 0 for excluded keys, and 1 / sum to inverse: softcap, biases
 * and masks, then the softmax; writes what was asked for on the way, stages, statistics and weights. A NaN
 * among the allowed scores, or only -infinity, makes the sum NaN. */
void attn_panel_weigh(struct attn_panel *panel);

#endif
