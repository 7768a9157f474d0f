#include "pipeline/operation.h"

#include "codec/attention_outputs.h"
#include "observe/clock.h"
#include "pipeline/attention_key.h"
#include "pipeline/attention_sequence.h"

#include <stdlib.h>

/* ---- parse: sizes */

static double linear_work(const attn_linear *linear, size_t rows)
{
	return linear->weight == NULL ? 0 : 2.0 * (double)rows * (double)linear->in * (double)linear->out;
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

static size_t saturating_mul(size_t a, size_t b)
{
	size_t product;
	return attn_size_mul(a, b, &product) ? product : SIZE_MAX;
}

static size_t saturating_add(size_t a, size_t b)
{
	size_t sum;
	return attn_size_add(a, b, &sum) ? sum : SIZE_MAX;
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
	switch (job_charge(job, bytes)) {
	case BUDGET_OK:
		return true;
	case BUDGET_NEVER:
		refuse_never(job, bytes, max_sequences);
		return false;
	case BUDGET_LATER:
		break;
	}
	return problem_set(&job->problem, PROBLEM_BUDGET_FULL, "",
	                   "the request needs %zu bytes of memory; %zu of %zu are in use now", bytes,
	                   budget_used(job->budget), job->budget->limit);
}

static void shorten_deadline(struct job *job)
{
	uint64_t timeout_ms = job->attention->timeout_ms;
	if (timeout_ms == 0 || timeout_ms > UINT64_MAX / CLOCK_NS_PER_MS)
		return;
	uint64_t timeout = timeout_ms * CLOCK_NS_PER_MS;
	if (job->deadline > job->arrived && timeout < job->deadline - job->arrived)
		job->deadline = job->arrived + timeout;
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
	shorten_deadline(job);
	fill_sizes(job);
	attention_key_fill(job);
	if (charge(job, max_sequences) && !attention_request_reserve(job->attention))
		problem_set(&job->problem, PROBLEM_MEMORY, "", "the system refused %zu bytes for the results",
		            attention_request_output_bytes(job->attention));
}

/* ---- compute: calls of the library */

/* Where a walk over the sequences of several jobs stands. */
struct cursor {
	struct job *const *jobs;
	size_t count;
	size_t job, sequence;
};

/* The sequences of one library call: one of the arrays, by split_heads. */
struct slice {
	size_t room, count;
	size_t first_job, last_job; /* whose sequences it holds */
	attn_layer_sequence *through_layer;
	attn_sequence *of_heads;
};

struct means {
	const attn_kernels *kernels;
	attn_executor *executor;
	size_t most; /* sequences a call, at least 1 */
};

static void slice_fill(struct slice *slice, struct cursor *at)
{
	slice->count = 0;
	while (slice->count < slice->room && at->job < at->count) {
		const struct attention_request *request = at->jobs[at->job]->attention;
		if (at->sequence == at->jobs[at->job]->sequences) {
			at->job++;
			at->sequence = 0;
			continue;
		}
		if (slice->count == 0)
			slice->first_job = at->job;
		slice->last_job = at->job;
		if (request->split_heads)
			slice->of_heads[slice->count++] =
			    attention_sequence_of_heads(request, at->sequence++);
		else
			slice->through_layer[slice->count++] =
			    attention_sequence_through_layer(request, at->sequence++);
	}
}

static attn_status slice_run(const struct slice *slice, const struct attention_request *like,
                             const struct means *means)
{
	if (like->split_heads)
		return attn_attend(means->kernels, means->executor, &like->shape, &like->options,
		                   slice->of_heads, slice->count);
	return attn_layer_run(means->kernels, means->executor, &like->layer, like->shape.queries,
	                      like->shape.keys, like->shape.past, &like->options, slice->through_layer,
	                      slice->count);
}

static bool slice_reserve(struct slice *slice, bool split_heads, attn_arena *scratch)
{
	if (split_heads)
		slice->of_heads = attn_arena_alloc(scratch, slice->room * sizeof(*slice->of_heads));
	else
		slice->through_layer = attn_arena_alloc(scratch, slice->room * sizeof(*slice->through_layer));
	return slice->of_heads != NULL || slice->through_layer != NULL;
}

static void note_call(struct job *const *jobs, const struct slice *slice)
{
	for (size_t i = slice->first_job; i <= slice->last_job; i++) {
		if (jobs[i]->batch_sequences < slice->count)
			jobs[i]->batch_sequences = slice->count;
	}
}

/* All sequences of the jobs in as few calls as the most allows. */
static attn_status compute_together(struct job *const *jobs, size_t count, const struct means *means)
{
	const struct attention_request *like = jobs[0]->attention;
	size_t total = 0;
	for (size_t i = 0; i < count; i++)
		total += jobs[i]->sequences;
	struct slice slice = {.room = total < means->most ? total : means->most};
	if (!slice_reserve(&slice, like->split_heads, means->executor->scratch))
		return ATTN_MEMORY;

	struct cursor at = {.jobs = jobs, .count = count};
	attn_status status = ATTN_OK;
	for (size_t done = 0; done < total && status == ATTN_OK; done += slice.count) {
		slice_fill(&slice, &at);
		metrics_batch(slice.count, slice.count * jobs[slice.first_job]->length);
		status = slice_run(&slice, like, means);
		if (status == ATTN_OK)
			note_call(jobs, &slice);
	}
	return status;
}

static attn_status compute_rewound(struct job *const *jobs, size_t count, const struct means *means)
{
	attn_arena *scratch = means->executor->scratch;
	attn_arena_mark mark = attn_arena_here(scratch);
	attn_status status = compute_together(jobs, count, means);
	attn_arena_rewind(scratch, mark);
	return status;
}

static void attention_compute(struct job **batch, size_t count, const attn_kernels *kernels,
                              attn_executor *executor, size_t max_sequences, size_t max_scores)
{
	size_t scores = sequence_scores(&batch[0]->attention->shape);
	size_t by_scores = scores > 0 ? max_scores / scores : max_sequences;
	size_t most = by_scores < max_sequences ? by_scores : max_sequences;
	struct means means = {.kernels = kernels, .executor = executor, .most = most > 0 ? most : 1};

	attn_status status = compute_rewound(batch, count, &means);
	if (status == ATTN_OK)
		return;
	/* One by one, so that what one job meets does not harm its mates; a call is cancelled for all of
	 * them. */
	for (size_t i = 0; i < count; i++) {
		attn_status alone = status;
		if (count > 1 && status != ATTN_CANCELLED)
			alone = compute_rewound(&batch[i], 1, &means);
		if (alone != ATTN_OK)
			problem_set_status(&batch[i]->problem, alone);
	}
}

/* ---- format */

static void attention_format(struct job *job, attn_executor *executor)
{
	job->reply = attention_reply_format(job->attention, executor, &job->reply_length, &job->problem);
	job->content_type = body_form_media_type(job->forms.reply);
	attention_request_free(job->attention);
	job->attention = NULL;
	if (job->reply != NULL && job->reply_length < job->charged)
		job_charge(job, job->reply_length);
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
