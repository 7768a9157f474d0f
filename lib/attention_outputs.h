/*
 * attention_outputs.h - what a panel writes besides its context: stages of the scores, weights, the largest
 * of them, statistics.
 *
 * Everything is read from the numbers that the context is made of, so that asking for it changes no bit of
 * the context. Calls come in the order of the stages.
 */
#ifndef ATTN_ATTENTION_OUTPUTS_H
#define ATTN_ATTENTION_OUTPUTS_H

#include "attention_panel.h"

/* Of one row that has a key. */
struct attn_row_totals {
	float max;    /* of the allowed scores, NaN passed over */
	float shift;  /* what was subtracted: max, or the sink's logit where that is larger */
	double sum;   /* of exp(score - shift), the sink's too */
	bool has_nan; /* an allowed score is NaN; known only where shift is infinite */
};

/* Scores and capped scores of all keys, before any adjustment. */
void attn_outputs_scores(const struct attn_panel *panel);
/* Masked scores, once every row is adjusted. */
void attn_outputs_masked(const struct attn_panel *panel);
static inline bool attn_outputs_has_statistics(const attn_sequence *sequence)
{
	return sequence->entropy != NULL || sequence->logsumexp != NULL || sequence->maximum != NULL;
}
/* Whether a score of the row's span is NaN. */
bool attn_outputs_row_has_nan(const struct attn_panel *panel, size_t r);
/* Statistics of row r, which holds exponentials; and of a row with no allowed key. */
void attn_outputs_statistics(const struct attn_panel *panel, size_t r, const struct attn_row_totals *totals);
void attn_outputs_no_statistics(const struct attn_panel *panel, size_t r);
/* Weights, their mean over heads and the top k, once every row holds exponentials. Heads of a mean come in
 * their order, one after the other. Weights that the value product can write are left to it. */
void attn_outputs_weights(struct attn_panel *panel);

#endif
