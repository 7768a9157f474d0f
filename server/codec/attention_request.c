#include "codec/attention_request.h"

#include "codec/attention_outputs.h"
#include "codec/attention_reply.h"
#include "codec/saturating.h"

#include <stdlib.h>

void attention_request_free(struct attention_request *request)
{
	if (request == NULL)
		return;
	tensor_clear(&request->query);
	tensor_clear(&request->key);
	tensor_clear(&request->value);
	for (size_t i = 0; i < 8; i++)
		tensor_clear(&request->projections[i]);
	mask_tensor_clear(&request->mask);
	tensor_clear(&request->bias);
	tensor_clear(&request->past_key);
	tensor_clear(&request->past_value);
	tensor_clear(&request->sink);
	free(request->sinks);
	free(request->slopes);
	free(request->head_list);
	free(request->query_list);
	free(request->key_lengths);
	free(request->causal_offsets);
	attention_outputs_clear(request);
	free(request);
}

/* ---- sizes */

size_t attention_request_input_bytes(const struct attention_request *request)
{
	const attn_selection *selection = &request->selection;
	size_t floats = request->query.count + request->key.count + request->value.count +
	                request->bias.count + request->past_key.count + request->past_value.count;
	for (size_t i = 0; i < 8; i++)
		floats += request->projections[i].count;
	size_t by_head = (request->sinks != NULL) + (size_t)(request->slopes != NULL);
	size_t by_sequence = (request->key_lengths != NULL) + (size_t)(request->causal_offsets != NULL);
	return sizeof(*request) + (floats + by_head * request->shape.heads) * sizeof(float) +
	       request->mask.count + by_sequence * request->batch * sizeof(int64_t) +
	       (selection->head_count + selection->query_count) * sizeof(size_t);
}

size_t attention_request_output_bytes(const struct attention_request *request)
{
	return attention_outputs_bytes(request);
}

size_t attention_request_reply_bytes(const struct attention_request *request)
{
	struct reply_output outputs[ATTENTION_OUTPUTS_MAX];
	if (request->reply_form == BODY_SAFETENSORS)
		return attention_reply_binary_bytes(request);
	size_t count = attention_outputs_list(request, outputs), bytes = ATTENTION_REPLY_FRAME;
	for (size_t i = 0; i < count; i++)
		bytes = saturating_add(bytes, reply_output_text_bytes(&outputs[i]));
	return bytes;
}

bool attention_request_reserve(struct attention_request *request)
{
	return attention_outputs_reserve(request);
}

/* ---- broadcasts */

size_t attention_request_own_keys(const struct attention_request *request)
{
	return request->shape.keys - request->layer.appended;
}

/* Strides of a contiguous tensor whose last dimension is that of keys, 0 where it repeats. */
struct strides {
	size_t batch, head, query, key;
};

static struct strides broadcast(size_t rank, const size_t *dims)
{
	size_t strides[TENSOR_MAX_RANK] = {0}, stride = 1;
	for (size_t back = 1; back <= rank; back++) {
		size_t dim = dims[rank - back];
		strides[TENSOR_MAX_RANK - back] = dim == 1 ? 0 : stride;
		stride *= dim;
	}
	return (struct strides){strides[0], strides[1], strides[2], strides[3]};
}

attn_mask attention_request_mask(const struct attention_request *request, size_t sequence)
{
	const struct mask_tensor *mask = &request->mask;
	if (mask->data == NULL)
		return (attn_mask){0};
	struct strides strides = broadcast(mask->rank, mask->dims);
	return (attn_mask){mask->data + sequence * strides.batch, strides.head, strides.query, strides.key};
}

attn_bias attention_request_bias(const struct attention_request *request, size_t sequence)
{
	const struct tensor *bias = &request->bias;
	if (bias->data == NULL)
		return (attn_bias){0};
	struct strides strides = broadcast(bias->rank, bias->dims);
	return (attn_bias){bias->data + sequence * strides.batch, strides.head, strides.query, strides.key};
}
