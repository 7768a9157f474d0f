#include "small_attention.h"

#include <check.h>
#include <math.h>
#include <string.h>

const float SMALL_COLUMN[6] = {10, 20, 60, 0, 0, 0};

struct small small_make(size_t heads, size_t kv_heads, size_t queries, size_t keys, size_t width,
                        size_t value_width)
{
	return (struct small){
	    .shape = {heads, kv_heads, queries, keys, 0, width, value_width},
	    .options = attn_options_default(width),
	    .sequence = {.key_length = keys},
	};
}

struct small small_flat(size_t queries, size_t keys, const float *values)
{
	struct small small = small_make(1, 1, queries, keys, 1, 1);
	memcpy(small.value, values, keys * sizeof(float));
	return small;
}

struct small small_scores(const float *scores, size_t keys, const float *values)
{
	struct small small = small_flat(1, keys, values);
	small.sequence.bias = small_bias(scores, keys);
	return small;
}

void small_fill(struct small *small)
{
	for (size_t i = 0; i < SMALL_MOST; i++) {
		small->query[i] = sinf((float)i);
		small->key[i] = sinf((float)(i * i % 977));
		small->value[i] = cosf((float)(3 * i));
	}
}

attn_mask small_mask(const uint8_t *data, size_t keys)
{
	return (attn_mask){data, 0, keys, 1};
}

attn_bias small_bias(const float *data, size_t keys)
{
	return (attn_bias){data, 0, keys, 1};
}

void small_point(struct small *small)
{
	const attn_shape *shape = &small->shape;
	attn_sequence *sequence = &small->sequence;
	const size_t width = shape->head_width, value_width = shape->value_width;
	sequence->query = (attn_heads){small->query, shape->queries * width, width};
	sequence->past_key = (attn_heads){small->key, shape->keys * width, width};
	sequence->key = (attn_heads){small->key + shape->past * width, shape->keys * width, width};
	sequence->past_value = (attn_heads){small->value, shape->keys * value_width, value_width};
	sequence->value =
	    (attn_heads){small->value + shape->past * value_width, shape->keys * value_width, value_width};
	sequence->context = small->context;
	sequence->context_head_stride = shape->queries * value_width;
	sequence->context_row_stride = value_width;
	sequence->weights = small->weights;
	for (size_t i = 0; i < SMALL_MOST; i++)
		small->context[i] = small->weights[i] = small->mean[i] = NAN;
}

attn_status small_attend(attn_kernels *kernels, const struct small *small)
{
	attn_arena *scratch = attn_arena_new(0);
	attn_executor executor = attn_executor_serial(scratch);
	attn_status status =
	    attn_attend(kernels, &executor, &small->shape, &small->options, &small->sequence, 1);
	attn_arena_free(scratch);
	return status;
}

void small_run(attn_kernels *kernels, struct small *small)
{
	small_point(small);
	ck_assert_int_eq(small_attend(kernels, small), ATTN_OK);
}

void small_run_mean(attn_kernels *kernels, struct small *small)
{
	small_point(small);
	small->sequence.weights = NULL;
	small->sequence.mean_weights = small->mean;
	ck_assert_int_eq(small_attend(kernels, small), ATTN_OK);
}

void small_refused(attn_kernels *kernels, struct small small, attn_status wanted)
{
	small_point(&small);
	ck_assert_int_eq(small_attend(kernels, &small), wanted);
	ck_assert(isnan(small.context[0]));
}

void small_same(const struct small *a, const struct small *b)
{
	const attn_shape *shape = &a->shape;
	size_t rows = shape->heads * shape->queries;
	ck_assert_mem_eq(a->weights, b->weights, rows * shape->keys * sizeof(float));
	ck_assert_mem_eq(a->context, b->context, rows * shape->value_width * sizeof(float));
}

void small_close(const float *found, const float *wanted, size_t count, double limit)
{
	for (size_t i = 0; i < count; i++) {
		bool equal = found[i] == wanted[i] || (isnan(found[i]) && isnan(wanted[i]));
		if (!equal && !(fabs((double)found[i] - (double)wanted[i]) <= limit))
			ck_abort_msg("number %zu is %.9g, should be %.9g", i, (double)found[i],
			             (double)wanted[i]);
	}
}
