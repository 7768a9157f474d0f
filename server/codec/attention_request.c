#include "codec/attention_request.h"

#include "codec/attention_reply.h"

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
	free(request->sinks);
	free(request->key_lengths);
	free(request->causal_offsets);
	free(request->context.data);
	free(request->weights_out.data);
	free(request);
}

/* ---- sizes; SIZE_MAX once anything overflows */

static size_t sum(size_t a, size_t b)
{
	size_t out;
	return attn_size_add(a, b, &out) ? out : SIZE_MAX;
}

static size_t product(size_t a, size_t b)
{
	size_t out;
	return attn_size_mul(a, b, &out) ? out : SIZE_MAX;
}

/* Elements of a shape; 0 where a dimension is 0. */
static size_t elements(const size_t *dims, size_t rank)
{
	size_t count = 1;
	for (size_t i = 0; i < rank; i++) {
		if (dims[i] == 0)
			return 0;
		count = product(count, dims[i]);
	}
	return count;
}

/* Bytes of a shape printed as nested arrays, at most: brackets and commas of every array, and the numbers. */
static size_t printed(const size_t *dims, size_t rank)
{
	size_t arrays = 1, bytes = 0;
	for (size_t i = 0; i < rank; i++) {
		bytes = sum(bytes, product(arrays, 3));
		arrays = product(arrays, dims[i]);
	}
	return sum(bytes, product(arrays, NUMBER_TEXT_MAX));
}

size_t attention_request_weights_shape(const struct attention_request *request, size_t dims[TENSOR_MAX_RANK])
{
	const attn_shape *shape = &request->shape;
	size_t rank = 0;
	if (request->weights == WEIGHTS_NONE)
		return 0;
	if (request->query.rank > 2)
		dims[rank++] = request->batch;
	if (request->weights == WEIGHTS_PER_HEAD)
		dims[rank++] = shape->heads;
	dims[rank++] = shape->queries;
	dims[rank++] = shape->keys;
	return rank;
}

static size_t weights_count(const struct attention_request *request)
{
	size_t dims[TENSOR_MAX_RANK];
	size_t rank = attention_request_weights_shape(request, dims);
	return rank == 0 ? 0 : elements(dims, rank);
}

size_t attention_request_input_bytes(const struct attention_request *request)
{
	size_t floats =
	    request->query.count + request->key.count + request->value.count + request->bias.count;
	for (size_t i = 0; i < 8; i++)
		floats += request->projections[i].count;
	if (request->sinks != NULL)
		floats += request->shape.heads;
	size_t lists = (request->key_lengths != NULL) + (size_t)(request->causal_offsets != NULL);
	return sizeof(*request) + floats * sizeof(float) + request->mask.count +
	       lists * request->batch * sizeof(int64_t);
}

size_t attention_request_output_bytes(const struct attention_request *request)
{
	size_t count = sum(elements(request->context.dims, request->context.rank), weights_count(request));
	return product(count, sizeof(float));
}

size_t attention_request_reply_bytes(const struct attention_request *request)
{
	size_t dims[TENSOR_MAX_RANK];
	size_t rank = attention_request_weights_shape(request, dims);
	size_t bytes = sum(ATTENTION_REPLY_FRAME, printed(request->context.dims, request->context.rank));
	return rank == 0 ? bytes : sum(bytes, printed(dims, rank));
}

/* Zeroed memory, never NULL for no elements. */
static float *reserve(size_t count)
{
	return count == SIZE_MAX ? NULL : calloc(count > 0 ? count : 1, sizeof(float));
}

bool attention_request_reserve(struct attention_request *request)
{
	request->context.count = elements(request->context.dims, request->context.rank);
	request->context.data = reserve(request->context.count);
	if (request->weights != WEIGHTS_NONE)
		request->weights_out.data = reserve(weights_count(request));
	return request->context.data != NULL &&
	       (request->weights == WEIGHTS_NONE || request->weights_out.data != NULL);
}

/* ---- broadcasts */

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
