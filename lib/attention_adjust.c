#include "attention_adjust.h"

#include <math.h>

#include "attention_kernels.h"
#include "rounding.h"

/* Whole numbers up to here are floats. */
#define EXACT_DISTANCE 16777216.0

/* Part of a row of scores: count keys from first on. */
struct part {
	const struct attn_attention_kernels *kernels; /* NULL: plain loops */
	float *scores;
	size_t first, count;
};

void attn_scores_cap(const attn_kernels *kernels, float *scores, size_t count, float softcap)
{
	if (kernels->attention != NULL) {
		kernels->attention->cap(scores, count, softcap);
		return;
	}
	for (size_t j = 0; j < count; j++)
		scores[j] = softcap * tanhf(scores[j] / softcap);
}

/* Subtracts slope * |i' - j| (Press et al. 2022). */
static void part_slope(const struct part *part, float slope, double diagonal)
{
	const double distance = diagonal - (double)part->first;
	if (part->kernels != NULL && fabs(distance) + (double)part->count < EXACT_DISTANCE) {
		part->kernels->slope(part->scores, part->count, slope, (float)distance);
		return;
	}
	for (size_t j = 0; j < part->count; j++)
		part->scores[j] -= slope * (float)fabs(distance - (double)j);
}

/* Adds; a bias of -infinity takes the place of the score, NaN too. */
static void part_bias(const struct part *part, const float *bias, size_t stride)
{
	if (part->kernels != NULL && stride == 1) {
		part->kernels->add(part->scores, part->count, bias);
		return;
	}
	for (size_t j = 0; j < part->count; j++) {
		float add = bias[j * stride];
		part->scores[j] = add == -INFINITY ? -INFINITY : part->scores[j] + add;
	}
}

static void part_mask(const struct part *part, const uint8_t *mask, size_t stride)
{
	if (part->kernels != NULL && stride == 1) {
		part->kernels->mask(part->scores, part->count, mask);
		return;
	}
	for (size_t j = 0; j < part->count; j++)
		part->scores[j] = mask[j * stride] != 0 ? part->scores[j] : -INFINITY;
}

/* Keys of the part below limit. */
static size_t keys_below(const struct part *part, __int128 limit)
{
	const __int128 below = limit - (__int128)part->first;
	return below <= 0 ? 0 : (size_t)(below < (__int128)part->count ? below : (__int128)part->count);
}

/* Adds what a head has learned of the distances j - i' (Shaw et al. 2018; Raffel et al. 2020); those beyond
 * reach share the ends of the table [2 * reach + 1]. */
static void part_relative(const struct part *part, const float *table, size_t reach, __int128 diagonal)
{
	const size_t near = keys_below(part, diagonal - (__int128)reach);
	const size_t far = keys_below(part, diagonal + (__int128)reach + 1);
	const struct part left = {part->kernels, part->scores, part->first, near};
	const struct part middle = {part->kernels, part->scores + near, part->first + near, far - near};
	const struct part right = {part->kernels, part->scores + far, part->first + far, part->count - far};
	const __int128 at = (__int128)middle.first - diagonal + (__int128)reach;
	part_bias(&left, table, 0);
	part_bias(&middle, middle.count == 0 ? table : table + at, 1);
	part_bias(&right, table + 2 * reach, 0);
}

static void row_adjust(const struct attn_panel *panel, size_t r)
{
	const struct attn_call *call = panel->call;
	const attn_options *options = call->options;
	const attn_sequence *sequence = panel->sequence;
	const struct attn_span span = panel->spans[r];
	float *row = panel->scores + r * call->plan.stride;
	const struct part part = {call->kernels->attention, row + (span.lo - panel->lo), span.lo,
	                          span.hi - span.lo};
	const __int128 diagonal = (__int128)(panel->first + r) + attn_panel_diagonal(panel);
	if (options->softcap > 0)
		attn_scores_cap(call->kernels, part.scores, part.count, options->softcap);
	if (sequence->bias.data != NULL) {
		const size_t stride = sequence->bias.key_stride;
		part_bias(&part, attn_panel_bias(panel, r) + span.lo * stride, stride);
	}
	if (options->slopes != NULL)
		part_slope(&part, options->slopes[panel->head], (double)diagonal);
	if (options->relative != NULL)
		part_relative(&part, options->relative + panel->head * (2 * options->relative_reach + 1),
		              options->relative_reach, diagonal);
	if (sequence->mask.data != NULL) {
		const size_t stride = sequence->mask.key_stride;
		part_mask(&part, attn_panel_mask(panel, r) + span.lo * stride, stride);
	}
}

static bool anything_to_do(const struct attn_panel *panel)
{
	const attn_options *options = panel->call->options;
	return options->softcap > 0 || options->slopes != NULL || options->relative != NULL ||
	       panel->sequence->bias.data != NULL || panel->sequence->mask.data != NULL;
}

void attn_panel_adjust(const struct attn_panel *panel)
{
	const bool anything = anything_to_do(panel);
	for (size_t r = 0; r < panel->rows; r++) {
		const struct attn_span span = panel->spans[r], lanes = attn_panel_lanes(panel, r);
		float *row = panel->scores + r * panel->call->plan.stride;
		if (span.lo == span.hi)
			continue;
		if (anything)
			row_adjust(panel, r);
		attn_fill(row, lanes.lo, span.lo - panel->lo, -INFINITY);
		attn_fill(row, span.hi - panel->lo, lanes.hi, -INFINITY);
	}
}
