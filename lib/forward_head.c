#include "forward_head.h"

#include <math.h>
#include <string.h>

#include "linear.h"
#include "rounding.h"
#include "scratch_size.h"
#include "top_keys.h"

/* ---- pooling */

struct pooling {
	const struct attn_rows *rows;
	const attn_forward_call *call;
	const float *x;
};

/* out [width] = mean of rows [length, width], summed in double. */
static void mean_write(const float *x, size_t length, size_t width, float *out)
{
	enum { BLOCK = 64 };
	for (size_t first = 0; first < width; first += BLOCK) {
		const size_t columns = attn_smaller(width - first, BLOCK);
		double sums[BLOCK] = {0};
		for (size_t row = 0; row < length; row++)
			for (size_t i = 0; i < columns; i++)
				sums[i] += (double)x[row * width + first + i];
		for (size_t i = 0; i < columns; i++)
			out[first + i] = (float)(sums[i] / (double)length);
	}
}

/* Divides by the length of the vector; zeros stay. */
static void normalize(float *vector, size_t width)
{
	double squares = 0;
	for (size_t i = 0; i < width; i++)
		squares += (double)vector[i] * (double)vector[i];
	const double factor = squares > 0 ? 1 / sqrt(squares) : 0;
	for (size_t i = 0; i < width; i++)
		vector[i] = (float)((double)vector[i] * factor);
}

static attn_status pool_tile(void *arg, size_t s, attn_arena *scratch)
{
	(void)scratch;
	const struct pooling *pooling = arg;
	const struct attn_rows *rows = pooling->rows;
	const float *x = pooling->x + s * rows->length * rows->width;
	float *out = rows->sequences[s].pooled;
	const size_t bytes = rows->width * sizeof(*out);
	if (out == NULL)
		return ATTN_OK;
	if (rows->length == 0)
		memset(out, 0, bytes);
	else if (pooling->call->pooling == ATTN_POOL_MEAN)
		mean_write(x, rows->length, rows->width, out);
	else
		memcpy(out,
		       pooling->call->pooling == ATTN_POOL_FIRST ? x : x + (rows->length - 1) * rows->width,
		       bytes);
	if (pooling->call->normalize)
		normalize(out, rows->width);
	return ATTN_OK;
}

attn_status attn_pooled_write(attn_executor *executor, const struct attn_rows *rows,
                              const attn_forward_call *call, const float *x)
{
	struct pooling pooling = {.rows = rows, .call = call, .x = x};
	bool wanted = false;
	for (size_t s = 0; s < rows->count; s++)
		wanted = wanted || rows->sequences[s].pooled != NULL;
	return wanted ? executor->parallel_for(executor, rows->count, pool_tile, &pooling) : ATTN_OK;
}

/* ---- logits */

/* Rows that go through the head, and where their logits go: each of [rows]. */
struct logits {
	const float **x;  /* [count], each [rows, width] */
	float **y;        /* [count], each [rows, vocabulary] */
	size_t *sequence; /* [count] whose they are */
	size_t rows, count;
};

bool attn_last_logits_wanted(const attn_forward_sequence *sequence)
{
	return sequence->logits != NULL || sequence->top_logit_indices != NULL ||
	       sequence->top_logit_values != NULL;
}

bool attn_logits_wanted(const attn_forward_sequence *sequence)
{
	return sequence->logits_all != NULL || attn_last_logits_wanted(sequence);
}

static bool logits_new(struct logits *logits, attn_arena *scratch, size_t rows, size_t most)
{
	*logits = (struct logits){
	    .x = attn_arena_alloc(scratch, most * sizeof(*logits->x)),
	    .y = attn_arena_alloc(scratch, most * sizeof(*logits->y)),
	    .sequence = attn_arena_alloc(scratch, most * sizeof(*logits->sequence)),
	    .rows = rows,
	};
	return logits->x != NULL && logits->y != NULL && logits->sequence != NULL;
}

/* The rows times the head's scale, copied unless that is 1. */
static attn_status logits_scale(struct logits *logits, attn_arena *scratch, const attn_head *head)
{
	const size_t numbers = logits->rows * head->linear.in;
	if (head->scale == 1 || logits->count == 0)
		return ATTN_OK;
	float *scaled = attn_arena_floats(scratch, logits->count * numbers);
	if (scaled == NULL)
		return ATTN_MEMORY;
	for (size_t i = 0; i < logits->count; i++, scaled += numbers) {
		memcpy(scaled, logits->x[i], numbers * sizeof(*scaled));
		attn_row_scale(scaled, head->scale, numbers);
		logits->x[i] = scaled;
	}
	return ATTN_OK;
}

static attn_status logits_run(struct logits *logits, const attn_kernels *kernels, attn_executor *executor,
                              const attn_head *head)
{
	attn_status status = logits_scale(logits, executor->scratch, head);
	if (status != ATTN_OK || logits->count == 0)
		return status;
	const struct attn_linear_call call = {.linear = &head->linear,
	                                      .rows = logits->rows,
	                                      .count = logits->count,
	                                      .x = {.sequences = logits->x},
	                                      .y = {.sequences = logits->y}};
	return attn_linear_run(kernels, executor, &call, 1);
}

/* Logits of all positions. */
static attn_status all_write(const attn_kernels *kernels, attn_executor *executor, const attn_head *head,
                             const struct attn_rows *rows, const float *x)
{
	struct logits logits;
	if (!logits_new(&logits, executor->scratch, rows->length, rows->count))
		return ATTN_MEMORY;
	for (size_t s = 0; s < rows->count; s++) {
		if (rows->sequences[s].logits_all == NULL)
			continue;
		logits.x[logits.count] = x + s * rows->length * rows->width;
		logits.y[logits.count] = rows->sequences[s].logits_all;
		logits.sequence[logits.count++] = s;
	}
	return logits_run(&logits, kernels, executor, head);
}

struct top {
	const struct logits *logits;
	const struct attn_rows *rows;
	size_t vocabulary, count;
};

static attn_status top_tile(void *arg, size_t tile, attn_arena *scratch)
{
	const struct top *top = arg;
	const attn_forward_sequence *sequence = &top->rows->sequences[top->logits->sequence[tile]];
	const float *logits = top->logits->y[tile];
	if (sequence->top_logit_indices == NULL && sequence->top_logit_values == NULL)
		return ATTN_OK;
	size_t *order = attn_arena_alloc(scratch, top->count * sizeof(*order));
	if (order == NULL)
		return ATTN_MEMORY;
	attn_top_keys(logits, top->vocabulary, top->count, order);
	for (size_t i = 0; i < top->count; i++) {
		if (sequence->top_logit_indices != NULL)
			sequence->top_logit_indices[i] = (int64_t)order[i];
		if (sequence->top_logit_values != NULL)
			sequence->top_logit_values[i] = logits[order[i]];
	}
	return ATTN_OK;
}

/* Logits of the last position, and the largest of them. */
static attn_status last_write(const attn_kernels *kernels, attn_executor *executor, const attn_head *head,
                              const struct attn_rows *rows, const attn_forward_call *call, const float *x)
{
	const size_t vocabulary = head->linear.out;
	struct logits logits;
	if (!logits_new(&logits, executor->scratch, 1, rows->count))
		return ATTN_MEMORY;
	for (size_t s = 0; s < rows->count; s++) {
		const attn_forward_sequence *sequence = &rows->sequences[s];
		if (!attn_last_logits_wanted(sequence))
			continue;
		float *y = sequence->logits != NULL ? sequence->logits
		                                    : attn_arena_floats(executor->scratch, vocabulary);
		if (y == NULL)
			return ATTN_MEMORY;
		logits.x[logits.count] = x + ((s + 1) * rows->length - 1) * rows->width;
		logits.y[logits.count] = y;
		logits.sequence[logits.count++] = s;
	}
	attn_status status = logits_run(&logits, kernels, executor, head);
	struct top top = {&logits, rows, vocabulary, call->top_logits};
	if (status != ATTN_OK || top.count == 0 || logits.count == 0)
		return status;
	return executor->parallel_for(executor, logits.count, top_tile, &top);
}

attn_status attn_logits_write(const attn_kernels *kernels, attn_executor *executor, const attn_head *head,
                              const struct attn_rows *rows, const attn_forward_call *call, const float *x)
{
	const attn_arena_mark mark = attn_arena_here(executor->scratch);
	attn_status status = all_write(kernels, executor, head, rows, x);
	attn_arena_rewind(executor->scratch, mark);
	if (status == ATTN_OK)
		status = last_write(kernels, executor, head, rows, call, x);
	attn_arena_rewind(executor->scratch, mark);
	return status;
}

/* Of logits of so many rows of each sequence. */
static size_t logits_bytes(const attn_head *head, size_t rows, size_t count)
{
	size_t bytes = attn_linear_scratch_bytes(&head->linear, rows, count);
	attn_scratch_add(&bytes, (const size_t[]){count, sizeof(float *)}, 2);
	attn_scratch_add(&bytes, (const size_t[]){count, sizeof(float *)}, 2);
	attn_scratch_add(&bytes, (const size_t[]){count, sizeof(size_t)}, 2);
	if (head->scale != 1)
		attn_scratch_add(&bytes, (const size_t[]){count, rows, head->linear.in, sizeof(float)}, 4);
	return bytes;
}

size_t attn_logits_scratch_bytes(const attn_head *head, const attn_forward_call *call, size_t length,
                                 size_t count)
{
	size_t last = logits_bytes(head, 1, count);
	size_t each = attn_round_up(head->linear.out, ATTN_SCRATCH_ALIGNMENT);
	attn_scratch_add(&last, (const size_t[]){count, each, sizeof(float)}, 3);
	attn_scratch_add(&last, (const size_t[]){attn_logits_tile_bytes(call)}, 1);
	return attn_larger(last, logits_bytes(head, length, count));
}

size_t attn_logits_tile_bytes(const attn_forward_call *call)
{
	size_t bytes = 0;
	attn_scratch_add(&bytes, (const size_t[]){call->top_logits, sizeof(size_t)}, 2);
	return bytes;
}
