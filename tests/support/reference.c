#include "reference.h"

#include <math.h>

/* The key that query i is aligned with. */
static double diagonal(const attn_shape *shape, const attn_options *options, const attn_sequence *sequence,
                       size_t i)
{
	double offset = (double)shape->keys - (double)shape->queries;
	if (options->causal == ATTN_CAUSAL_TOP_LEFT)
		offset = 0;
	if (options->causal == ATTN_CAUSAL_OFFSET)
		offset = (double)sequence->causal_offset;
	return (double)i + offset;
}

static bool allowed(const attn_shape *shape, const attn_options *options, const attn_sequence *sequence,
                    size_t h, size_t i, size_t j)
{
	const attn_mask *mask = &sequence->mask;
	const attn_bias *bias = &sequence->bias;
	double at = diagonal(shape, options, sequence, i);
	if (j >= sequence->key_length)
		return false;
	if (options->causal != ATTN_CAUSAL_NONE && (double)j > at)
		return false;
	if (options->window_left >= 0 && (double)j < at - (double)options->window_left)
		return false;
	if (options->window_right >= 0 && (double)j > at + (double)options->window_right)
		return false;
	if (mask->data != NULL &&
	    mask->data[h * mask->head_stride + i * mask->query_stride + j * mask->key_stride] == 0)
		return false;
	return bias->data == NULL ||
	       bias->data[h * bias->head_stride + i * bias->query_stride + j * bias->key_stride] != -INFINITY;
}

static double score(const attn_shape *shape, const attn_options *options, const attn_sequence *sequence,
                    size_t h, size_t i, size_t j)
{
	size_t group = shape->heads / shape->kv_heads;
	const float *q =
	    sequence->query.data + h * sequence->query.head_stride + i * sequence->query.row_stride;
	const float *k =
	    sequence->key.data + h / group * sequence->key.head_stride + j * sequence->key.row_stride;
	double sum = 0;
	for (size_t d = 0; d < shape->head_width; d++)
		sum += (double)q[d] * (double)k[d];
	sum *= (double)options->scale;
	if (options->softcap > 0)
		sum = (double)options->softcap * tanh(sum / (double)options->softcap);
	const attn_bias *bias = &sequence->bias;
	if (bias->data != NULL)
		sum +=
		    (double)bias->data[h * bias->head_stride + i * bias->query_stride + j * bias->key_stride];
	if (options->slopes != NULL)
		sum -= (double)options->slopes[h] * fabs(diagonal(shape, options, sequence, i) - (double)j);
	return sum;
}

/* Weights of one query over keys; zeros where none is allowed. */
static void softmax(const attn_shape *shape, const attn_options *options, const attn_sequence *sequence,
                    size_t h, size_t i, double *weights)
{
	double max = -INFINITY, sum = 0;
	bool any = false;
	for (size_t j = 0; j < shape->keys; j++) {
		weights[j] = 0;
		if (!allowed(shape, options, sequence, h, i, j))
			continue;
		any = true;
		weights[j] = score(shape, options, sequence, h, i, j);
		max = weights[j] > max ? weights[j] : max;
	}
	if (!any)
		return;
	if (options->sink != NULL) {
		max = (double)options->sink[h] > max ? (double)options->sink[h] : max;
		sum = exp((double)options->sink[h] - max);
	}
	for (size_t j = 0; j < shape->keys; j++) {
		if (!allowed(shape, options, sequence, h, i, j))
			continue;
		weights[j] = exp(weights[j] - max);
		sum += weights[j];
	}
	for (size_t j = 0; j < shape->keys; j++)
		if (allowed(shape, options, sequence, h, i, j))
			weights[j] /= sum;
}

void reference_attend(const attn_shape *shape, const attn_options *options, const attn_sequence *sequence,
                      double *weights, double *context)
{
	size_t group = shape->heads / shape->kv_heads;
	for (size_t row = 0; row < shape->heads * shape->queries; row++) {
		size_t h = row / shape->queries, i = row % shape->queries;
		double *w = weights + row * shape->keys;
		softmax(shape, options, sequence, h, i, w);
		for (size_t d = 0; d < shape->value_width; d++) {
			double sum = 0;
			const float *value =
			    sequence->value.data + h / group * sequence->value.head_stride + d;
			for (size_t j = 0; j < shape->keys; j++)
				if (allowed(shape, options, sequence, h, i, j))
					sum += w[j] * (double)value[j * sequence->value.row_stride];
			context[row * shape->value_width + d] = sum;
		}
	}
}

void reference_linear(const attn_linear *linear, const double *x, size_t rows, double *y)
{
	for (size_t at = 0; at < rows * linear->out; at++) {
		size_t row = at / linear->out, j = at % linear->out;
		if (linear->weight == NULL) {
			y[at] = x[at];
			continue;
		}
		double sum = linear->bias != NULL ? (double)linear->bias[j] : 0;
		for (size_t i = 0; i < linear->in; i++) {
			size_t place =
			    linear->layout == ATTN_IN_OUT ? i * linear->stride + j : j * linear->stride + i;
			sum += x[row * linear->in + i] * (double)linear->weight[place];
		}
		y[at] = sum;
	}
}
