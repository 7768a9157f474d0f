#include "codec/attention_options.h"

#include "codec/request_fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A request as its options are resolved. */
struct resolving {
	struct attention_request *request;
	const struct attention_fields *fields;
	struct problem *problem;
};

/* ---- masks by rule, and the sink */

/* One value, or one a sequence. */
static bool check_list(struct resolving *at, const char *pointer, bool is_list, size_t count, size_t wanted,
                       const char *each)
{
	if (!is_list || count == wanted)
		return true;
	return problem_set(at->problem, PROBLEM_SHAPE_MISMATCH, pointer,
	                   "the list has length %zu, one for each %s is expected: %zu", count, each, wanted);
}

/* A value for each sequence from a list of them, or of one; NULL: no memory. */
static int64_t *spread(const struct integer_list *list, bool is_list, size_t batch)
{
	int64_t *values = malloc(batch * sizeof(*values) + 1);
	for (size_t i = 0; i < batch && values != NULL; i++)
		values[i] = list->values[is_list ? i : 0];
	return values;
}

static bool resolve_causal(struct resolving *at)
{
	struct attention_request *request = at->request;
	const struct attention_fields *fields = at->fields;
	if (fields->has_causal)
		request->options.causal = fields->causal;
	if (fields->causal != ATTN_CAUSAL_OFFSET)
		return true;
	if (!check_list(at, "/causal", fields->causal_is_list, fields->causal_offsets.count, request->batch,
	                "sequence"))
		return false;
	if (request->shape.queries == 0 || attention_request_own_keys(request) == 0) {
		request->options.causal = ATTN_CAUSAL_NONE; /* nothing to mask, however many sequences */
		return true;
	}
	request->causal_offsets = spread(&fields->causal_offsets, fields->causal_is_list, request->batch);
	return request->causal_offsets != NULL || problem_set_status(at->problem, ATTN_MEMORY);
}

static bool check_key_lengths(struct resolving *at)
{
	const struct attention_fields *fields = at->fields;
	size_t keys = attention_request_own_keys(at->request);
	for (size_t i = 0; i < fields->key_lengths.count; i++) {
		char pointer[64];
		snprintf(pointer, sizeof(pointer),
		         fields->key_lengths_is_list ? "/key_lengths/%zu" : "/key_lengths", i);
		if ((uint64_t)fields->key_lengths.values[i] > keys)
			return problem_set(at->problem, PROBLEM_BAD_VALUE, pointer,
			                   "the length %" PRId64 " is over the %zu keys that there are",
			                   fields->key_lengths.values[i], keys);
	}
	return true;
}

static bool resolve_key_lengths(struct resolving *at)
{
	struct attention_request *request = at->request;
	const struct attention_fields *fields = at->fields;
	if (fields->key_lengths.values == NULL)
		return true;
	if (!check_list(at, "/key_lengths", fields->key_lengths_is_list, fields->key_lengths.count,
	                request->batch, "sequence") ||
	    !check_key_lengths(at))
		return false;
	if (attention_request_own_keys(request) == 0)
		return true; /* every length is 0, however many sequences */
	request->key_lengths = spread(&fields->key_lengths, fields->key_lengths_is_list, request->batch);
	return request->key_lengths != NULL || problem_set_status(at->problem, ATTN_MEMORY);
}

static bool resolve_sink(struct resolving *at)
{
	struct attention_request *request = at->request;
	const struct attention_fields *fields = at->fields;
	size_t heads = request->shape.heads;
	if (fields->sinks.values == NULL)
		return true;
	if (!check_list(at, "/sink", fields->sink_is_list, fields->sinks.count, heads, "head"))
		return false;
	request->sinks = malloc(heads * sizeof(*request->sinks));
	if (request->sinks == NULL)
		return problem_set_status(at->problem, ATTN_MEMORY);
	for (size_t i = 0; i < heads; i++)
		request->sinks[i] = fields->sinks.values[fields->sink_is_list ? i : 0];
	request->options.sink = request->sinks;
	return true;
}

/* ---- positions */

static bool resolve_alibi(struct resolving *at)
{
	struct attention_request *request = at->request;
	request->slopes = malloc(request->shape.heads * sizeof(*request->slopes));
	if (request->slopes == NULL)
		return problem_set_status(at->problem, ATTN_MEMORY);
	attn_alibi_slopes(request->shape.heads, request->slopes);
	request->options.slopes = request->slopes;
	return true;
}

static bool resolve_rope(struct resolving *at, attn_rotation rotation)
{
	struct attention_request *request = at->request;
	if (request->shape.head_width % 2 != 0)
		return problem_set(
		    at->problem, PROBLEM_BAD_VALUE, "/positions",
		    "rotary positions turn pairs of numbers; the heads have width %zu, which is odd",
		    request->shape.head_width);
	request->options.rotation = rotation;
	request->options.rope_theta = at->fields->rope_theta;
	return true;
}

static bool resolve_sinusoidal(struct resolving *at)
{
	if (at->request->split_heads)
		return problem_set(at->problem, PROBLEM_BAD_VALUE, "/positions",
		                   "sinusoidal positions are added to embeddings; the heads of a query of 4 "
		                   "dimensions are already split");
	at->request->options.sinusoidal = true;
	return true;
}

static bool resolve_positions(struct resolving *at)
{
	const struct attention_fields *fields = at->fields;
	struct attention_request *request = at->request;
	int64_t offset = fields->has_position_offset ? fields->position_offset : (int64_t)request->shape.past;
	if (request->model) { /* its rotation is in the options */
		request->options.position_offset = offset;
		return true;
	}
	switch (fields->positions) {
	case POSITIONS_NONE:
		return true;
	case POSITIONS_ALIBI:
		return resolve_alibi(at);
	case POSITIONS_SINUSOIDAL:
		request->options.position_offset = offset;
		return resolve_sinusoidal(at);
	case POSITIONS_ROPE:
	case POSITIONS_ROPE_INTERLEAVED:
		break;
	}
	request->options.position_offset = offset;
	return resolve_rope(at, fields->positions == POSITIONS_ROPE ? ATTN_ROTATE_HALVES : ATTN_ROTATE_PAIRS);
}

/* ---- which weights */

static bool resolve_selection(struct resolving *at)
{
	struct attention_request *request = at->request;
	const struct attention_fields *fields = at->fields;
	attn_selection *selection = &request->selection;
	size_t keys = request->shape.keys;
	if (fields->head_list.values != NULL) {
		request->head_list = request_resolve_indices(&fields->head_list, request->shape.heads,
		                                             "/weights/heads", "heads", at->problem);
		*selection =
		    (attn_selection){.heads = request->head_list, .head_count = fields->head_list.count};
		if (request->head_list == NULL)
			return false;
	}
	if (fields->query_list.values != NULL) {
		request->query_list = request_resolve_indices(&fields->query_list, request->shape.queries,
		                                              "/weights/queries", "queries", at->problem);
		selection->queries = request->query_list;
		selection->query_count = fields->query_list.count;
		if (request->query_list == NULL)
			return false;
	}
	selection->top_k = fields->top_k < keys ? fields->top_k : keys;
	if (selection->heads != NULL || selection->queries != NULL || fields->top_k > 0)
		request->options.selection = selection;
	return true;
}

/* ---- the whole */

/* What needs no look at the shape. */
static bool resolve_outputs(struct resolving *at)
{
	struct attention_request *request = at->request;
	const struct attention_fields *fields = at->fields;
	request->weights = fields->weights;
	request->projected = fields->projected;
	request->output_dtype = fields->output_dtype;
	request->precision = fields->precision;
	request->timeout_ms = fields->timeout_ms;
	memcpy(request->wants_stage, fields->stages, sizeof(request->wants_stage));
	memcpy(request->wants_statistic, fields->statistics, sizeof(request->wants_statistic));
	return !fields->has_output_dtype || request_dtype_allowed(request->reply_form, at->problem);
}

/* What was sent of the scalars takes the place of what is the model's, or the default. */
static void resolve_scalars(struct resolving *at)
{
	const struct attention_fields *fields = at->fields;
	attn_options *options = &at->request->options;
	if (fields->has_scale)
		options->scale = fields->scale;
	if (fields->softcap > 0)
		options->softcap = fields->softcap;
	if (!fields->has_window)
		return;
	options->window_left = fields->window_left;
	options->window_right = fields->window_right;
}

bool attention_options_resolve(struct attention_request *request, const struct attention_fields *fields,
                               const attn_model *model, struct problem *problem)
{
	struct resolving at = {request, fields, problem};
	request->options = model != NULL
	                       ? attn_model_options(model, request->model_layer, request->model_kind)
	                       : attn_options_default(request->shape.head_width);
	resolve_scalars(&at);
	return resolve_outputs(&at) && resolve_causal(&at) && resolve_key_lengths(&at) && resolve_sink(&at) &&
	       resolve_positions(&at) && resolve_selection(&at);
}
