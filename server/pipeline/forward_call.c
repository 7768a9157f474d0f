#include "pipeline/forward_call.h"

#include "codec/forward_members.h"

#include <string.h>

/* ---- the call */

static bool has_kind(const struct forward_request *request, size_t kind)
{
	return request->layer_counts[kind] > 0;
}

size_t forward_call_room(const struct forward_request *request)
{
	return ATTN_STACK_KINDS * request->queries.count * sizeof(size_t);
}

/* What is selected of a kind's weights; false: everything. */
static bool select_weights(const struct forward_request *request, const size_t lengths[ATTN_STACKS],
                           size_t kind, size_t *queries, attn_selection *out)
{
	const struct integer_list *list = &request->queries;
	size_t length = lengths[forward_kind_queries(kind)], keys = lengths[forward_kind_keys(kind)];
	*out = (attn_selection){.heads = request->heads[kind],
	                        .head_count = request->head_count,
	                        .top_k = request->top_k < keys ? request->top_k : keys};
	if (list->values != NULL) {
		out->queries = queries;
		out->query_count = list->count;
	}
	for (size_t i = 0; i < list->count; i++) {
		int64_t index = list->values[i];
		queries[i] = (size_t)(index < 0 ? index + (int64_t)length : index);
	}
	return out->heads != NULL || out->queries != NULL || request->top_k > 0;
}

void forward_call_make(const struct forward_request *request, const size_t lengths[ATTN_STACKS],
                       size_t *queries, struct forward_call *out)
{
	*out = (struct forward_call){.call = {
	                                 .second = request->inputs[ATTN_SECOND_STACK].given,
	                                 .ablations = request->ablations,
	                                 .ablation_count = request->ablation_count,
	                                 .pooling = request->pooling,
	                                 .normalize = request->normalize,
	                                 .top_logits = request->top_logits,
	                                 .rollout = request->rollout,
	                             }};
	memcpy(out->call.lengths, lengths, sizeof(out->call.lengths));
	for (size_t kind = 0; kind < ATTN_STACK_KINDS; kind++) {
		size_t *own = queries + kind * request->queries.count;
		if (has_kind(request, kind) &&
		    select_weights(request, lengths, kind, own, &out->selections[kind]))
			out->call.selections[kind] = &out->selections[kind];
	}
}

/* ---- one sequence */

/* The arrays of pointers that a sequence's results stand in, where there are any. */
struct arrays {
	float **hidden[ATTN_STACKS];
	attn_layer_results *attention[ATTN_STACK_KINDS];
};

static size_t states_of(const struct forward_request *request, size_t stack)
{
	return request->inputs[stack].given ? request->info.stacks[stack].layers + 1 : 0;
}

static size_t layers_of(const struct forward_request *request, size_t kind)
{
	return has_kind(request, kind) ? request->info.stacks[forward_kind_queries(kind)].layers : 0;
}

#define ARRAY_ALIGNMENT 64 /* of scratch */

size_t forward_sequence_room(const struct forward_request *request)
{
	size_t bytes = 0;
	for (size_t stack = 0; stack < ATTN_STACKS; stack++)
		bytes += states_of(request, stack) * sizeof(float *) + ARRAY_ALIGNMENT;
	for (size_t kind = 0; kind < ATTN_STACK_KINDS; kind++)
		bytes += layers_of(request, kind) * sizeof(attn_layer_results) + ARRAY_ALIGNMENT;
	return bytes;
}

/* Zeroed arrays; false: no memory. */
static bool arrays_reserve(const struct forward_request *request, struct arrays *arrays, attn_arena *scratch)
{
	bool reserved = true;
	for (size_t stack = 0; stack < ATTN_STACKS && reserved; stack++) {
		size_t bytes = states_of(request, stack) * sizeof(float *);
		arrays->hidden[stack] = attn_arena_alloc(scratch, bytes);
		reserved = arrays->hidden[stack] != NULL;
		if (reserved)
			memset(arrays->hidden[stack], 0, bytes);
	}
	for (size_t kind = 0; kind < ATTN_STACK_KINDS && reserved; kind++) {
		size_t bytes = layers_of(request, kind) * sizeof(attn_layer_results);
		arrays->attention[kind] = attn_arena_alloc(scratch, bytes);
		reserved = arrays->attention[kind] != NULL;
		if (reserved)
			memset(arrays->attention[kind], 0, bytes);
	}
	return reserved;
}

/* Where results of one attention layer go. */
static void place_layer(const struct forward_member *member, attn_layer_results *results, size_t offset)
{
	float *data = member->data != NULL ? member->data + offset : NULL;
	switch (member->result) {
	case FORWARD_RESULT_WEIGHTS:
		results->weights = data;
		break;
	case FORWARD_RESULT_TOP_INDICES:
		results->top_indices = member->indices + offset;
		break;
	case FORWARD_RESULT_TOP_VALUES:
		results->top_values = data;
		break;
	case FORWARD_RESULT_ENTROPY:
		results->entropy = data;
		break;
	case FORWARD_RESULT_LOGSUMEXP:
		results->logsumexp = data;
		break;
	default:
		results->maximum = data;
		break;
	}
}

/* Where the other results go. */
static void place_result(const struct forward_member *member, attn_forward_sequence *out,
                         struct arrays *arrays, size_t offset)
{
	float *data = member->data != NULL ? member->data + offset : NULL;
	switch (member->result) {
	case FORWARD_RESULT_TOKENS:
	case FORWARD_RESULT_RANGES:
		break;
	case FORWARD_RESULT_HIDDEN:
		arrays->hidden[member->stack][member->layer] = data;
		break;
	case FORWARD_RESULT_ROLLOUT:
		out->stacks[member->stack].rollout = data;
		break;
	case FORWARD_RESULT_POOLED:
		out->pooled = data;
		break;
	case FORWARD_RESULT_LOGITS:
		out->logits = data;
		break;
	case FORWARD_RESULT_LOGITS_ALL:
		out->logits_all = data;
		break;
	case FORWARD_RESULT_TOP_LOGIT_INDICES:
		out->top_logit_indices = member->indices + offset;
		break;
	case FORWARD_RESULT_TOP_LOGIT_VALUES:
		out->top_logit_values = data;
		break;
	default:
		place_layer(member, &arrays->attention[member->stack][member->layer], offset);
		break;
	}
}

static void place_input(const struct forward_request *request, size_t stack, size_t index,
                        attn_forward_stack *out)
{
	const struct forward_input *input = &request->inputs[stack];
	if (!input->given)
		return;
	size_t start = input->starts[index];
	if (input->embeddings.data != NULL)
		out->embeddings = input->embeddings.data + start * request->info.stacks[stack].width;
	else
		out->tokens = input->rows.values + start;
}

bool forward_sequence_fill(const struct forward_request *request, size_t index, attn_forward_sequence *out,
                           attn_arena *scratch)
{
	struct arrays arrays = {0};
	*out = (attn_forward_sequence){0};
	if (!arrays_reserve(request, &arrays, scratch))
		return false;
	for (size_t stack = 0; stack < ATTN_STACKS; stack++) {
		place_input(request, stack, index, &out->stacks[stack]);
		if (states_of(request, stack) > 0)
			out->stacks[stack].hidden = arrays.hidden[stack];
	}
	for (size_t kind = 0; kind < ATTN_STACK_KINDS; kind++) {
		if (layers_of(request, kind) > 0)
			out->attention[kind] = arrays.attention[kind];
	}
	for (size_t i = 0; i < request->member_count; i++) {
		const struct forward_member *member = &request->members[i];
		place_result(member, out, &arrays, forward_member_offset(request, member, index));
	}
	return true;
}
