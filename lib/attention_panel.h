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
	struct attn_strips
	    *packed;      /* [kv_heads] of the one sequence of the call, where packs_before is set */
	size_t units;     /* of the whole call */
	size_t tile_size; /* units of a tile */
};

/* Keys and values of a head for the kernels of attention_kernels.h; values NULL: not packed. */
struct attn_strips {
	float *keys, *values;
};

/* Scores, then exponentials, of some query rows of one head against keys [lo, hi). */
struct attn_panel {
	const struct attn_call *call;
	const attn_sequence *sequence;
	size_t head, first, rows;
	size_t lo, hi;             /* lo: a whole strip, where keys are packed */
	struct attn_strips strips; /* of its key and value head, where keys are packed */
	struct attn_span *spans;   /* [rows] */
	float *query;              /* [rows, head_width], where keys are packed */
	float *scores;             /* [rows, stride] */
	float *maximum;            /* [rows] largest allowed score */
	double *sum;               /* [rows] of the exponentials, the sink's too */
	float *inverse; /* [rows] 1 / sum of a row; 0 for a row without keys, NaN for one with a NaN */
	float *weights; /* [rows, keys] from lo on, for the value product to write; NULL: nothing */
	float *row;     /* [keys] */
	size_t *order;  /* [keys], or NULL without a top k */
};

/* Keys that length, causal mode and window leave to a query. */
struct attn_span attn_query_span(const attn_shape *shape, const attn_options *options,
                                 const attn_sequence *sequence, size_t query);

/* Fills the spans of a panel and the keys they cover together, which may be none. */
void attn_panel_spans(struct attn_panel *panel);

/* Scores of the panel's keys: scale * Q K^T. */
void attn_panel_scores(const struct attn_panel *panel);

/* out [rows, ...] = scale * Q K^T for rows from r on and the keys keys.lo to keys.hi; stride floats lie
 * between rows of out. */
void attn_panel_product(const struct attn_panel *panel, size_t r, size_t rows, struct attn_span keys,
                        float *out, size_t stride);

/* Positions of row r's span in the panel, outwards to whole groups of lanes; none for a row without keys. */
struct attn_span attn_panel_lanes(const struct attn_panel *panel, size_t r);

/* How far the aligned diagonal lies to the right of the main one. */
int64_t attn_panel_diagonal(const struct attn_panel *panel);

/* Row r of the sequence's mask or bias, which it has, from key 0 on. */
const uint8_t *attn_panel_mask(const struct attn_panel *panel, size_t r);
const float *attn_panel_bias(const struct attn_panel *panel, size_t r);

/* Whether mask and bias leave key, one of the row's span, to row r. */
bool attn_panel_allows(const struct attn_panel *panel, size_t r, size_t key);

/* The key and value head of the panel's head. */
size_t attn_panel_kv_head(const struct attn_panel *panel);

/* Whether the panel's head counts for nothing. */
static inline bool attn_panel_is_ablated(const struct attn_panel *panel)
{
	const uint8_t *ablated = panel->call->options->ablated;
	return ablated != NULL && ablated[panel->head] != 0;
}

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
