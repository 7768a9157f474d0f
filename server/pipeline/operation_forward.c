#include "pipeline/operation.h"

#include "codec/saturating.h"
#include "pipeline/calls.h"
#include "pipeline/forward_call.h"
#include "pipeline/forward_key.h"

#include <stdlib.h>

/* ---- parse: sizes */

/* A sequence without positions has no results but zeros and is not computed. */
static bool is_computed(const struct forward_group *group)
{
	size_t positions = 0;
	for (size_t stack = 0; stack < ATTN_STACKS; stack++)
		positions |= group->lengths[stack];
	return group->count > 0 && positions > 0;
}

static size_t longest(const size_t lengths[ATTN_STACKS])
{
	size_t length = 0;
	for (size_t stack = 0; stack < ATTN_STACKS; stack++)
		length = lengths[stack] > length ? lengths[stack] : length;
	return length;
}

/* Scores of the largest attention layer that a sequence of those lengths passes. */
static size_t sequence_scores(const struct forward_request *request, const size_t lengths[ATTN_STACKS])
{
	size_t most = 0;
	for (size_t kind = 0; kind < ATTN_STACK_KINDS; kind++) {
		size_t scores = saturating_mul(
		    forward_request_heads(request, kind),
		    saturating_mul(lengths[forward_kind_queries(kind)], lengths[forward_kind_keys(kind)]));
		if (request->layer_counts[kind] > 0 && scores > most)
			most = scores;
	}
	return most;
}

/* Head width of the model's first layer of attention. */
static size_t head_width(const attn_model *model)
{
	const attn_layer *layer = attn_model_layer(model, 0, ATTN_SELF);
	return layer != NULL ? layer->head_width : 0;
}

/* What the calls for one request take, over all its groups. */
struct needs {
	size_t scratch; /* of the largest call */
	double work;    /* of all */
};

static void add_group(struct needs *needs, const struct job *job, const struct forward_group *group,
                      const struct forward_call *call, size_t max_sequences)
{
	const attn_model *model = model_instance_model(job->model);
	size_t together = group->count < max_sequences ? group->count : max_sequences;
	size_t each = sizeof(attn_forward_sequence) + forward_sequence_room(job->forward);
	size_t scratch = saturating_add(attn_forward_scratch_bytes(model, &call->call, together),
	                                saturating_mul(together, each));
	needs->scratch = scratch > needs->scratch ? scratch : needs->scratch;
	needs->work += (double)group->count * attn_forward_work(model, &call->call);
}

/* false: no memory. */
static bool find_needs(const struct job *job, size_t max_sequences, struct needs *out)
{
	const struct forward_request *request = job->forward;
	const struct forward_groups *groups = &request->groups;
	size_t room = forward_call_room(request);
	size_t *queries = malloc(room + 1);
	*out = (struct needs){.scratch = room};
	if (queries == NULL)
		return false;
	for (size_t i = 0; i < groups->count; i++) {
		struct forward_call call;
		if (!is_computed(&groups->list[i]))
			continue;
		forward_call_make(request, groups->list[i].lengths, queries, &call);
		add_group(out, job, &groups->list[i], &call, max_sequences);
	}
	out->scratch = saturating_add(out->scratch, room);
	free(queries);
	return true;
}

static void fill_sizes(struct job *job, const struct needs *needs)
{
	const struct forward_request *request = job->forward;
	const struct forward_groups *groups = &request->groups;
	job->heads = request->info.stacks[ATTN_FIRST_STACK].heads;
	job->width = job->heads * head_width(model_instance_model(job->model));
	job->work = needs->work;
	for (size_t i = 0; i < groups->count; i++) {
		const struct forward_group *group = &groups->list[i];
		size_t length = longest(group->lengths);
		job->length = length > job->length ? length : job->length;
		if (!is_computed(group))
			continue;
		job->sequences += group->count;
		job->tokens = saturating_add(job->tokens, saturating_mul(group->count, length));
		job->scores = saturating_add(
		    job->scores, saturating_mul(group->count, sequence_scores(request, group->lengths)));
	}
}

/* ---- parse: the charge */

static void refuse_never(struct job *job, size_t bytes)
{
	struct forward_advice advice = forward_request_advice(job->forward);
	size_t limit = job->budget->limit;
	if (advice.output == NULL)
		problem_set(
		    &job->problem, PROBLEM_NEVER_FITS, "",
		    "the request needs %zu bytes of memory, more than the limit of %zu bytes; fewer or "
		    "shorter sequences would fit",
		    bytes, limit);
	else
		problem_set(
		    &job->problem, PROBLEM_NEVER_FITS, "",
		    "the request needs %zu bytes of memory, more than the limit of %zu bytes; most of "
		    "its reply is `%s`: %s",
		    bytes, limit, advice.output, advice.instead);
}

/* The body is gone: the charge for it becomes one for the inputs, scratch and reply. */
static bool charge(struct job *job, const struct needs *needs)
{
	const struct forward_request *request = job->forward;
	size_t bytes = saturating_add(needs->scratch, forward_request_input_bytes(request));
	bytes = saturating_add(bytes, forward_request_output_bytes(request));
	bytes = saturating_add(bytes, forward_request_reply_bytes(request));
	enum budget_result result = job_charge_parsed(job, bytes);
	if (result == BUDGET_NEVER)
		refuse_never(job, bytes);
	return result == BUDGET_OK;
}

static void forward_parse(struct job *job, attn_executor *executor, const struct attention_limits *limits,
                          size_t max_sequences)
{
	struct needs needs;
	struct text_reader reader = tokenizer_reader(model_instance_tokenizer(job->model));
	job->forward =
	    forward_request_parse(job->body, job->body_length, job->forms, model_instance_model(job->model),
	                          &reader, limits, executor, &job->problem);
	free(job->body);
	job->body = NULL;
	if (job->forward == NULL)
		return;
	job_shorten_deadline(job, job->forward->timeout_ms);
	if (!find_needs(job, max_sequences, &needs)) {
		problem_set_status(&job->problem, ATTN_MEMORY);
		return;
	}
	fill_sizes(job, &needs);
	forward_key_fill(job);
	if (charge(job, &needs) && !forward_request_reserve(job->forward))
		problem_set(&job->problem, PROBLEM_MEMORY, "", "the system refused %zu bytes for the results",
		            forward_request_output_bytes(job->forward));
}

/* ---- compute: a lot for each pair of lengths, over all jobs */

/* The group of those lengths, or NULL. */
static const struct forward_group *find_group(const struct job *job, const size_t lengths[ATTN_STACKS])
{
	const struct forward_groups *groups = &job->forward->groups;
	size_t low = 0, high = groups->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = forward_lengths_compare(groups->list[middle].lengths, lengths);
		if (order == 0)
			return &groups->list[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static const size_t *lengths_of(const struct call_lot *lot)
{
	const struct forward_call *call = lot->shape;
	return call->call.lengths;
}

static size_t lot_count(const struct call_lot *lot, const struct job *job)
{
	const struct forward_group *group = find_group(job, lengths_of(lot));
	return group != NULL ? group->count : 0;
}

static bool lot_fill(const struct call_lot *lot, const struct job *job, size_t index, void *item,
                     attn_arena *scratch)
{
	const struct forward_group *group = find_group(job, lengths_of(lot));
	size_t sequence = job->forward->groups.order[group->first + index];
	return forward_sequence_fill(job->forward, sequence, item, scratch);
}

static attn_status lot_run(const struct call_lot *lot, const void *items, size_t count,
                           const struct call_means *means)
{
	const struct forward_call *call = lot->shape;
	return attn_model_forward(model_instance_model(lot->like->model), means->kernels, means->executor,
	                          &call->call, items, count);
}

/* All sequences of those lengths. */
static attn_status compute_lot(struct job *const *jobs, size_t count, const size_t lengths[ATTN_STACKS],
                               const struct call_means *means)
{
	const struct forward_request *like = jobs[0]->forward;
	attn_arena *scratch = means->executor->scratch;
	attn_arena_mark mark = attn_arena_here(scratch);
	struct forward_call call;
	size_t *queries = attn_arena_alloc(scratch, forward_call_room(like));
	if (queries == NULL)
		return ATTN_MEMORY;
	forward_call_make(like, lengths, queries, &call);
	const struct call_lot lot = {
	    .like = jobs[0],
	    .shape = &call,
	    .length = longest(lengths),
	    .scores = sequence_scores(like, lengths),
	    .item_size = sizeof(attn_forward_sequence),
	    .count = lot_count,
	    .fill = lot_fill,
	    .run = lot_run,
	};
	attn_status status = calls_run(jobs, count, &lot, means);
	attn_arena_rewind(scratch, mark);
	return status;
}

/* The least lengths of any job's groups after those, NULL at first; NULL when there are no more. */
static const size_t *next_lengths(struct job *const *jobs, size_t count, const size_t *after)
{
	const size_t *least = NULL;
	for (size_t i = 0; i < count; i++) {
		const struct forward_groups *groups = &jobs[i]->forward->groups;
		for (size_t j = 0; j < groups->count; j++) {
			const struct forward_group *group = &groups->list[j];
			if (!is_computed(group) ||
			    (after != NULL && forward_lengths_compare(group->lengths, after) <= 0))
				continue;
			if (least == NULL || forward_lengths_compare(group->lengths, least) < 0)
				least = group->lengths;
			break;
		}
	}
	return least;
}

static attn_status compute_together(struct job *const *jobs, size_t count, const struct call_means *means)
{
	attn_status status = ATTN_OK;
	const size_t *lengths = NULL;
	while (status == ATTN_OK && (lengths = next_lengths(jobs, count, lengths)) != NULL)
		status = compute_lot(jobs, count, lengths, means);
	return status;
}

static void forward_compute(struct job **batch, size_t count, const attn_kernels *kernels,
                            attn_executor *executor, size_t max_sequences, size_t max_scores)
{
	calls_compute(batch, count, compute_together,
	              &(struct call_means){kernels, executor, max_sequences, max_scores});
}

/* ---- format */

static void forward_format(struct job *job, attn_executor *executor)
{
	char *reply = forward_reply_format(job->forward, executor, &job->reply_length, &job->problem);
	forward_request_free(job->forward);
	job->forward = NULL;
	job_take_reply(job, reply);
}

const struct operation operation_forward = {
    .metric = METRICS_FORWARD,
    .parse = forward_parse,
    .compute = forward_compute,
    .format = forward_format,
};
