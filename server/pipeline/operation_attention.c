#include "pipeline/operation.h"

#include "codec/attention_outputs.h"
#include "codec/saturating.h"
#include "pipeline/attention_key.h"
#include "pipeline/attention_sequence.h"
#include "pipeline/calls.h"

#include <stdlib.h>

/* ---- parse: sizes */

static double linear_work(const attn_linear *linear, size_t rows)
{
	const bool identity = linear->weight == NULL && linear->packed == NULL;
	return identity ? 0 : 2.0 * (double)rows * (double)linear->in * (double)linear->out;
}

#define WORK_OF_SOFTMAX 20.0 /* what one score costs beside its products, as floating point operations */

static double sequence_work(const struct attention_request *request)
{
	const attn_shape *shape = &request->shape;
	double scores = (double)shape->heads * (double)shape->queries * (double)shape->keys;
	double work = scores * (2.0 * (double)(shape->head_width + shape->value_width) + WORK_OF_SOFTMAX);
	if (request->split_heads)
		return work;
	const attn_layer *layer = &request->layer;
	size_t keys = shape->keys - shape->past;
	return work + linear_work(&layer->query, shape->queries) + linear_work(&layer->key, keys) +
	       linear_work(&layer->value, keys) + linear_work(&layer->output, shape->queries);
}

static size_t sequence_scores(const attn_shape *shape)
{
	return saturating_mul(shape->heads, saturating_mul(shape->queries, shape->keys));
}

/* A sequence whose outputs are all empty is not computed: there may be millions of them in a small body. */
static void fill_sizes(struct job *job)
{
	const struct attention_request *request = job->attention;
	const attn_shape *shape = &request->shape;
	job->length = shape->queries > shape->keys ? shape->queries : shape->keys;
	job->heads = shape->heads;
	job->width = shape->heads * shape->head_width;
	job->sequences = attention_request_output_bytes(request) > 0 ? request->batch : 0;
	job->tokens = saturating_mul(job->sequences, job->length);
	job->scores = saturating_mul(job->sequences, sequence_scores(shape));
	job->work = (double)job->sequences * sequence_work(request);
}

/* ---- parse: the charge */

/* What the job holds from here to its reply, when a call holds at most max_sequences sequences. */
static size_t bytes_needed(const struct attention_request *request, size_t max_sequences)
{
	const attn_shape *shape = &request->shape;
	size_t together = request->batch < max_sequences ? request->batch : max_sequences;
	size_t scratch = request->split_heads
	                     ? attn_attend_scratch_bytes(shape, &request->options, together)
	                     : attn_layer_scratch_bytes(&request->layer, shape->queries, shape->keys,
	                                                shape->past, &request->options, together);
	size_t bytes = saturating_add(scratch, attention_request_input_bytes(request));
	bytes = saturating_add(bytes, attention_request_output_bytes(request));
	return saturating_add(bytes, attention_request_reply_bytes(request));
}

static void refuse_never(struct job *job, size_t bytes, size_t max_sequences)
{
	struct attention_request *request = job->attention;
	size_t limit = job->budget->limit;
	attention_outputs_ask(request, WEIGHTS_NONE);
	size_t without = bytes_needed(request, max_sequences);
	if (without <= limit && without < bytes)
		problem_set(&job->problem, PROBLEM_NEVER_FITS, "",
		            "the request needs %zu bytes of memory, more than the limit of %zu bytes; with "
		            "\"weights\": false it needs %zu, which fits",
		            bytes, limit, without);
	else
		problem_set(
		    &job->problem, PROBLEM_NEVER_FITS, "",
		    "the request needs %zu bytes of memory, more than the limit of %zu bytes; fewer or "
		    "shorter sequences would fit",
		    bytes, limit);
}

/* The body is gone: the charge for it becomes one for the tensors, scratch and reply. */
static bool charge(struct job *job, size_t max_sequences)
{
	size_t bytes = bytes_needed(job->attention, max_sequences);
	enum budget_result result = job_charge_parsed(job, bytes);
	if (result == BUDGET_NEVER)
		refuse_never(job, bytes, max_sequences);
	return result == BUDGET_OK;
}

static void attention_parse(struct job *job, attn_executor *executor, const struct attention_limits *limits,
                            size_t max_sequences)
{
	const attn_model *model = job->model != NULL ? model_instance_model(job->model) : NULL;
	job->attention = attention_request_parse(job->body, job->body_length, job->forms, model, limits,
	                                         executor, &job->problem);
	free(job->body);
	job->body = NULL;
	if (job->attention == NULL)
		return;
	job_shorten_deadline(job, job->attention->timeout_ms);
	fill_sizes(job);
	attention_key_fill(job);
	if (charge(job, max_sequences) && !attention_request_reserve(job->attention))
		problem_set(&job->problem, PROBLEM_MEMORY, "", "the system refused %zu bytes for the results",
		            attention_request_output_bytes(job->attention));
}

/* ---- compute: calls of the library; all jobs of a batch are one lot */

static size_t lot_count(const struct call_lot *lot, const struct job *job)
{
	(void)lot;
	return job->sequences;
}

static bool fill_heads(const struct call_lot *lot, const struct job *job, size_t index, void *item,
                       attn_arena *scratch)
{
	(void)lot;
	(void)scratch;
	*(attn_sequence *)item = attention_sequence_of_heads(job->attention, index);
	return true;
}

static bool fill_layer(const struct call_lot *lot, const struct job *job, size_t index, void *item,
                       attn_arena *scratch)
{
	(void)lot;
	(void)scratch;
	*(attn_layer_sequence *)item = attention_sequence_through_layer(job->attention, index);
	return true;
}

static attn_status run_heads(const struct call_lot *lot, const void *items, size_t count,
                             const struct call_means *means)
{
	const struct attention_request *like = lot->like->attention;
	return attn_attend(means->kernels, means->executor, &like->shape, &like->options, items, count);
}

static attn_status run_layer(const struct call_lot *lot, const void *items, size_t count,
                             const struct call_means *means)
{
	const struct attention_request *like = lot->like->attention;
	const attn_shape *shape = &like->shape;
	return attn_layer_run(means->kernels, means->executor, &like->layer, shape->queries, shape->keys,
	                      shape->past, &like->options, items, count);
}

static attn_status compute_together(struct job *const *jobs, size_t count, const struct call_means *means)
{
	bool heads = jobs[0]->attention->split_heads;
	const struct call_lot lot = {
	    .like = jobs[0],
	    .length = jobs[0]->length,
	    .scores = sequence_scores(&jobs[0]->attention->shape),
	    .item_size = heads ? sizeof(attn_sequence) : sizeof(attn_layer_sequence),
	    .count = lot_count,
	    .fill = heads ? fill_heads : fill_layer,
	    .run = heads ? run_heads : run_layer,
	};
	return calls_run(jobs, count, &lot, means);
}

static void attention_compute(struct job **batch, size_t count, const attn_kernels *kernels,
                              attn_executor *executor, size_t max_sequences, size_t max_scores)
{
	calls_compute(batch, count, compute_together,
	              &(struct call_means){kernels, executor, max_sequences, max_scores});
}

/* ---- format */

static void attention_format(struct job *job, attn_executor *executor)
{
	char *reply = attention_reply_format(job->attention, executor, &job->reply_length, &job->problem);
	attention_request_free(job->attention);
	job->attention = NULL;
	job_take_reply(job, reply);
}

const struct operation operation_attention = {
    .metric = METRICS_ATTENTION,
    .parse = attention_parse,
    .compute = attention_compute,
    .format = attention_format,
};

const struct operation operation_model_attention = {
    .metric = METRICS_MODEL_ATTENTION,
    .parse = attention_parse,
    .compute = attention_compute,
    .format = attention_format,
};
