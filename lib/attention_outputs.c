#include "attention_outputs.h"

#include <math.h>
#include <string.h>

#include "attention_adjust.h"
#include "attention_kernels.h"
#include "top_keys.h"

/* ---- places of the selection */

/* Writes what a sequence wants of count rows from r on to the places of [H', Lq'] from slot on. */
typedef void write_fn(const struct attn_panel *panel, size_t r, size_t count, size_t slot);

static const attn_selection EVERYTHING = {.heads = NULL};

static const attn_selection *selection_of(const struct attn_panel *panel)
{
	const attn_selection *selection = panel->call->options->selection;
	return selection != NULL ? selection : &EVERYTHING;
}

/* Calls write for the places of one head that show rows of the panel. */
static void head_slots(const struct attn_panel *panel, size_t place, write_fn *write)
{
	const attn_selection *selection = selection_of(panel);
	if (selection->queries == NULL) {
		write(panel, 0, panel->rows, place * panel->call->shape->queries + panel->first);
		return;
	}
	for (size_t q = 0; q < selection->query_count; q++) {
		size_t query = selection->queries[q];
		if (query >= panel->first && query - panel->first < panel->rows)
			write(panel, query - panel->first, 1, place * selection->query_count + q);
	}
}

static void each_slot(const struct attn_panel *panel, write_fn *write)
{
	const attn_selection *selection = selection_of(panel);
	if (panel->call->shape->keys == 0)
		return; /* however many places there are, they are empty */
	if (selection->heads == NULL) {
		head_slots(panel, panel->head, write);
		return;
	}
	for (size_t h = 0; h < selection->head_count; h++)
		if (selection->heads[h] == panel->head)
			head_slots(panel, h, write);
}

/* ---- stages of the scores */

/* The panel has the scores of its own keys; those of the others are made here. */
static void write_scores(const struct attn_panel *panel, size_t r, size_t count, size_t slot)
{
	const attn_sequence *sequence = panel->sequence;
	const size_t keys = panel->call->shape->keys, stride = panel->call->plan.stride;
	const float softcap = panel->call->options->softcap;
	float *out = (sequence->scores != NULL ? sequence->scores : sequence->capped) + slot * keys;
	if (panel->lo > 0)
		attn_panel_product(panel, r, count, (struct attn_span){0, panel->lo}, out, keys);
	if (panel->hi < keys)
		attn_panel_product(panel, r, count, (struct attn_span){panel->hi, keys}, out + panel->hi,
		                   keys);
	for (size_t i = 0; i < count; i++)
		memcpy(out + i * keys + panel->lo, panel->scores + (r + i) * stride,
		       (panel->hi - panel->lo) * sizeof(float));
	if (sequence->capped == NULL)
		return;
	float *capped = sequence->capped + slot * keys;
	if (capped != out)
		memcpy(capped, out, count * keys * sizeof(float));
	if (softcap > 0)
		attn_scores_cap(panel->call->kernels, capped, count * keys, softcap);
}

void attn_outputs_scores(const struct attn_panel *panel)
{
	const attn_sequence *sequence = panel->sequence;
	if (sequence->scores != NULL || sequence->capped != NULL)
		each_slot(panel, write_scores);
}

static void write_masked(const struct attn_panel *panel, size_t r, size_t count, size_t slot)
{
	const size_t keys = panel->call->shape->keys;
	for (size_t i = 0; i < count; i++) {
		const struct attn_span span = panel->spans[r + i];
		const float *row = panel->scores + (r + i) * panel->call->plan.stride;
		float *out = panel->sequence->masked + (slot + i) * keys;
		attn_fill(out, 0, span.lo, -INFINITY);
		for (size_t key = span.lo; key < span.hi; key++)
			out[key] = row[key - panel->lo];
		attn_fill(out, span.hi, keys, -INFINITY);
	}
}

void attn_outputs_masked(const struct attn_panel *panel)
{
	if (panel->sequence->masked != NULL)
		each_slot(panel, write_masked);
}

/* ---- statistics */

static void write_statistic(const struct attn_panel *panel, size_t r, float *out, double value)
{
	if (out != NULL)
		out[panel->head * panel->call->shape->queries + panel->first + r] = (float)value;
}

bool attn_outputs_row_has_nan(const struct attn_panel *panel, size_t r)
{
	const float *row = panel->scores + r * panel->call->plan.stride;
	bool found = false;
	for (size_t key = panel->spans[r].lo; key < panel->spans[r].hi; key++)
		found = found || isnan(row[key - panel->lo]);
	return found;
}

/* - sum of w log w over the keys of row r, in nats; 0 log 0 is 0. */
static double row_entropy(const struct attn_panel *panel, size_t r, double sum)
{
	const float *row = panel->scores + r * panel->call->plan.stride;
	double entropy = 0;
	for (size_t key = panel->spans[r].lo; key < panel->spans[r].hi; key++) {
		double weight = (double)row[key - panel->lo] / sum;
		if (weight != 0)
			entropy -= weight * log(weight);
	}
	return entropy;
}

void attn_outputs_statistics(const struct attn_panel *panel, size_t r, const struct attn_row_totals *totals)
{
	const attn_sequence *sequence = panel->sequence;
	const double max = (double)totals->max, shift = (double)totals->shift;
	/* Infinity less infinity is NaN too: then only a look at the scores could tell. */
	const bool has_nan = isinf(shift) ? totals->has_nan : isnan(totals->sum);
	write_statistic(panel, r, sequence->maximum, has_nan ? NAN : max);
	double logsumexp = isinf(shift) ? shift : shift + log(totals->sum);
	write_statistic(panel, r, sequence->logsumexp, has_nan ? NAN : logsumexp);
	if (sequence->entropy != NULL)
		write_statistic(panel, r, sequence->entropy, row_entropy(panel, r, totals->sum));
}

void attn_outputs_no_statistics(const struct attn_panel *panel, size_t r)
{
	write_statistic(panel, r, panel->sequence->maximum, -INFINITY);
	write_statistic(panel, r, panel->sequence->logsumexp, -INFINITY);
	write_statistic(panel, r, panel->sequence->entropy, 0);
}

/* ---- weights */

/* Weights of row r over the keys of the panel. */
static void row_weights_seen(const struct attn_panel *panel, size_t r, float *out)
{
	const struct attn_attention_kernels *kernels = panel->call->kernels->attention;
	const struct attn_span span = panel->spans[r];
	const float *row = panel->scores + r * panel->call->plan.stride + (span.lo - panel->lo);
	const float inverse = panel->inverse[r];
	for (size_t key = span.lo; isnan(inverse) && key < span.hi; key++)
		out[key] = attn_panel_allows(panel, r, key) ? inverse : 0;
	if (isnan(inverse) || span.lo == span.hi)
		return;
	if (kernels != NULL)
		kernels->scale(out + span.lo, row, span.hi - span.lo, inverse);
	else
		for (size_t key = span.lo; key < span.hi; key++)
			out[key] = row[key - span.lo] * inverse;
}

/* Weights of row r over all keys. */
static void row_weights(const struct attn_panel *panel, size_t r, float *out)
{
	const struct attn_span span = panel->spans[r];
	attn_fill(out, 0, span.lo, 0);
	row_weights_seen(panel, r, out);
	attn_fill(out, span.hi, panel->call->shape->keys, 0);
}

static void write_top(const struct attn_panel *panel, const float *weights, size_t slot)
{
	const attn_sequence *sequence = panel->sequence;
	const size_t keys = panel->call->shape->keys, count = selection_of(panel)->top_k;
	attn_top_keys(weights, keys, count, panel->order);
	for (size_t i = 0; i < count; i++) {
		size_t key = panel->order[i];
		if (sequence->top_indices != NULL)
			sequence->top_indices[slot * count + i] = (int64_t)key;
		if (sequence->top_values != NULL)
			sequence->top_values[slot * count + i] = weights[key];
	}
}

static void write_weights(const struct attn_panel *panel, size_t r, size_t count, size_t slot)
{
	const attn_sequence *sequence = panel->sequence;
	const size_t keys = panel->call->shape->keys;
	const bool top = sequence->top_indices != NULL || sequence->top_values != NULL;
	for (size_t i = 0; i < count; i++) {
		float *weights =
		    sequence->weights != NULL ? sequence->weights + (slot + i) * keys : panel->row;
		row_weights(panel, r + i, weights);
		if (top)
			write_top(panel, weights, slot + i);
	}
}

/* One head's weights into the mean over heads, heads coming in their order. */
static void row_mean(const struct attn_panel *panel, const float *weights, float *mean)
{
	const size_t keys = panel->call->shape->keys, heads = panel->call->shape->heads;
	const float share = 1.0f / (float)heads;
	if (panel->head == 0)
		attn_fill(mean, 0, keys, 0);
	for (size_t key = 0; key < keys; key++)
		mean[key] += weights[key];
	for (size_t key = 0; panel->head + 1 == heads && key < keys; key++)
		mean[key] *= share;
}

/* Whether the value product can write the weights of all rows on its way. */
static bool weights_go_along(const struct attn_panel *panel)
{
	const attn_sequence *sequence = panel->sequence;
	const attn_selection *selection = selection_of(panel);
	bool go = panel->call->plan.packs_keys && sequence->weights != NULL && panel->lo < panel->hi &&
	          sequence->top_indices == NULL && sequence->top_values == NULL && selection->heads == NULL &&
	          selection->queries == NULL;
	for (size_t r = 0; go && r < panel->rows; r++)
		go = !isnan(panel->inverse[r]);
	return go;
}

/* Leaves the keys of the panel to the value product. */
static void weights_send_along(struct attn_panel *panel)
{
	const size_t keys = panel->call->shape->keys;
	float *weights =
	    panel->sequence->weights + (panel->head * panel->call->shape->queries + panel->first) * keys;
	for (size_t r = 0; r < panel->rows; r++) {
		attn_fill(weights + r * keys, 0, panel->lo, 0);
		attn_fill(weights + r * keys, panel->hi, keys, 0);
	}
	panel->weights = weights + panel->lo;
}

void attn_outputs_weights(struct attn_panel *panel)
{
	const attn_sequence *sequence = panel->sequence;
	const size_t keys = panel->call->shape->keys;
	panel->weights = NULL;
	if (weights_go_along(panel))
		weights_send_along(panel);
	else if (sequence->weights != NULL || sequence->top_indices != NULL || sequence->top_values != NULL)
		each_slot(panel, write_weights);
	for (size_t r = 0; sequence->mean_weights != NULL && r < panel->rows; r++) {
		row_weights(panel, r, panel->row);
		row_mean(panel, panel->row, sequence->mean_weights + (panel->first + r) * keys);
	}
}
