#include "attention_softmax.h"

#include <math.h>

#include "attention_adjust.h"
#include "attention_kernels.h"
#include "attention_outputs.h"

static bool row_has_key(const struct attn_panel *panel, size_t r)
{
	for (size_t key = panel->spans[r].lo; key < panel->spans[r].hi; key++)
		if (attn_panel_allows(panel, r, key))
			return true;
	return false;
}

static float *row_at(const struct attn_panel *panel, size_t r)
{
	return panel->scores + r * panel->call->plan.stride;
}

/* Logit that takes weight without a value; -infinity for none. */
static float sink_logit(const struct attn_panel *panel)
{
	const float *sink = panel->call->options->sink;
	return sink == NULL ? -INFINITY : sink[panel->head];
}

/* What attn_attention_kernels.softmax does, for sets that have none. */
static void rows_exp(const attn_kernels *kernels, const struct attn_softmax_panel *p)
{
	for (size_t r = 0; r < p->rows; r++) {
		float *row = p->scores + r * p->stride;
		p->maximum[r] = kernels->row_max(row, p->columns);
		const float shift = p->floor > p->maximum[r] ? p->floor : p->maximum[r];
		p->sum[r] = isinf(shift) ? 0 : kernels->row_exp(row, p->columns, shift);
	}
}

/* Rows from r on whose lanes are those of row r, at least one. */
static size_t rows_alike(const struct attn_panel *panel, size_t r)
{
	const struct attn_span lanes = attn_panel_lanes(panel, r);
	size_t end = r + 1;
	for (; end < panel->rows; end++) {
		const struct attn_span other = attn_panel_lanes(panel, end);
		if (other.lo != lanes.lo || other.hi != lanes.hi)
			break;
	}
	return end - r;
}

static void rows_softmax(const struct attn_panel *panel, size_t r, size_t rows)
{
	const struct attn_kernels *kernels = panel->call->kernels;
	const struct attn_span lanes = attn_panel_lanes(panel, r);
	const struct attn_softmax_panel part = {
	    .scores = row_at(panel, r) + lanes.lo,
	    .stride = panel->call->plan.stride,
	    .rows = rows,
	    .columns = lanes.hi - lanes.lo,
	    .floor = sink_logit(panel),
	    .maximum = panel->maximum + r,
	    .sum = panel->sum + r,
	};
	if (kernels->attention != NULL)
		kernels->attention->softmax(&part);
	else
		rows_exp(kernels, &part);
}

static void row_without_keys(struct attn_panel *panel, size_t r)
{
	attn_fill(row_at(panel, r), 0, panel->hi - panel->lo, 0);
	panel->inverse[r] = 0;
	attn_outputs_no_statistics(panel, r);
}

/* No key is left to the row. */
static void row_ablate(struct attn_panel *panel, size_t r)
{
	attn_fill(row_at(panel, r), 0, panel->hi - panel->lo, 0);
	panel->inverse[r] = 0;
	panel->spans[r] = (struct attn_span){0, 0};
}

/* The rest of row r, its exponentials made. */
static void row_finish(struct attn_panel *panel, size_t r)
{
	const struct attn_span lanes = attn_panel_lanes(panel, r);
	const bool statistics = attn_outputs_has_statistics(panel->sequence);
	const float logit = sink_logit(panel);
	float *row = row_at(panel, r);
	struct attn_row_totals totals = {.max = panel->maximum[r], .sum = panel->sum[r]};
	if (lanes.lo == lanes.hi || (totals.max == -INFINITY && !row_has_key(panel, r))) {
		row_without_keys(panel, r);
		return;
	}
	totals.shift = logit > totals.max ? logit : totals.max;
	if (isinf(totals.shift)) {
		totals.has_nan = statistics && attn_outputs_row_has_nan(panel, r);
		totals.sum = (double)NAN;
		attn_fill(row, lanes.lo, lanes.hi, NAN);
	}
	if (panel->call->options->sink != NULL)
		totals.sum += exp((double)(logit - totals.shift));
	attn_fill(row, 0, lanes.lo, 0);
	attn_fill(row, lanes.hi, panel->hi - panel->lo, 0);
	panel->inverse[r] = (float)(1.0 / totals.sum);
	if (statistics)
		attn_outputs_statistics(panel, r, &totals);
	if (attn_panel_is_ablated(panel))
		row_ablate(panel, r);
}

static void panel_softmax(struct attn_panel *panel)
{
	size_t rows = 0;
	for (size_t r = 0; r < panel->rows; r += rows) {
		rows = rows_alike(panel, r);
		rows_softmax(panel, r, rows);
	}
	for (size_t r = 0; r < panel->rows; r++)
		row_finish(panel, r);
}

void attn_panel_weigh(struct attn_panel *panel)
{
	attn_outputs_scores(panel);
	attn_panel_adjust(panel);
	attn_outputs_masked(panel);
	panel_softmax(panel);
	attn_outputs_weights(panel);
}
