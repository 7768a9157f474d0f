#include "pipeline/attention_sequence.h"

/* The part of an output that belongs to a sequence; NULL when it was not asked for. */
static float *part(const struct attention_request *request, const struct reply_tensor *tensor, size_t index)
{
	return tensor->data == NULL ? NULL : tensor->data + index * (tensor->count / request->batch);
}

static void set_outputs(attn_sequence *sequence, const struct attention_request *request, size_t index)
{
	const struct reply_tensor *top = &request->top_indices;
	float *weights = part(request, &request->weights_out, index);
	if (request->weights == WEIGHTS_MEAN)
		sequence->mean_weights = weights;
	else
		sequence->weights = weights;
	sequence->scores = part(request, &request->stages[ATTENTION_SCORES], index);
	sequence->capped = part(request, &request->stages[ATTENTION_CAPPED], index);
	sequence->masked = part(request, &request->stages[ATTENTION_MASKED], index);
	if (request->stages[ATTENTION_SOFTMAX].data != NULL)
		sequence->weights = part(request, &request->stages[ATTENTION_SOFTMAX], index);
	if (top->indices != NULL)
		sequence->top_indices = top->indices + index * (top->count / request->batch);
	sequence->top_values = part(request, &request->top_values, index);
	sequence->entropy = part(request, &request->statistics[ATTENTION_ENTROPY], index);
	sequence->logsumexp = part(request, &request->statistics[ATTENTION_LOGSUMEXP], index);
	sequence->maximum = part(request, &request->statistics[ATTENTION_MAXIMUM], index);
	sequence->used_query = part(request, &request->used_query, index);
	sequence->used_key = part(request, &request->used_key, index);
	sequence->used_value = part(request, &request->used_value, index);
}

/* Heads of [batch, heads, rows, width]. */
static attn_heads heads_of(const float *data, size_t index, size_t heads, size_t rows, size_t width)
{
	return (attn_heads){
	    .data = data + index * heads * rows * width,
	    .head_stride = rows * width,
	    .row_stride = width,
	};
}

/* What sequences have both through a layer and with split heads. */
static attn_sequence common(const struct attention_request *request, size_t index)
{
	const attn_shape *shape = &request->shape;
	attn_sequence sequence = {
	    .key_length = request->key_lengths != NULL ? (size_t)request->key_lengths[index] : shape->keys,
	    .causal_offset = request->causal_offsets != NULL ? request->causal_offsets[index] : 0,
	    .mask = attention_request_mask(request, index),
	    .bias = attention_request_bias(request, index),
	};
	if (shape->past > 0) {
		sequence.past_key =
		    heads_of(request->past_key.data, index, shape->kv_heads, shape->past, shape->head_width);
		sequence.past_value = heads_of(request->past_value.data, index, shape->kv_heads, shape->past,
		                               shape->value_width);
	}
	set_outputs(&sequence, request, index);
	return sequence;
}

attn_layer_sequence attention_sequence_through_layer(const struct attention_request *request, size_t index)
{
	const attn_layer *layer = &request->layer;
	size_t queries = request->shape.queries;
	size_t keys = attention_request_own_keys(request) - request->shape.past;
	const float *query = request->query.data;
	const float *key = request->key.data != NULL ? request->key.data : query;
	const float *value = request->value.data != NULL ? request->value.data : key;
	return (attn_layer_sequence){
	    .query = query + index * queries * layer->query.in,
	    .key = key + index * keys * layer->key.in,
	    .value = value + index * keys * layer->value.in,
	    .output = request->context.data + index * queries * layer->output.out,
	    .attend = common(request, index),
	};
}

attn_sequence attention_sequence_of_heads(const struct attention_request *request, size_t index)
{
	const attn_shape *shape = &request->shape;
	size_t keys = shape->keys - shape->past;
	const float *query = request->query.data;
	const float *key = request->key.data != NULL ? request->key.data : query;
	const float *value = request->value.data != NULL ? request->value.data : key;
	attn_sequence sequence = common(request, index);
	sequence.query = heads_of(query, index, shape->heads, shape->queries, shape->head_width);
	sequence.key = heads_of(key, index, shape->kv_heads, keys, shape->head_width);
	sequence.value = heads_of(value, index, shape->kv_heads, keys, shape->value_width);
	sequence.context_row_stride = shape->value_width;
	sequence.context_head_stride = shape->queries * shape->value_width;
	sequence.context = request->context.data + index * shape->heads * sequence.context_head_stride;
	return sequence;
}
