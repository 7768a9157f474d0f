#include "attn.h"

#include <math.h>

#include "attention_check.h"
#include "attention_context.h"
#include "attention_few.h"
#include "attention_kernels.h"
#include "attention_panel.h"
#include "attention_prepare.h"
#include "attention_softmax.h"
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
		attn_panel_scores(panel);
	attn_panel_weigh(panel);
	return attn_panel_context(panel, scratch);
}

/* ---- units */

/* Room for the keys and values of one head; false without memory. */
static bool strips_make(const struct attn_plan *plan, attn_arena *scratch, struct attn_strips *strips)
{
	if (!plan->packs_keys)
		return true;
	strips->keys = attn_arena_floats(scratch, plan->keys_floats);
	strips->values = plan->packs_values ? attn_arena_floats(scratch, plan->values_floats) : NULL;
	return strips->keys != NULL && (strips->values != NULL || !plan->packs_values);
}

/* Keys from key_length on are padding that no row sees. */
static void keys_pack(const struct attn_call *call, const attn_sequence *sequence, size_t kv_head,
                      const struct attn_strips *strips)
{
	const attn_heads *key = &sequence->key;
	call->kernels->attention->pack_keys(strips->keys, key->data + kv_head * key->head_stride,
	                                    key->row_stride, sequence->key_length, call->shape->head_width,
	                                    call->options->scale);
}

static void values_pack(const struct attn_call *call, const attn_sequence *sequence, size_t kv_head,
                        const struct attn_strips *strips)
{
	const attn_heads *value = &sequence->value;
	call->kernels->attention->pack_values(strips->values, value->data + kv_head * value->head_stride,
	                                      value->row_stride, call->shape->keys, call->shape->value_width);
}

/* Panels [index, end) of one head. */
static attn_status head_run(struct attn_panel *panel, size_t index, size_t end, attn_arena *scratch)
{
	const struct attn_call *call = panel->call;
	attn_status status = ATTN_OK;
	for (; index < end && status == ATTN_OK; index++) {
		panel->first = index * call->plan.rows;
		panel->rows = attn_smaller(call->shape->queries - panel->first, call->plan.rows);
		status = panel_run(panel, scratch);
	}
	return status;
}

/* strips: where to pack, if the unit does. */
static attn_status unit_run(struct attn_panel *panel, size_t unit, const struct attn_strips *strips,
                            attn_arena *scratch)
{
	const struct attn_call *call = panel->call;
	const struct attn_plan *plan = &call->plan;
	const size_t group = call->shape->heads / call->shape->kv_heads;
	const size_t parts = attn_divide_up(plan->panels, plan->unit_panels);
	const size_t first = unit % plan->units / parts * plan->unit_heads;
	const size_t index = unit % parts * plan->unit_panels;
	panel->sequence = &call->sequences[unit / plan->units];
	attn_status status = ATTN_OK;
	for (size_t head = first; head < first + plan->unit_heads && status == ATTN_OK; head++) {
		panel->head = head;
		panel->strips = plan->packs_before ? call->packed[head / group] : *strips;
		if (plan->packs_keys && !plan->packs_before && (head == first || head % group == 0)) {
			keys_pack(call, panel->sequence, head / group, strips);
			if (plan->packs_values)
				values_pack(call, panel->sequence, head / group, strips);
		}
		status =
		    head_run(panel, index, attn_smaller(plan->panels, index + plan->unit_panels), scratch);
	}
	return status;
}

/* Scratch of a panel of any unit; false without memory. */
static bool panel_make(struct attn_panel *panel, attn_arena *scratch)
{
	const attn_shape *shape = panel->call->shape;
	const struct attn_plan *plan = &panel->call->plan;
	panel->spans = attn_arena_alloc(scratch, plan->rows * sizeof(struct attn_span));
	panel->query = attn_arena_floats(scratch, plan->rows * shape->head_width);
	panel->scores = attn_arena_floats(scratch, plan->rows * plan->stride);
	panel->maximum = attn_arena_floats(scratch, plan->rows);
	panel->inverse = attn_arena_floats(scratch, plan->rows);
	panel->sum = attn_arena_alloc(scratch, plan->rows * sizeof(double));
	panel->row = attn_arena_floats(scratch, shape->keys);
	panel->order = attn_arena_alloc(scratch, shape->keys * sizeof(size_t));
	return panel->spans != NULL && panel->query != NULL && panel->scores != NULL &&
	       panel->maximum != NULL && panel->inverse != NULL && panel->sum != NULL && panel->row != NULL &&
	       panel->order != NULL;
}

static attn_status attend_tile(void *arg, size_t tile, attn_arena *scratch)
{
	const struct attn_call *call = arg;
	struct attn_panel panel = {.call = call};
	struct attn_strips strips = {NULL, NULL};
	if (!panel_make(&panel, scratch) ||
	    (!call->plan.packs_before && !strips_make(&call->plan, scratch, &strips)))
		return ATTN_MEMORY;
	size_t first = tile * call->tile_size;
	size_t end = attn_smaller(call->units, first + call->tile_size);
	attn_status status = ATTN_OK;
	for (size_t unit = first; unit < end && status == ATTN_OK; unit++)
		status = unit_run(&panel, unit, &strips, scratch);
	return status;
}

/* ---- keys and values packed before units */

/* Tiles of a sequence: keys of every head, then values. */
static attn_status pack_tile(void *arg, size_t tile, attn_arena *scratch)
{
	(void)scratch;
	const struct attn_call *call = arg;
	const size_t heads = call->shape->kv_heads;
	if (tile < heads)
		keys_pack(call, call->sequences, tile, &call->packed[tile]);
	else
		values_pack(call, call->sequences, tile - heads, &call->packed[tile - heads]);
	return ATTN_OK;
}

/* One sequence after the other, so that what is packed does not grow with their number. */
static attn_status call_run_packed(struct attn_call *call, attn_executor *executor, size_t count)
{
	const size_t kv_heads = call->shape->kv_heads;
	const attn_sequence *sequences = call->sequences;
	call->packed = attn_arena_alloc(executor->scratch, kv_heads * sizeof(*call->packed));
	if (call->packed == NULL)
		return ATTN_MEMORY;
	for (size_t head = 0; head < kv_heads; head++)
		if (!strips_make(&call->plan, executor->scratch, &call->packed[head]))
			return ATTN_MEMORY;
	attn_status status = ATTN_OK;
	const size_t packs = kv_heads * (call->plan.packs_values ? 2 : 1);
	for (size_t s = 0; s < count && status == ATTN_OK; s++) {
		call->sequences = sequences + s;
		status = executor->parallel_for(executor, packs, pack_tile, call);
		if (status == ATTN_OK)
			status = executor->parallel_for(
			    executor, attn_divide_up(call->units, call->tile_size), attend_tile, call);
	}
	return status;
}

/* ---- calls */

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
	bool all_heads = false;
	for (size_t s = 0; s < count; s++)
		all_heads = all_heads || call->sequences[s].mean_weights != NULL;
	call->plan = attn_plan_make(shape, call->kernels, all_heads);
	size_t unit_flops = SIZE_MAX;
	size_t panel_flops = selection_flops(shape, call->options->selection);
	if (!attn_size_add(call->plan.flops, panel_flops, &panel_flops) ||
	    !attn_size_mul(panel_flops, call->plan.unit_heads * call->plan.unit_panels, &unit_flops))
		unit_flops = SIZE_MAX;
	const size_t together = call->plan.packs_before ? 1 : count;
	call->units = together * call->plan.units;
	call->tile_size = unit_flops < ATTN_TILE_FLOPS ? ATTN_TILE_FLOPS / unit_flops : 1;
	if (call->plan.few)
		return attn_few_run(call, executor, count);
	if (call->plan.packs_before)
		return call_run_packed(call, executor, count);
	return executor->parallel_for(executor, attn_divide_up(call->units, call->tile_size), attend_tile,
	                              call);
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
	bool counted = attn_size_add(bytes, attn_attend_tile_bytes(shape), &bytes) &&
	               attn_size_add(bytes, attn_plan_bytes(shape), &bytes) &&
	               attn_size_add(bytes, attn_few_bytes(shape, count), &bytes);
	return counted ? bytes : SIZE_MAX;
}
