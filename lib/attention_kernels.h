/*
 * attention_kernels.h - the contract of the vector kernels that a panel of attention is made of.
 *
 * Keys and values of a head are packed once into strips, strip columns side by side, and then read by every
 * panel of its rows. A strip of keys is [width, strip], so that a strip of scores grows by one row of it at a
 * time; a strip of values is [keys, strip]. Everything here is a pure function of its numbers and shape; the
 * bits of a row do not depend on the rows beside it. Sources: Goto and van de Geijn 2008 for the tiles,
 * Milakov and Gimelshein 2018 for a softmax that stays unnormalised until the product is made.
 */
#ifndef ATTN_ATTENTION_KERNELS_H
#define ATTN_ATTENTION_KERNELS_H

#include "attn.h"

/* Upper bounds over every set, for sizes that must not depend on the set. */
#define ATTN_STRIP_MAX ((size_t)32)
#define ATTN_TILE_ROWS_MAX ((size_t)14)

/* scores [rows, columns] = query [rows, width] * strips [columns / strip, width, strip]. */
struct attn_score_panel {
	const float *query;
	size_t query_stride, rows, width;
	const float *strips;
	size_t columns; /* a multiple of strip */
	float *scores;  /* 64-byte aligned, like its stride */
	size_t stride;
};

/* What a softmax leaves unnormalised: each row of scores becomes exp(score - shift), shift being the largest
 * of the row and floor. NaN counts for nothing in the largest. A row whose shift is infinite stays as it is.
 */
struct attn_softmax_panel {
	float *scores;
	size_t stride, rows, columns; /* columns: a multiple of ATTN_LANES */
	float floor;                  /* -infinity: none */
	float *maximum;               /* [rows] largest score */
	double *sum; /* [rows] of the exponentials; NaN if one is; anything for a row that stays */
};

/* context [rows, width] = inverse * (weights [rows, depth] * values [depth, width]). */
struct attn_value_panel {
	const float *weights;
	size_t stride, rows, depth;
	const float *values; /* strip s of row k lies at values + s * strip_stride + k * row_stride, whole */
	size_t strip_stride, row_stride;
	size_t width;
	const float *inverse; /* [rows] */
	float *context;
	size_t context_stride;
	float *scaled; /* [rows, depth]: inverse * weights, or NULL */
	size_t scaled_stride;
	bool scaled_streams; /* past the caches, which changes no bit */
};

/* Few queries against keys as they lie in memory: scores [rows, keys] = scale * query * keys^T. */
struct attn_dots {
	const float *query;
	size_t query_stride, rows, width;
	const float *keys;
	size_t key_stride, count;
	float scale;
	float *scores;
	size_t stride;
};

/* Few rows of weights against values as they lie: out [rows, width] = weights [rows, count] * values. */
struct attn_gather {
	const float *weights;
	size_t stride, rows;
	const float *values;
	size_t value_stride, count;
	size_t width;
	float *out; /* [rows, width] */
};

struct attn_attention_kernels {
	size_t strip;     /* columns of a strip: a multiple of ATTN_LANES, at most ATTN_STRIP_MAX */
	size_t tile_rows; /* rows that share a load of a strip; at most ATTN_TILE_ROWS_MAX */
	/* strips [count / strip rounded up, width, strip]: keys [count, width] times scale; zeros where there
	 * is no key. */
	void (*pack_keys)(float *strips, const float *keys, size_t stride, size_t count, size_t width,
	                  float scale);
	/* strips [width / strip rounded up, count, strip]; zeros where there is no column. */
	void (*pack_values)(float *strips, const float *values, size_t stride, size_t count, size_t width);
	void (*scores)(const struct attn_score_panel *panel);
	/* On a row of n scores: softcap * tanh(score / softcap), within 2e-7 * softcap; += bias, where
	 * -infinity takes the place of the score, NaN too; -= slope * |distance - j|; -infinity where mask is
	 * 0. */
	void (*cap)(float *scores, size_t n, float softcap);
	void (*add)(float *scores, size_t n, const float *bias);
	void (*slope)(float *scores, size_t n, float slope, float distance);
	void (*mask)(float *scores, size_t n, const uint8_t *mask);
	void (*softmax)(const struct attn_softmax_panel *panel);
	/* out [n] = factor * row [n] */
	void (*scale)(float *out, const float *row, size_t n, float factor);
	/* False when a number of the context is not finite though the row's inverse is. */
	bool (*context)(const struct attn_value_panel *panel);
	void (*dots)(const struct attn_dots *dots);
	void (*gather)(const struct attn_gather *gather);
};

#endif
