/*
 * attention_panel.h - the work on one panel of scores, from the product to exponentials.
 *
 * A call holds what its panels share and is not written while tiles run. A panel belongs to the tile that
 * works on it; its buffers are scratch of that tile's thread.
 */
#ifndef ATTN_ATTENTION_PANEL_H
#define ATTN_ATTENTION_PANEL_H

#include "attention_plan.h"
#include "kernels.h"

struct attn_call {
	const attn_kernels *kernels;
	const attn_shape *shape;
	const attn_options *options;
	const attn_sequence *sequences; /* key and value hold past keys too, everything turned */
	struct attn_plan plan;
	bool all_heads;   /* a unit of work is a panel of every head, for the mean over heads; else of one */
	size_t units;     /* of the whole call */
	size_t tile_size; /* units of a tile */
};

/* Scores, then exponentials, of some query rows of one head against keys [lo, hi). */
struct attn_panel {
	const struct attn_call *call;
	const attn_sequence *sequence;
	size_t head, first, rows;
	size_t lo, hi;
	struct attn_span *spans; /* [rows] */
	float *scores;           /* [rows, stride] */
	float *inverse; /* [rows] 1 / sum of a row; 0 for a row without keys, NaN for one with a NaN */
	float *row;     /* [keys] */
	size_t *order;  /* [keys], or NULL without a top k */
};

/* Fills the spans of a panel and the keys they cover together, which may be none. */
void attn_panel_spans(struct attn_panel *panel);

/* out [rows, ...] = scale * Q K^T for rows from r on and the keys keys.lo to keys.hi; stride floats lie
 * between rows of out. */
void attn_panel_product(const struct attn_panel *panel, size_t r, size_t rows, struct attn_span keys,
                        float *out, size_t stride);

/* Everything between the product and the softmax for row r: softcap, bias, ALiBi, relative biases, masks.
 * Excluded keys of the groups of lanes that its span touches become -infinity. */
void attn_panel_adjust(const struct attn_panel *panel, size_t r);

/* Adjusted scores of row r to exp(score - maximum), 0 for excluded keys, and 1 / sum to inverse[r]; writes
 * the statistics asked for. A NaN among the allowed scores, or only -infinity, makes the sum NaN. */
void attn_panel_softmax(struct attn_panel *panel, size_t r);

/* softcap * tanh(score / softcap). */
void attn_scores_cap(float *scores, size_t count, float softcap);

/* Whether mask and bias leave key, one of the row's span, to row r. */
bool attn_panel_allows(const struct attn_panel *panel, size_t r, size_t key);

/* The key and value head of the panel's head. */
size_t attn_panel_kv_head(const struct attn_panel *panel);

/* Leading dimension of a matrix; one row needs none. */
static inline size_t attn_leading(size_t rows, size_t stride, size_t width)
{
	return rows <= 1 ? width : stride;
}

static inline void attn_fill(float *row, size_t from, size_t to, float value)
{
	for (size_t i = from; i < to; i++)
		row[i] = value;
}

#endif
