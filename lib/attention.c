#include "attn.h"

#include <math.h>

#include "attention_check.h"
#include "attention_context.h"
#include "attention_outputs.h"
#include "attention_panel.h"
#include "attention_prepare.h"
#include "rounding.h"

/* A place of a selection costs a panel about as much time, a nanosecond, as so many operations of products.
 */
#define PLACE_FLOPS ((size_t)50)

attn_options attn_options_default(size_t head_width)
{
	return (attn_options){
	    .scale = (float)(1.0 / sqrt((double)head_width)),
	    .window_left = -1,
	    .window_right = -1,
	    .rope_theta = 10000,
	};
}

static attn_status panel_run(struct attn_panel *panel, attn_arena *scratch)
{
	attn_panel_spans(panel);
	if (panel->lo < panel->hi)
		attn_panel_product(panel, 0, panel->rows, (struct attn_span){panel->lo, panel->hi},
		                   panel->scores, panel->call->plan.stride);
	attn_outputs_scores(panel);
	for (size_t r = 0; r < panel->rows; r++)
		attn_panel_adjust(panel, r);
	attn_outputs_masked(panel);
	for (size_t r = 0; r < panel->rows; r++)
		attn_panel_softmax(panel, r);
	attn_outputs_weights(panel);
	return attn_panel_context(panel, scratch);
}

static attn_status unit_run(struct attn_panel *panel, size_t unit, attn_arena *scratch)
{
	const struct attn_call *call = panel->call;
	const size_t heads = call->shape->heads;
	const size_t index = unit % call->plan.panels, rest = unit / call->plan.panels;
	const size_t first_head = call->all_heads ? 0 : rest % heads;
	const size_t head_count = call->all_heads ? heads : 1;
	panel->sequence = &call->sequences[call->all_heads ? rest : rest / heads];
	panel->first = index * call->plan.rows;
	panel->rows = attn_smaller(call->shape->queries - panel->first, call->plan.rows);
	attn_status status = ATTN_OK;
	for (size_t h = 0; h < head_count && status == ATTN_OK; h++) {
		panel->head = first_head + h;
		status = panel_run(panel, scratch);
	}
	return status;
}

static attn_status attend_tile(void *arg, size_t tile, attn_arena *scratch)
{
	const struct attn_call *call = arg;
	const struct attn_plan *plan = &call->plan;
	struct attn_panel panel = {
	    .call = call,
	    .spans = attn_arena_alloc(scratch, plan->rows * sizeof(struct attn_span)),
	    .scores = attn_arena_floats(scratch, plan->rows * plan->stride),
	    .inverse = attn_arena_floats(scratch, plan->rows),
	    .row = attn_arena_floats(scratch, call->shape->keys),
	    .order = attn_arena_alloc(scratch, call->shape->keys * sizeof(size_t)),
	};
	if (panel.spans == NULL || panel.scores == NULL || panel.inverse == NULL || panel.row == NULL ||
	    panel.order == NULL)
		return ATTN_MEMORY;
	size_t first = tile * call->tile_size;
	size_t end = attn_smaller(call->units, first + call->tile_size);
	attn_status status = ATTN_OK;
	for (size_t unit = first; unit < end && status == ATTN_OK; unit++)
		status = unit_run(&panel, unit, scratch);
	return status;
}

/* What a panel spends on the lists of a selection: it goes over all heads of the list, and over all queries
 * for each that is its own. */
static size_t selection_flops(const attn_shape *shape, const attn_selection *selection)
{
	size_t places = 0, flops = 0;
	if (selection == NULL || shape->keys == 0)
		return 0;
	size_t own = selection->heads == NULL ? 1 : attn_divide_up(selection->head_count, shape->heads);
	bool counted = attn_size_mul(own, selection->query_count, &places) &&
	               attn_size_add(places, selection->head_count, &places) &&
	               attn_size_mul(places, PLACE_FLOPS, &flops);
	return counted ? flops : SIZE_MAX;
}

static attn_status call_run(struct attn_call *call, attn_executor *executor, size_t count)
{
	const attn_shape *shape = call->shape;
	for (size_t s = 0; s < count; s++)
		call->all_heads = call->all_heads || call->sequences[s].mean_weights != NULL;
	call->plan = attn_plan_make(shape);
	size_t unit_heads = call->all_heads ? shape->heads : 1;
	size_t unit_flops = SIZE_MAX;
	size_t head_flops = selection_flops(shape, call->options->selection);
	if (!attn_size_add(call->plan.flops, head_flops, &head_flops) ||
	    !attn_size_mul(head_flops, unit_heads, &unit_flops))
		unit_flops = SIZE_MAX;
	call->units = count * (shape->heads / unit_heads) * call->plan.panels;
	call->tile_size = unit_flops < ATTN_TILE_FLOPS ? ATTN_TILE_FLOPS / unit_flops : 1;
	size_t tiles = attn_divide_up(call->units, call->tile_size);
	return executor->parallel_for(executor, tiles, attend_tile, call);
}

attn_status attn_attend(const attn_kernels *kernels, attn_executor *executor, const attn_shape *shape,
                        const attn_options *options, const attn_sequence *sequences, size_t count)
{
	attn_status status = attn_call_check(shape, options, sequences, count);
	if (status != ATTN_OK || count == 0)
		return status;
	struct attn_call call = {.kernels = kernels, .shape = shape, .options = options};
	attn_arena_mark mark = attn_arena_here(executor->scratch);
	status = attn_prepare(executor, shape, options, sequences, count, &call.sequences);
	if (status == ATTN_OK && shape->queries > 0)
		status = call_run(&call, executor, count);
	attn_arena_rewind(executor->scratch, mark);
	return status;
}

size_t attn_attend_scratch_bytes(const attn_shape *shape, const attn_options *options, size_t count)
{
	size_t bytes = attn_prepare_bytes(shape, options, count);
	return attn_size_add(bytes, attn_attend_tile_bytes(shape), &bytes) ? bytes : SIZE_MAX;
}
