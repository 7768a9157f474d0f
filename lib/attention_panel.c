#include "attention_panel.h"

#include <math.h>
#include <string.h>

#include "attention_kernels.h"
#include "rounding.h"

/* Columns of scores from which on a panel's queries are worth a copy that lies together. */
#define COPY_COLUMNS ((size_t)64)

/* ---- which keys a query may see */

/* How far the aligned diagonal lies to the right of the main one. */
static int64_t diagonal_of(const attn_shape *shape, const attn_options *options,
                           const attn_sequence *sequence)
{
	switch (options->causal) {
	case ATTN_CAUSAL_TOP_LEFT:
		return 0;
	case ATTN_CAUSAL_OFFSET:
		return sequence->causal_offset;
	case ATTN_CAUSAL_NONE:
	case ATTN_CAUSAL_BOTTOM_RIGHT:
		break;
	}
	return (int64_t)shape->keys - (int64_t)shape->queries;
}

int64_t attn_panel_diagonal(const struct attn_panel *panel)
{
	return diagonal_of(panel->call->shape, panel->call->options, panel->sequence);
}

struct attn_span attn_query_span(const attn_shape *shape, const attn_options *options,
                                 const attn_sequence *sequence, size_t query)
{
	const __int128 diagonal = (__int128)query + diagonal_of(shape, options, sequence);
	__int128 lo = 0, hi = (__int128)sequence->key_length;
	if (options->causal != ATTN_CAUSAL_NONE && diagonal + 1 < hi)
		hi = diagonal + 1;
	if (options->window_left >= 0 && diagonal - options->window_left > lo)
		lo = diagonal - options->window_left;
	if (options->window_right >= 0 && diagonal + options->window_right + 1 < hi)
		hi = diagonal + options->window_right + 1;
	if (lo >= hi)
		return (struct attn_span){0, 0};
	return (struct attn_span){(size_t)lo, (size_t)hi};
}

void attn_panel_spans(struct attn_panel *panel)
{
	panel->lo = panel->call->shape->keys;
	panel->hi = 0;
	/* Without a diagonal every row sees the same. */
	const attn_options *options = panel->call->options;
	const bool alike =
	    options->causal == ATTN_CAUSAL_NONE && options->window_left < 0 && options->window_right < 0;
	for (size_t r = 0; r < panel->rows; r++) {
		struct attn_span span = alike && r > 0 ? panel->spans[0]
		                                       : attn_query_span(panel->call->shape, options,
		                                                         panel->sequence, panel->first + r);
		panel->spans[r] = span;
		if (span.lo == span.hi)
			continue;
		panel->lo = attn_smaller(panel->lo, span.lo);
		panel->hi = attn_larger(panel->hi, span.hi);
	}
	panel->lo = attn_smaller(panel->lo, panel->hi);
	if (panel->call->plan.packs_keys)
		panel->lo -= panel->lo % panel->call->kernels->attention->strip;
}

const uint8_t *attn_panel_mask(const struct attn_panel *panel, size_t r)
{
	const attn_mask *mask = &panel->sequence->mask;
	return mask->data + panel->head * mask->head_stride + (panel->first + r) * mask->query_stride;
}

const float *attn_panel_bias(const struct attn_panel *panel, size_t r)
{
	const attn_bias *bias = &panel->sequence->bias;
	return bias->data + panel->head * bias->head_stride + (panel->first + r) * bias->query_stride;
}

bool attn_panel_allows(const struct attn_panel *panel, size_t r, size_t key)
{
	const attn_sequence *sequence = panel->sequence;
	if (sequence->mask.data != NULL && attn_panel_mask(panel, r)[key * sequence->mask.key_stride] == 0)
		return false;
	return sequence->bias.data == NULL ||
	       attn_panel_bias(panel, r)[key * sequence->bias.key_stride] != -INFINITY;
}

/* ---- scores */

size_t attn_panel_kv_head(const struct attn_panel *panel)
{
	return panel->head / (panel->call->shape->heads / panel->call->shape->kv_heads);
}

void attn_panel_product(const struct attn_panel *panel, size_t r, size_t rows, struct attn_span keys,
                        float *out, size_t stride)
{
	const struct attn_call *call = panel->call;
	const attn_heads *query = &panel->sequence->query, *key = &panel->sequence->key;
	const size_t width = call->shape->head_width;
	const struct attn_gemm product = {
	    .m = rows,
	    .n = keys.hi - keys.lo,
	    .k = width,
	    .alpha = call->options->scale,
	    .a = query->data + panel->head * query->head_stride + (panel->first + r) * query->row_stride,
	    .lda = attn_leading(rows, query->row_stride, width),
	    .b = key->data + attn_panel_kv_head(panel) * key->head_stride + keys.lo * key->row_stride,
	    .ldb = attn_leading(keys.hi - keys.lo, key->row_stride, width),
	    .b_transposed = true,
	    .c = out,
	    .ldc = stride,
	};
	call->kernels->gemm(&product);
}

/* Rows that lie far apart would share few cache sets and many pages: every strip reads them. */
static void scores_packed(const struct attn_panel *panel)
{
	const struct attn_call *call = panel->call;
	const struct attn_attention_kernels *kernels = call->kernels->attention;
	const attn_heads *query = &panel->sequence->query;
	const size_t width = call->shape->head_width;
	struct attn_score_panel product = {
	    .query = query->data + panel->head * query->head_stride + panel->first * query->row_stride,
	    .query_stride = query->row_stride,
	    .rows = panel->rows,
	    .width = width,
	    .strips = panel->strips.keys + panel->lo * width,
	    .columns = attn_round_up(panel->hi - panel->lo, kernels->strip),
	    .scores = panel->scores,
	    .stride = call->plan.stride,
	};
	if (product.columns > COPY_COLUMNS) {
		for (size_t r = 0; r < panel->rows; r++)
			memcpy(panel->query + r * width, product.query + r * query->row_stride,
			       width * sizeof(float));
		product.query = panel->query;
		product.query_stride = width;
	}
	kernels->scores(&product);
}

void attn_panel_scores(const struct attn_panel *panel)
{
	if (panel->call->plan.packs_keys)
		scores_packed(panel);
	else
		attn_panel_product(panel, 0, panel->rows, (struct attn_span){panel->lo, panel->hi},
		                   panel->scores, panel->call->plan.stride);
}

struct attn_span attn_panel_lanes(const struct attn_panel *panel, size_t r)
{
	if (panel->spans[r].lo == panel->spans[r].hi)
		return (struct attn_span){0, 0};
	return (struct attn_span){
	    (panel->spans[r].lo - panel->lo) / ATTN_LANES * ATTN_LANES,
	    attn_round_up(panel->spans[r].hi - panel->lo, ATTN_LANES),
	};
}
