#include "codec/attention_meaning.h"

#include "codec/attention_options.h"
#include "codec/attention_past.h"

#include <stdio.h>
#include <stdlib.h>

enum { QUERY, KEY, VALUE, OUTPUT };

static const char *const names[] = {"query", "key", "value", "output"};

/* A request as it is resolved. inputs[] are query, key and value with the defaults in place. */
struct meaning {
	struct attention_request *request;
	struct attention_fields *fields;
	const attn_model *model;
	struct problem *problem;
	const struct tensor *inputs[3];
	const char *pointers[3]; /* of the inputs as sent; where one defaults, its own */
};

static size_t width_of(const struct tensor *tensor)
{
	return tensor->dims[tensor->rank - 1];
}

static size_t length_of(const struct tensor *tensor)
{
	return tensor->dims[tensor->rank - 2];
}

/* ---- the inputs: ranks, batches, lengths */

static bool check_rank(struct meaning *meaning, int input)
{
	size_t rank = meaning->inputs[input]->rank, most = meaning->model != NULL ? 3 : 4;
	if (rank < 2 || rank > most)
		return problem_set(meaning->problem, PROBLEM_SHAPE_MISMATCH, meaning->pointers[input],
		                   "%s has %zu dimension(s), 2 to %zu are expected", names[input], rank,
		                   most);
	if (rank != meaning->inputs[QUERY]->rank)
		return problem_set(meaning->problem, PROBLEM_SHAPE_MISMATCH, meaning->pointers[input],
		                   "%s has %zu dimensions where query has %zu", names[input], rank,
		                   meaning->inputs[QUERY]->rank);
	if (width_of(meaning->inputs[input]) == 0)
		return problem_set(meaning->problem, PROBLEM_ZERO_WIDTH, meaning->pointers[input],
		                   "%s has width 0", names[input]);
	if (rank > 2 && meaning->inputs[input]->dims[0] != meaning->inputs[QUERY]->dims[0])
		return problem_set(meaning->problem, PROBLEM_SHAPE_MISMATCH, meaning->pointers[input],
		                   "%s has a batch of %zu where query has %zu", names[input],
		                   meaning->inputs[input]->dims[0], meaning->inputs[QUERY]->dims[0]);
	return true;
}

static bool resolve_inputs(struct meaning *meaning)
{
	struct attention_request *request = meaning->request;
	if (request->query.data == NULL)
		return problem_set(meaning->problem, PROBLEM_MISSING_FIELD, "/query",
		                   "`query` (or `embeddings`) is required");
	meaning->inputs[QUERY] = &request->query;
	meaning->inputs[KEY] = request->key.data != NULL ? &request->key : &request->query;
	meaning->inputs[VALUE] = request->value.data != NULL ? &request->value : meaning->inputs[KEY];
	for (int input = QUERY; input <= VALUE; input++) {
		if (!check_rank(meaning, input))
			return false;
	}
	size_t keys = length_of(meaning->inputs[KEY]), values = length_of(meaning->inputs[VALUE]);
	if (keys != values)
		return problem_set(meaning->problem, PROBLEM_SHAPE_MISMATCH, "/value",
		                   "value has length %zu where key has %zu", values, keys);
	request->batch = request->query.rank == 2 ? 1 : request->query.dims[0];
	request->shape.queries = length_of(&request->query);
	request->shape.keys = keys;
	return true;
}

/* ---- heads already split */

static bool resolve_split(struct meaning *meaning)
{
	struct attention_request *request = meaning->request;
	const size_t *query = meaning->inputs[QUERY]->dims, *key = meaning->inputs[KEY]->dims;
	const size_t *value = meaning->inputs[VALUE]->dims;
	for (int i = 0; i < 8; i++) {
		if (request->projections[i].data != NULL)
			return problem_set(
			    meaning->problem, PROBLEM_SHAPE_MISMATCH, "/projections",
			    "the heads of a query of 4 dimensions are already split: no projections");
	}
	for (int input = QUERY; input <= KEY; input++) {
		if (meaning->inputs[input]->dims[1] == 0)
			return problem_set(meaning->problem, PROBLEM_ZERO_WIDTH, meaning->pointers[input],
			                   "%s has no heads", names[input]);
	}
	if (query[3] != key[3])
		return problem_set(meaning->problem, PROBLEM_SHAPE_MISMATCH, meaning->pointers[KEY],
		                   "key has head width %zu where query has %zu", key[3], query[3]);
	if (value[1] != key[1])
		return problem_set(meaning->problem, PROBLEM_SHAPE_MISMATCH, meaning->pointers[VALUE],
		                   "value has %zu heads where key has %zu", value[1], key[1]);
	if (meaning->fields->heads != 0 && meaning->fields->heads != query[1])
		return problem_set(meaning->problem, PROBLEM_HEADS, "/heads",
		                   "query has %zu heads, `heads` says %zu", query[1], meaning->fields->heads);
	if (meaning->fields->kv_heads != 0 && meaning->fields->kv_heads != key[1])
		return problem_set(meaning->problem, PROBLEM_HEADS, "/kv_heads",
		                   "key has %zu heads, `kv_heads` says %zu", key[1],
		                   meaning->fields->kv_heads);
	if (query[1] % key[1] != 0)
		return problem_set(meaning->problem, PROBLEM_HEADS, meaning->pointers[KEY],
		                   "%zu heads of key do not divide %zu heads of query", key[1], query[1]);
	request->split_heads = true;
	request->shape.heads = query[1];
	request->shape.kv_heads = key[1];
	request->shape.head_width = query[3];
	request->shape.value_width = value[3];
	return true;
}

/* ---- heads to be split, with or without projections */

static const char *const projection_pointers[] = {
    "/projections/query",      "/projections/key",      "/projections/value",      "/projections/output",
    "/projections/query_bias", "/projections/key_bias", "/projections/value_bias", "/projections/output_bias",
};

/* One affine map from `in` columns; the identity where no matrix was sent. */
static bool resolve_linear(struct meaning *meaning, int which, size_t in, attn_linear *out)
{
	const struct tensor *matrix = &meaning->request->projections[which];
	const struct tensor *bias = &meaning->request->projections[which + 4];
	const char *pointer = projection_pointers[which];
	attn_layout layout = meaning->fields->layout;
	*out = (attn_linear){.in = in, .out = in, .stride = in, .layout = layout};
	if (matrix->data == NULL) {
		if (bias->data == NULL)
			return true;
		return problem_set(meaning->problem, PROBLEM_MISSING_FIELD, pointer,
		                   "`%s_bias` has no matrix `%s` beside it", names[which], names[which]);
	}
	if (matrix->rank != 2)
		return problem_set(meaning->problem, PROBLEM_SHAPE_MISMATCH, pointer,
		                   "a projection has 2 dimensions, this has %zu", matrix->rank);
	if (matrix->dims[0] == 0 || matrix->dims[1] == 0)
		return problem_set(meaning->problem, PROBLEM_ZERO_WIDTH, pointer,
		                   "the projection has width 0");
	size_t takes = matrix->dims[layout == ATTN_IN_OUT ? 0 : 1];
	if (takes != in)
		return problem_set(meaning->problem, PROBLEM_SHAPE_MISMATCH, pointer,
		                   "the projection [%zu, %zu] (%s) takes width %zu, what it gets has %zu",
		                   matrix->dims[0], matrix->dims[1],
		                   layout == ATTN_IN_OUT ? "in_out" : "out_in", takes, in);
	out->out = matrix->dims[layout == ATTN_IN_OUT ? 1 : 0];
	out->stride = matrix->dims[1];
	out->weight = matrix->data;
	out->bias = bias->data;
	if (bias->data != NULL && (bias->rank != 1 || bias->dims[0] != out->out))
		return problem_set(meaning->problem, PROBLEM_SHAPE_MISMATCH, projection_pointers[which + 4],
		                   "the bias must have shape [%zu]", out->out);
	return true;
}

/* The place to name when a projected input has a wrong width. */
static const char *width_pointer(const struct meaning *meaning, int input)
{
	return meaning->request->projections[input].data != NULL ? projection_pointers[input]
	                                                         : meaning->pointers[input];
}

static bool resolve_heads(struct meaning *meaning, attn_layer *layer)
{
	const struct attention_fields *fields = meaning->fields;
	layer->heads = fields->heads != 0 ? fields->heads : 1;
	layer->kv_heads = fields->kv_heads != 0 ? fields->kv_heads : layer->heads;
	if (layer->query.out % layer->heads != 0)
		return problem_set(meaning->problem, PROBLEM_HEADS, "/heads",
		                   "%zu heads do not divide the width %zu", layer->heads, layer->query.out);
	if (layer->heads % layer->kv_heads != 0)
		return problem_set(meaning->problem, PROBLEM_HEADS, "/kv_heads",
		                   "%zu kv_heads do not divide %zu heads", layer->kv_heads, layer->heads);
	layer->head_width = layer->query.out / layer->heads;
	if (layer->key.out != layer->kv_heads * layer->head_width)
		return problem_set(meaning->problem, PROBLEM_SHAPE_MISMATCH, width_pointer(meaning, KEY),
		                   "keys have width %zu, %zu heads of width %zu make %zu", layer->key.out,
		                   layer->kv_heads, layer->head_width, layer->kv_heads * layer->head_width);
	if (layer->value.out % layer->kv_heads != 0)
		return problem_set(
		    meaning->problem, PROBLEM_HEADS, fields->kv_heads != 0 ? "/kv_heads" : "/heads",
		    "%zu heads do not divide the width %zu of values", layer->kv_heads, layer->value.out);
	layer->value_width = layer->value.out / layer->kv_heads;
	return true;
}

static bool resolve_projected(struct meaning *meaning)
{
	attn_layer *layer = &meaning->request->layer;
	size_t joined;
	if (!(resolve_linear(meaning, QUERY, width_of(meaning->inputs[QUERY]), &layer->query) &&
	      resolve_linear(meaning, KEY, width_of(meaning->inputs[KEY]), &layer->key) &&
	      resolve_linear(meaning, VALUE, width_of(meaning->inputs[VALUE]), &layer->value) &&
	      resolve_heads(meaning, layer)))
		return false;
	if (!attn_size_mul(layer->heads, layer->value_width, &joined))
		return problem_set(meaning->problem, PROBLEM_SHAPE_OVERFLOW, meaning->pointers[VALUE],
		                   "%zu heads of width %zu overflow", layer->heads, layer->value_width);
	return resolve_linear(meaning, OUTPUT, joined, &layer->output);
}

/* ---- a layer of a model */

static bool resolve_model(struct meaning *meaning)
{
	struct attention_request *request = meaning->request;
	const struct attention_fields *fields = meaning->fields;
	const attn_model_info info = attn_model_info_of(meaning->model);
	const size_t layers = fields->kind == ATTN_CROSS ? info.cross_layers : info.layers;
	const attn_layer *layer = attn_model_layer(meaning->model, fields->layer, fields->kind);
	if (layers == 0)
		return problem_set(meaning->problem, PROBLEM_BAD_VALUE, "/kind",
		                   "the model has no %s-attention; its layers are of kind \"%s\"",
		                   fields->kind == ATTN_CROSS ? "cross" : "self",
		                   fields->kind == ATTN_CROSS ? "self" : "cross");
	if (layer == NULL)
		return problem_set(meaning->problem, PROBLEM_BAD_VALUE, "/layer",
		                   "there is no layer %zu; the model's layers count from 0 and are %zu",
		                   fields->layer, layers);
	const size_t wanted[] = {layer->query.in, layer->key.in, layer->value.in};
	for (int input = QUERY; input <= VALUE; input++) {
		if (width_of(meaning->inputs[input]) != wanted[input])
			return problem_set(meaning->problem, PROBLEM_SHAPE_MISMATCH, meaning->pointers[input],
			                   "%s has width %zu, the model's is %zu", names[input],
			                   width_of(meaning->inputs[input]), wanted[input]);
	}
	request->model = true;
	request->model_layer = fields->layer;
	request->model_kind = fields->kind;
	request->layer = *layer;
	return true;
}

/* ---- masks and biases */

/* Whether dims broadcast, as numpy does, to [batch, heads, queries, keys]. */
static bool check_broadcast(struct meaning *meaning, const char *name, size_t rank, const size_t *dims)
{
	const struct attention_request *request = meaning->request;
	const attn_shape *shape = &request->shape;
	const size_t target[] = {request->batch, shape->heads, shape->queries,
	                         attention_request_own_keys(request)};
	char pointer[16];
	snprintf(pointer, sizeof(pointer), "/%s", name);
	if (rank < 2)
		return problem_set(meaning->problem, PROBLEM_SHAPE_MISMATCH, pointer,
		                   "`%s` has 2 to 4 dimensions, this has %zu", name, rank);
	for (size_t i = 0; i < rank; i++) {
		size_t wanted = target[4 - rank + i];
		if (dims[i] != 1 && dims[i] != wanted)
			return problem_set(
			    meaning->problem, PROBLEM_SHAPE_MISMATCH, pointer,
			    "dimension %zu of `%s` is %zu, 1 or %zu is expected to broadcast against "
			    "[batch, heads, queries, keys] = [%zu, %zu, %zu, %zu]",
			    i, name, dims[i], wanted, target[0], target[1], target[2], target[3]);
	}
	return true;
}

static bool resolve_masks(struct meaning *meaning)
{
	const struct mask_tensor *mask = &meaning->request->mask;
	const struct tensor *bias = &meaning->request->bias;
	return (mask->data == NULL || check_broadcast(meaning, "mask", mask->rank, mask->dims)) &&
	       (bias->data == NULL || check_broadcast(meaning, "bias", bias->rank, bias->dims));
}

static void fill_widths(attn_shape *shape, const attn_layer *layer)
{
	shape->heads = layer->heads;
	shape->kv_heads = layer->kv_heads;
	shape->head_width = layer->head_width;
	shape->value_width = layer->value_width;
}

bool attention_meaning_resolve(struct attention_request *request, struct attention_fields *fields,
                               const attn_model *model, const char *query_pointer, struct problem *problem)
{
	struct meaning meaning = {.request = request,
	                          .fields = fields,
	                          .model = model,
	                          .problem = problem,
	                          .pointers = {query_pointer, "/key", "/value"}};
	if (!resolve_inputs(&meaning))
		return false;
	bool split = model == NULL && request->query.rank == 4;
	if (split           ? !resolve_split(&meaning)
	    : model != NULL ? !resolve_model(&meaning)
	                    : !resolve_projected(&meaning))
		return false;
	if (!split)
		fill_widths(&request->shape, &request->layer);
	if (!attention_past_resolve(request, problem))
		return false;
	request->shape.keys += request->layer.appended;
	return attention_options_resolve(request, fields, model, problem) && resolve_masks(&meaning);
}
