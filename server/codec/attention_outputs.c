#include "codec/attention_outputs.h"

#include "codec/large.h"

#include <stdlib.h>
#include <string.h>

/* ---- shapes */

static void set_shape(struct reply_tensor *tensor, bool wanted, const size_t *dims, size_t rank)
{
	*tensor = (struct reply_tensor){.rank = 0};
	if (wanted)
		reply_tensor_shape(tensor, dims, rank);
}

/* The last `rank` of [batch, ...], and the batch where the request has one. */
static void set_batched(const struct attention_request *request, struct reply_tensor *tensor, bool wanted,
                        const size_t *dims, size_t rank)
{
	bool batched = request->query.rank > 2;
	set_shape(tensor, wanted, batched ? dims : dims + 1, batched ? rank + 1 : rank);
}

static void shape_context(struct attention_request *request)
{
	const attn_shape *shape = &request->shape;
	const size_t split[] = {request->batch, shape->heads, shape->queries, shape->value_width};
	const size_t joined[] = {request->batch, shape->queries, request->layer.output.out};
	if (request->split_heads)
		set_batched(request, &request->context, true, split, 3);
	else
		set_batched(request, &request->context, true, joined, 2);
}

static void shape_weights(struct attention_request *request)
{
	const attn_shape *shape = &request->shape;
	const attn_selection *selection = &request->selection;
	size_t heads = selection->heads != NULL ? selection->head_count : shape->heads;
	size_t queries = selection->queries != NULL ? selection->query_count : shape->queries;
	const size_t per_head[] = {request->batch, heads, queries, shape->keys};
	const size_t top[] = {request->batch, heads, queries, selection->top_k};
	const size_t mean[] = {request->batch, shape->queries, shape->keys};
	bool tops = request->weights == WEIGHTS_TOP;
	if (request->weights == WEIGHTS_MEAN)
		set_batched(request, &request->weights_out, true, mean, 2);
	else
		set_batched(request, &request->weights_out, request->weights == WEIGHTS_PER_HEAD, per_head,
		            3);
	set_batched(request, &request->top_indices, tops, top, 3);
	set_batched(request, &request->top_values, tops, top, 3);
	for (int stage = 0; stage < ATTENTION_STAGES; stage++)
		set_batched(request, &request->stages[stage],
		            request->wants_stage[stage] && !(tops && stage == ATTENTION_SOFTMAX), per_head,
		            3);
}

static void shape_used(struct attention_request *request)
{
	const attn_shape *shape = &request->shape;
	const size_t query[] = {request->batch, shape->heads, shape->queries, shape->head_width};
	const size_t key[] = {request->batch, shape->kv_heads, shape->keys, shape->head_width};
	const size_t value[] = {request->batch, shape->kv_heads, shape->keys, shape->value_width};
	set_batched(request, &request->used_query, request->projected, query, 3);
	set_batched(request, &request->used_key, request->projected || request->has_past, key, 3);
	set_batched(request, &request->used_value, request->projected || request->has_past, value, 3);
}

void attention_outputs_shape(struct attention_request *request)
{
	const attn_shape *shape = &request->shape;
	const size_t rows[] = {request->batch, shape->heads, shape->queries};
	shape_context(request);
	shape_weights(request);
	shape_used(request);
	for (int i = 0; i < ATTENTION_STATISTICS; i++)
		set_batched(request, &request->statistics[i], request->wants_statistic[i], rows, 2);
}

void attention_outputs_ask(struct attention_request *request, enum weights_form weights)
{
	request->weights = weights;
	memset(request->wants_stage, 0, sizeof(request->wants_stage));
	attention_outputs_shape(request);
}

/* ---- names */

static const char *const stage_paths[ATTENTION_STAGES] = {
    [ATTENTION_SCORES] = "stages.scores",
    [ATTENTION_CAPPED] = "stages.capped",
    [ATTENTION_MASKED] = "stages.masked",
    [ATTENTION_SOFTMAX] = "stages.softmax",
};
static const char *const statistic_paths[ATTENTION_STATISTICS] = {
    [ATTENTION_ENTROPY] = "statistics.entropy",
    [ATTENTION_LOGSUMEXP] = "statistics.logsumexp",
    [ATTENTION_MAXIMUM] = "statistics.max",
};

/* A list that grows; tensors that are not asked for are passed over. */
struct listing {
	struct reply_output *out;
	size_t count;
};

static void list(struct listing *listing, const char *path, const struct reply_tensor *tensor, bool lowest)
{
	if (tensor->rank > 0)
		listing->out[listing->count++] =
		    (struct reply_output){.path = path, .tensor = *tensor, .lowest = lowest};
}

static void list_top(struct listing *listing, const char *indices, const char *values,
                     const struct attention_request *request)
{
	size_t place = listing->count;
	list(listing, indices, &request->top_indices, false);
	if (listing->count > place)
		listing->out[place].integers = true;
	list(listing, values, &request->top_values, false);
}

static void list_weights(struct listing *listing, const struct attention_request *request)
{
	bool staged = request->wants_stage[ATTENTION_SOFTMAX];
	list(listing, "weights", &request->weights_out, false);
	if (!staged)
		list_top(listing, "weights.indices", "weights.values", request);
	for (int stage = 0; stage < ATTENTION_STAGES; stage++)
		list(listing, stage_paths[stage], &request->stages[stage], stage == ATTENTION_MASKED);
	if (staged)
		list_top(listing, "stages.softmax.indices", "stages.softmax.values", request);
}

/* The present in the form of the past: with a batch of 1 where that of one sequence had it. */
static void list_present(struct listing *listing, const char *path, const struct tensor *past,
                         const struct reply_tensor *used)
{
	struct reply_tensor present = *used;
	if (present.rank == 3 && past->rank == 4) {
		memmove(present.dims + 1, present.dims, 3 * sizeof(*present.dims));
		present.dims[0] = 1;
		present.rank = 4;
	}
	list(listing, path, &present, false);
}

size_t attention_outputs_list(const struct attention_request *request,
                              struct reply_output out[ATTENTION_OUTPUTS_MAX])
{
	struct listing listing = {.out = out};
	list(&listing, "context", &request->context, false);
	list_weights(&listing, request);
	for (int i = 0; i < ATTENTION_STATISTICS; i++)
		list(&listing, statistic_paths[i], &request->statistics[i], i != ATTENTION_ENTROPY);
	if (request->projected) {
		list(&listing, "projected.query", &request->used_query, false);
		list(&listing, "projected.key", &request->used_key, false);
		list(&listing, "projected.value", &request->used_value, false);
	}
	if (request->has_past) {
		list_present(&listing, "present_key", &request->past_key, &request->used_key);
		list_present(&listing, "present_value", &request->past_value, &request->used_value);
	}
	return listing.count;
}

/* ---- memory */

#define OWN_MAX (7 + ATTENTION_STAGES + ATTENTION_STATISTICS)

/* Every output of the request, asked for or not. */
static void own_tensors(struct attention_request *request, struct reply_tensor *out[OWN_MAX])
{
	size_t count = 0;
	out[count++] = &request->top_indices; /* the first is of integers */
	out[count++] = &request->context;
	out[count++] = &request->weights_out;
	out[count++] = &request->top_values;
	out[count++] = &request->used_query;
	out[count++] = &request->used_key;
	out[count++] = &request->used_value;
	for (int i = 0; i < ATTENTION_STAGES; i++)
		out[count++] = &request->stages[i];
	for (int i = 0; i < ATTENTION_STATISTICS; i++)
		out[count++] = &request->statistics[i];
}

size_t attention_outputs_bytes(const struct attention_request *request)
{
	struct attention_request copy = *request;
	struct reply_tensor *own[OWN_MAX];
	size_t total = 0, bytes;
	own_tensors(&copy, own);
	for (size_t i = 0; i < OWN_MAX; i++) {
		if (!attn_size_mul(own[i]->count, i == 0 ? sizeof(int64_t) : sizeof(float), &bytes) ||
		    !attn_size_add(total, bytes, &total))
			return SIZE_MAX;
	}
	return total;
}

/* Zeroed memory, not NULL for no elements. */
static void *reserve(size_t count, size_t size)
{
	return large_block(calloc(count > 0 ? count : 1, size), count * size);
}

bool attention_outputs_reserve(struct attention_request *request)
{
	struct reply_tensor *own[OWN_MAX];
	own_tensors(request, own);
	for (size_t i = 0; i < OWN_MAX; i++) {
		if (own[i]->rank == 0)
			continue;
		if (i == 0)
			own[i]->indices = reserve(own[i]->count, sizeof(int64_t));
		else
			own[i]->data = reserve(own[i]->count, sizeof(float));
		if (own[i]->indices == NULL && own[i]->data == NULL)
			return false;
	}
	return true;
}

void attention_outputs_clear(struct attention_request *request)
{
	struct reply_tensor *own[OWN_MAX];
	own_tensors(request, own);
	for (size_t i = 0; i < OWN_MAX; i++) {
		free(own[i]->indices);
		free(own[i]->data);
		*own[i] = (struct reply_tensor){0};
	}
}
