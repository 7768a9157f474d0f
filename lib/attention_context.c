#include "attention_context.h"

#include <math.h>
#include <string.h>

#include "attention_few.h"
#include "attention_kernels.h"

static float *context_row(const struct attn_panel *panel, size_t r)
{
	const attn_sequence *sequence = panel->sequence;
	return sequence->context + panel->head * sequence->context_head_stride +
	       (panel->first + r) * sequence->context_row_stride;
}

static const float *value_row(const struct attn_panel *panel, size_t key)
{
	const attn_heads *value = &panel->sequence->value;
	return value->data + attn_panel_kv_head(panel) * value->head_stride + key * value->row_stride;
}

/* Multiplies row by factor; false when a number is not finite then. */
static bool row_scale(float *row, size_t count, float factor)
{
	float probe[ATTN_LANES] = {0}; /* zeros while all numbers are finite */
	bool finite = true;
	size_t i = 0;
	for (; i + ATTN_LANES <= count; i += ATTN_LANES) {
		for (size_t lane = 0; lane < ATTN_LANES; lane++) {
			row[i + lane] *= factor;
			probe[lane] += row[i + lane] * 0.0f;
		}
	}
	for (; i < count; i++) {
		row[i] *= factor;
		probe[0] += row[i] * 0.0f;
	}
	for (size_t lane = 0; lane < ATTN_LANES; lane++)
		finite = finite && probe[lane] == 0.0f;
	return finite;
}

/* Context of the panel's rows from values [hi - lo, value_width]. False when a row came out not finite that
 * has no NaN among its own weights. */
static bool context_gemm(const struct attn_panel *panel, const float *values, size_t stride)
{
	const struct attn_call *call = panel->call;
	const size_t width = call->shape->value_width, keys = panel->hi - panel->lo;
	const struct attn_gemm product = {
	    .m = panel->rows,
	    .n = width,
	    .k = keys,
	    .alpha = 1,
	    .a = panel->scores,
	    .lda = call->plan.stride,
	    .b = values,
	    .ldb = attn_leading(keys, stride, width),
	    .c = context_row(panel, 0),
	    .ldc = attn_leading(panel->rows, panel->sequence->context_row_stride, width),
	};
	call->kernels->gemm(&product);
	bool finite = true;
	for (size_t r = 0; r < panel->rows; r++) {
		bool row_finite = row_scale(context_row(panel, r), width, panel->inverse[r]);
		finite = finite && (row_finite || isnan(panel->inverse[r]));
	}
	return finite;
}

/* Whether all rows are finite, save those with a NaN among their weights. */
static bool rows_finite(const struct attn_panel *panel)
{
	bool finite = true;
	for (size_t r = 0; r < panel->rows; r++)
		for (size_t d = 0; d < panel->call->shape->value_width && !isnan(panel->inverse[r]); d++)
			finite = finite && isfinite(context_row(panel, r)[d]);
	return finite;
}

static bool context_kernel(const struct attn_panel *panel, const float *values, size_t strip_stride,
                           size_t row_stride)
{
	const struct attn_call *call = panel->call;
	const size_t width = call->shape->value_width;
	const struct attn_value_panel product = {
	    .weights = panel->scores,
	    .stride = call->plan.stride,
	    .rows = panel->rows,
	    .depth = panel->hi - panel->lo,
	    .values = values,
	    .strip_stride = strip_stride,
	    .row_stride = row_stride,
	    .width = width,
	    .inverse = panel->inverse,
	    .context = context_row(panel, 0),
	    .context_stride = attn_leading(panel->rows, panel->sequence->context_row_stride, width),
	    .scaled = panel->weights,
	    .scaled_stride = call->shape->keys,
	    .scaled_streams = call->plan.streams,
	};
	return call->kernels->attention->context(&product) || rows_finite(panel);
}

/* From sums of segments [segments, ..., value_width], stride floats apart. */
static bool context_sums(const struct attn_panel *panel, const float *sums, size_t stride, size_t segments)
{
	const size_t width = panel->call->shape->value_width;
	for (size_t r = 0; r < panel->rows; r++) {
		float *out = context_row(panel, r);
		memcpy(out, sums + r * width, width * sizeof(float));
		for (size_t s = 1; s < segments; s++)
			for (size_t d = 0; d < width; d++)
				out[d] += sums[s * stride + r * width + d];
		for (size_t d = 0; d < width; d++)
			out[d] *= panel->inverse[r];
	}
	return rows_finite(panel);
}

/* From the values of the sequence. */
static bool context_product(const struct attn_panel *panel)
{
	const attn_heads *value = &panel->sequence->value;
	const float *values = value_row(panel, panel->lo);
	if (!panel->call->plan.packs_keys)
		return context_gemm(panel, values, value->row_stride);
	const size_t strip = panel->call->kernels->attention->strip;
	if (panel->strips.values == NULL)
		return context_kernel(panel, values, strip, value->row_stride);
	return context_kernel(panel, panel->strips.values + panel->lo * strip,
	                      panel->call->shape->keys * strip, strip);
}

static attn_status context_few(const struct attn_panel *panel, const float *values, attn_arena *scratch)
{
	const size_t width = panel->call->shape->value_width, floats = panel->rows * width;
	const size_t segments = attn_few_segments(panel->call->shape);
	float *sums = attn_arena_floats(scratch, segments * floats);
	if (sums == NULL)
		return ATTN_MEMORY;
	attn_few_sums(panel, values, width, sums);
	context_sums(panel, sums, floats, segments);
	return ATTN_OK;
}

/* From a copy of them; its bits are those it would have had from them. */
static attn_status context_product_of(const struct attn_panel *panel, const float *values,
                                      attn_arena *scratch)
{
	const struct attn_call *call = panel->call;
	const size_t width = call->shape->value_width, keys = panel->hi - panel->lo;
	if (call->plan.few)
		return context_few(panel, values, scratch);
	if (!call->plan.packs_keys) {
		context_gemm(panel, values, width);
		return ATTN_OK;
	}
	float *strips = attn_arena_floats(scratch, call->plan.values_floats);
	if (strips == NULL)
		return ATTN_MEMORY;
	const size_t strip = call->kernels->attention->strip;
	call->kernels->attention->pack_values(strips, values, width, keys, width);
	context_kernel(panel, strips, keys * strip, strip);
	return ATTN_OK;
}

/* ---- values that are not finite */

/* Context of row r by plain loops over the keys that are allowed, whatever their weight. */
static void row_context_plain(const struct attn_panel *panel, size_t r)
{
	enum { BLOCK = 64 };
	const float *row = panel->scores + r * panel->call->plan.stride;
	const size_t width = panel->call->shape->value_width;
	const double inverse = (double)panel->inverse[r];
	float *out = context_row(panel, r);
	for (size_t first = 0; first < width; first += BLOCK) {
		size_t count = width - first < BLOCK ? width - first : BLOCK;
		double sum[BLOCK] = {0};
		for (size_t key = panel->spans[r].lo; key < panel->spans[r].hi; key++) {
			if (!attn_panel_allows(panel, r, key))
				continue;
			double weight = (double)row[key - panel->lo] * inverse;
			const float *value = value_row(panel, key) + first;
			for (size_t d = 0; d < count; d++)
				sum[d] += weight * (double)value[d];
		}
		for (size_t d = 0; d < count; d++)
			out[first + d] = (float)sum[d];
	}
}

static bool row_needs_plain(const struct attn_panel *panel, size_t r, const uint8_t *odd)
{
	if (isnan(panel->inverse[r]))
		return false;
	const float *row = context_row(panel, r);
	for (size_t d = 0; d < panel->call->shape->value_width; d++)
		if (!isfinite(row[d]))
			return true;
	for (size_t key = panel->spans[r].lo; key < panel->spans[r].hi; key++)
		if (odd[key - panel->lo] && attn_panel_allows(panel, r, key))
			return true;
	return false;
}

/* Computes the context again from a copy of the values with zeros where they are not finite, so that excluded
 * ones change nothing; rows that are allowed such a value, or overflow, go through plain loops. */
static attn_status context_odd(const struct attn_panel *panel, attn_arena *scratch)
{
	const size_t width = panel->call->shape->value_width, keys = panel->hi - panel->lo;
	float *values = attn_arena_floats(scratch, keys * width);
	uint8_t *odd = attn_arena_alloc(scratch, keys);
	if (values == NULL || odd == NULL)
		return ATTN_MEMORY;
	for (size_t j = 0; j < keys; j++) {
		const float *value = value_row(panel, panel->lo + j);
		odd[j] = 0;
		for (size_t d = 0; d < width; d++) {
			bool finite = isfinite(value[d]);
			odd[j] |= !finite;
			values[j * width + d] = finite ? value[d] : 0;
		}
	}
	if (context_product_of(panel, values, scratch) != ATTN_OK)
		return ATTN_MEMORY;
	for (size_t r = 0; r < panel->rows; r++)
		if (row_needs_plain(panel, r, odd))
			row_context_plain(panel, r);
	return ATTN_OK;
}

static attn_status context_again(const struct attn_panel *panel, attn_arena *scratch)
{
	attn_arena_mark mark = attn_arena_here(scratch);
	attn_status status = context_odd(panel, scratch);
	attn_arena_rewind(scratch, mark);
	return status;
}

static void context_none(const struct attn_panel *panel)
{
	for (size_t r = 0; r < panel->rows; r++)
		attn_fill(context_row(panel, r), 0, panel->call->shape->value_width, 0);
}

attn_status attn_panel_context(const struct attn_panel *panel, attn_arena *scratch)
{
	if (panel->lo == panel->hi) { /* no row has a key */
		context_none(panel);
		return ATTN_OK;
	}
	return context_product(panel) ? ATTN_OK : context_again(panel, scratch);
}

attn_status attn_panel_context_sums(const struct attn_panel *panel, const float *sums, size_t stride,
                                    size_t segments, attn_arena *scratch)
{
	return context_sums(panel, sums, stride, segments) ? ATTN_OK : context_again(panel, scratch);
}
