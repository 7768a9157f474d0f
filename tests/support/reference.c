#include "reference.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>

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

/* ---- what enters the scores */

void reference_rotate(attn_rotation rotation, double theta, double position, double *row, size_t width)
{
	for (size_t pair = 0; pair < width / 2; pair++) {
		double *x = rotation == ATTN_ROTATE_HALVES ? &row[pair] : &row[2 * pair];
		double *y = rotation == ATTN_ROTATE_HALVES ? &row[pair + width / 2] : &row[2 * pair + 1];
		double angle = position / pow(theta, 2.0 * (double)pair / (double)width);
		double complex turned = (*x + *y * I) * cexp(angle * I);
		*x = creal(turned);
		*y = cimag(turned);
	}
}

double reference_sinusoid(double position, size_t column, size_t width)
{
	double angle = position / pow(10000, (double)(column - column % 2) / (double)width);
	return column % 2 == 0 ? sin(angle) : cos(angle);
}

static void read_row(double *out, const attn_heads *heads, size_t head, size_t row, size_t width)
{
	for (size_t d = 0; d < width; d++)
		out[d] = (double)heads->data[head * heads->head_stride + row * heads->row_stride + d];
}

static void read_queries(const attn_shape *shape, const attn_options *options, const attn_sequence *sequence,
                         double *out)
{
	for (size_t at = 0; at < shape->heads * shape->queries; at++) {
		size_t i = at % shape->queries;
		double *row = out + at * shape->head_width;
		read_row(row, &sequence->query, at / shape->queries, i, shape->head_width);
		if (options->rotation != ATTN_ROTATE_NONE)
			reference_rotate(options->rotation, options->rope_theta,
			                 (double)(options->position_offset + (int64_t)i), row,
			                 shape->head_width);
	}
}

static void read_keys(const attn_shape *shape, const attn_options *options, const attn_sequence *sequence,
                      double *keys, double *values)
{
	for (size_t at = 0; at < shape->kv_heads * shape->keys; at++) {
		size_t h = at / shape->keys, j = at % shape->keys;
		double *key = keys + at * shape->head_width, *value = values + at * shape->value_width;
		if (j < shape->past) {
			read_row(key, &sequence->past_key, h, j, shape->head_width);
			read_row(value, &sequence->past_value, h, j, shape->value_width);
			continue;
		}
		size_t fresh = j - shape->past;
		read_row(key, &sequence->key, h, fresh, shape->head_width);
		read_row(value, &sequence->value, h, fresh, shape->value_width);
		if (options->rotation != ATTN_ROTATE_NONE)
			reference_rotate(options->rotation, options->rope_theta,
			                 (double)(options->position_offset + (int64_t)fresh), key,
			                 shape->head_width);
	}
}

/* ---- rows of scores */

/* One call, its results, and where one row of them lies. */
struct row {
	const attn_shape *shape;
	const attn_options *options;
	const attn_sequence *sequence;
	const struct reference *out;
	size_t h, i;
};

static size_t row_at(const struct row *row, size_t width)
{
	return (row->h * row->shape->queries + row->i) * width;
}

static void fill_scores(const struct row *row, size_t j)
{
	const attn_shape *shape = row->shape;
	const attn_options *options = row->options;
	const attn_bias *bias = &row->sequence->bias;
	const size_t at = row_at(row, shape->keys) + j;
	const double *q = row->out->query + row_at(row, shape->head_width);
	const size_t kv_head = row->h / (shape->heads / shape->kv_heads);
	const double *k = row->out->key + (kv_head * shape->keys + j) * shape->head_width;
	double sum = 0;
	for (size_t d = 0; d < shape->head_width; d++)
		sum += q[d] * k[d];
	sum *= (double)options->scale;
	row->out->scores[at] = sum;
	if (options->softcap > 0)
		sum = (double)options->softcap * tanh(sum / (double)options->softcap);
	row->out->capped[at] = sum;
	if (bias->data != NULL)
		sum += (double)bias->data[row->h * bias->head_stride + row->i * bias->query_stride +
		                          j * bias->key_stride];
	if (options->slopes != NULL)
		sum -= (double)options->slopes[row->h] *
		       fabs(diagonal(shape, options, row->sequence, row->i) - (double)j);
	if (options->relative != NULL) {
		const double reach = (double)options->relative_reach;
		double distance = (double)j - diagonal(shape, options, row->sequence, row->i);
		distance = fmin(fmax(distance, -reach), reach);
		sum +=
		    (double)options
		        ->relative[row->h * (2 * options->relative_reach + 1) + (size_t)(distance + reach)];
	}
	bool may = allowed(shape, options, row->sequence, row->h, row->i, j);
	row->out->masked[at] = may ? sum : -INFINITY;
}

/* Weights and statistics from the masked scores; finite scores only. */
static void fill_softmax(const struct row *row)
{
	const size_t keys = row->shape->keys, at = row_at(row, 1);
	const double *masked = row->out->masked + row_at(row, keys);
	double *weights = row->out->weights + row_at(row, keys);
	double max = -INFINITY, sum = 0, entropy = 0;
	for (size_t j = 0; j < keys; j++) {
		max = masked[j] > max ? masked[j] : max;
		weights[j] = 0;
	}
	row->out->maximum[at] = max;
	row->out->logsumexp[at] = -INFINITY;
	row->out->entropy[at] = 0;
	if (max == -INFINITY)
		return;
	double shift = max;
	if (row->options->sink != NULL) {
		double sink = (double)row->options->sink[row->h];
		shift = sink > max ? sink : max;
		sum = exp(sink - shift);
	}
	for (size_t j = 0; j < keys; j++)
		sum += exp(masked[j] - shift);
	for (size_t j = 0; j < keys; j++) {
		weights[j] = exp(masked[j] - shift) / sum;
		entropy -= weights[j] > 0 ? weights[j] * log(weights[j]) : 0;
	}
	row->out->logsumexp[at] = shift + log(sum);
	row->out->entropy[at] = entropy;
}

static void fill_context(const struct row *row)
{
	const attn_shape *shape = row->shape;
	const size_t kv_head = row->h / (shape->heads / shape->kv_heads);
	const double *weights = row->out->weights + row_at(row, shape->keys);
	for (size_t d = 0; d < shape->value_width; d++) {
		double sum = 0;
		for (size_t j = 0; j < shape->keys; j++)
			if (allowed(shape, row->options, row->sequence, row->h, row->i, j))
				sum += weights[j] *
				       row->out->value[(kv_head * shape->keys + j) * shape->value_width + d];
		row->out->context[row_at(row, shape->value_width) + d] = sum;
	}
}

static double *room(attn_arena *arena, size_t a, size_t b)
{
	double *out = attn_arena_alloc(arena, a * b * sizeof(double));
	if (out == NULL)
		abort();
	return out;
}

struct reference reference_attend(attn_arena *arena, const attn_shape *shape, const attn_options *options,
                                  const attn_sequence *sequence)
{
	const size_t rows = shape->heads * shape->queries, kv_rows = shape->kv_heads * shape->keys;
	struct reference out = {
	    .query = room(arena, rows, shape->head_width),
	    .key = room(arena, kv_rows, shape->head_width),
	    .value = room(arena, kv_rows, shape->value_width),
	    .scores = room(arena, rows, shape->keys),
	    .capped = room(arena, rows, shape->keys),
	    .masked = room(arena, rows, shape->keys),
	    .weights = room(arena, rows, shape->keys),
	    .context = room(arena, rows, shape->value_width),
	    .entropy = room(arena, rows, 1),
	    .logsumexp = room(arena, rows, 1),
	    .maximum = room(arena, rows, 1),
	};
	read_queries(shape, options, sequence, out.query);
	read_keys(shape, options, sequence, out.key, out.value);
	for (size_t at = 0; at < rows; at++) {
		struct row row = {shape, options, sequence, &out, at / shape->queries, at % shape->queries};
		for (size_t j = 0; j < shape->keys; j++)
			fill_scores(&row, j);
		fill_softmax(&row);
		fill_context(&row);
	}
	return out;
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
