#include "codec/forward_members.h"

#include "codec/forward_fields.h"
#include "codec/saturating.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- shapes */

static size_t extent_of(const struct forward_dim *dim, const size_t lengths[ATTN_STACKS])
{
	size_t length = lengths[dim->stack];
	switch (dim->extent) {
	case DIM_FIXED:
		return dim->number;
	case DIM_LENGTH:
		return length;
	case DIM_AT_MOST:
		break;
	}
	return length < dim->number ? length : dim->number;
}

size_t forward_member_dims(const struct forward_member *member, const size_t lengths[ATTN_STACKS],
                           size_t dims[FORWARD_MEMBER_RANK])
{
	size_t count = 1;
	for (size_t i = 0; i < member->rank; i++) {
		dims[i] = extent_of(&member->dims[i], lengths);
		count = saturating_mul(count, dims[i]);
	}
	for (size_t i = 0; i < member->rank; i++)
		count = dims[i] == 0 ? 0 : count;
	return count;
}

static bool is_ragged(const struct forward_request *request, const struct forward_member *member)
{
	for (size_t i = 0; i < member->rank; i++) {
		const struct forward_dim *dim = &member->dims[i];
		if (dim->extent != DIM_FIXED && request->inputs[dim->stack].ragged)
			return true;
	}
	return false;
}

/* Counts the elements, and where each group's begin. */
static bool measure(const struct forward_request *request, struct forward_member *member)
{
	const struct forward_groups *groups = &request->groups;
	size_t dims[FORWARD_MEMBER_RANK];
	member->ragged = is_ragged(request, member);
	member->count = 0;
	if (member->ragged) {
		member->starts = malloc(groups->count * sizeof(*member->starts));
		if (member->starts == NULL)
			return false;
	}
	for (size_t i = 0; i < groups->count; i++) {
		size_t each = forward_member_dims(member, groups->list[i].lengths, dims);
		if (member->ragged)
			member->starts[i] = member->count;
		member->count = saturating_add(member->count, saturating_mul(each, groups->list[i].count));
	}
	return true;
}

/* Whether the memory is the input's. */
static bool is_input(const struct forward_member *member)
{
	return member->result == FORWARD_RESULT_TOKENS || member->result == FORWARD_RESULT_RANGES;
}

size_t forward_member_offset(const struct forward_request *request, const struct forward_member *member,
                             size_t sequence)
{
	const struct forward_groups *groups = &request->groups;
	size_t group = groups->group[sequence], dims[FORWARD_MEMBER_RANK];
	const struct forward_group *of = &groups->list[group];
	if (is_input(member))
		return (member->result == FORWARD_RESULT_RANGES ? 2 : 1) *
		       request->inputs[member->stack].starts[sequence];
	size_t each = forward_member_dims(member, of->lengths, dims);
	if (!member->ragged)
		return sequence * each;
	return member->starts[group] + (groups->place[sequence] - of->first) * each;
}

/* ---- the list */

struct listing {
	struct forward_request *request;
	size_t room;
	bool failed; /* no memory */
};

static struct forward_dim fixed(size_t number)
{
	return (struct forward_dim){.extent = DIM_FIXED, .number = number};
}

static struct forward_dim length_of(size_t stack)
{
	return (struct forward_dim){.extent = DIM_LENGTH, .stack = stack};
}

static struct forward_dim at_most(size_t number, size_t stack)
{
	return (struct forward_dim){.extent = DIM_AT_MOST, .number = number, .stack = stack};
}

/* Adds a member whose path the format makes; NULL once memory is refused. */
static struct forward_member *list(struct listing *listing, const struct forward_member *like,
                                   const char *format, ...) __attribute__((format(printf, 3, 4)));

static struct forward_member *list(struct listing *listing, const struct forward_member *like,
                                   const char *format, ...)
{
	struct forward_request *request = listing->request;
	if (!listing->failed && request->member_count == listing->room) {
		size_t room = listing->room > 0 ? 2 * listing->room : 16;
		struct forward_member *members = realloc(request->members, room * sizeof(*members));
		listing->failed = members == NULL;
		request->members = members != NULL ? members : request->members;
		listing->room = members != NULL ? room : listing->room;
	}
	if (listing->failed)
		return NULL;
	struct forward_member *member = &request->members[request->member_count];
	*member = *like;
	member->owner = request->member_count++;
	va_list args;
	va_start(args, format);
	vsnprintf(member->path, sizeof(member->path), format, args);
	va_end(args);
	listing->failed = !measure(request, member);
	return member;
}

/* ".encoder" and so on, where the model has kinds. */
static const char *suffix(const struct forward_request *request, size_t kind)
{
	static const char *const names[ATTN_STACK_KINDS] = {".encoder", ".decoder", ".cross"};
	return forward_request_has_kinds(request) ? names[kind] : "";
}

static void list_tokens(struct listing *listing)
{
	static const char *const paths[ATTN_STACKS][2] = {{"tokens", "token_offsets"},
	                                                  {"decoder_tokens", "decoder_token_offsets"}};
	for (size_t stack = 0; stack < ATTN_STACKS; stack++) {
		const struct forward_input *input = &listing->request->inputs[stack];
		struct forward_member like = {.result = FORWARD_RESULT_TOKENS,
		                              .stack = stack,
		                              .integers = true,
		                              .rank = 1,
		                              .dims = {length_of(stack)}};
		if (input->given && input->rows.values != NULL)
			list(listing, &like, "%s", paths[stack][0]);
		like.result = FORWARD_RESULT_RANGES;
		like.rank = 2;
		like.dims[1] = fixed(2);
		if (input->given && input->ranges != NULL)
			list(listing, &like, "%s", paths[stack][1]);
	}
}

/* One hidden state of a stack. */
static struct forward_member hidden_of(const struct forward_request *request, size_t stack, size_t state)
{
	return (struct forward_member){.result = FORWARD_RESULT_HIDDEN,
	                               .stack = stack,
	                               .layer = state,
	                               .rank = 2,
	                               .dims = {length_of(stack), fixed(request->info.stacks[stack].width)}};
}

static void list_hidden(struct listing *listing)
{
	const struct forward_request *request = listing->request;
	size_t owners[ATTN_STACKS] = {0};
	for (size_t stack = 0; stack < ATTN_STACKS && request->wants[FORWARD_HIDDEN]; stack++) {
		struct forward_member like = hidden_of(request, stack, request->info.stacks[stack].layers);
		owners[stack] = request->member_count;
		if (request->inputs[stack].given)
			list(listing, &like, "hidden%s", suffix(request, stack));
	}
	for (size_t stack = 0; stack < ATTN_STACKS && request->wants[FORWARD_HIDDEN_ALL]; stack++) {
		size_t last = request->info.stacks[stack].layers;
		for (size_t state = 0; state <= last && request->inputs[stack].given; state++) {
			struct forward_member like = hidden_of(request, stack, state);
			struct forward_member *member =
			    list(listing, &like, "hidden_all%s.%zu", suffix(request, stack), state);
			if (member != NULL && state == last && request->wants[FORWARD_HIDDEN])
				member->owner = owners[stack];
		}
	}
}

/* The weights of one layer, or their largest. */
static void list_weights_of(struct listing *listing, size_t kind, size_t layer)
{
	const struct forward_request *request = listing->request;
	size_t queries = forward_kind_queries(kind), keys = forward_kind_keys(kind);
	size_t heads =
	    request->heads[kind] != NULL ? request->head_count : forward_request_heads(request, kind);
	struct forward_member like = {
	    .result = FORWARD_RESULT_WEIGHTS,
	    .stack = kind,
	    .layer = layer,
	    .rank = 3,
	    .dims = {fixed(heads),
	             request->queries.values != NULL ? fixed(request->queries.count) : length_of(queries),
	             length_of(keys)},
	};
	if (request->top_k == 0) {
		list(listing, &like, "weights%s.%zu", suffix(request, kind), layer);
		return;
	}
	like.dims[2] = at_most(request->top_k, keys);
	like.result = FORWARD_RESULT_TOP_VALUES;
	struct forward_member indices = like;
	indices.result = FORWARD_RESULT_TOP_INDICES;
	indices.integers = true;
	list(listing, &indices, "weights%s.%zu.indices", suffix(request, kind), layer);
	list(listing, &like, "weights%s.%zu.values", suffix(request, kind), layer);
}

static void list_weights(struct listing *listing)
{
	const struct forward_request *request = listing->request;
	for (size_t kind = 0; kind < ATTN_STACK_KINDS && request->wants[FORWARD_WEIGHTS]; kind++) {
		for (size_t i = 0; i < request->layer_counts[kind]; i++)
			list_weights_of(listing, kind, request->layers[kind][i]);
	}
}

static void list_statistic(struct listing *listing, enum attention_statistic statistic, const char *name)
{
	static const enum forward_result results[ATTENTION_STATISTICS] = {
	    [ATTENTION_ENTROPY] = FORWARD_RESULT_ENTROPY,
	    [ATTENTION_LOGSUMEXP] = FORWARD_RESULT_LOGSUMEXP,
	    [ATTENTION_MAXIMUM] = FORWARD_RESULT_MAXIMUM,
	};
	const struct forward_request *request = listing->request;
	for (size_t kind = 0; kind < ATTN_STACK_KINDS && request->wants_statistic[statistic]; kind++) {
		struct forward_member like = {.result = results[statistic],
		                              .stack = kind,
		                              .lowest = statistic != ATTENTION_ENTROPY,
		                              .rank = 2,
		                              .dims = {fixed(forward_request_heads(request, kind)),
		                                       length_of(forward_kind_queries(kind))}};
		for (size_t i = 0; i < request->layer_counts[kind]; i++) {
			like.layer = request->layers[kind][i];
			list(listing, &like, "statistics.%s%s.%zu", name, suffix(request, kind), like.layer);
		}
	}
}

static void list_rollout(struct listing *listing)
{
	const struct forward_request *request = listing->request;
	for (size_t stack = 0; stack < ATTN_STACKS && request->rollout; stack++) {
		struct forward_member like = {.result = FORWARD_RESULT_ROLLOUT,
		                              .stack = stack,
		                              .rank = 2,
		                              .dims = {length_of(stack), length_of(stack)}};
		if (request->inputs[stack].given)
			list(listing, &like, "rollout%s", suffix(request, stack));
	}
}

static void list_logits(struct listing *listing)
{
	const struct forward_request *request = listing->request;
	size_t last = request->inputs[ATTN_SECOND_STACK].given ? ATTN_SECOND_STACK : ATTN_FIRST_STACK;
	size_t numbers = request->info.logit_count;
	struct forward_member like = {.result = FORWARD_RESULT_LOGITS, .rank = 1, .dims = {fixed(numbers)}};
	if (request->wants[FORWARD_LOGITS])
		list(listing, &like, "logits");
	like = (struct forward_member){
	    .result = FORWARD_RESULT_LOGITS_ALL, .rank = 2, .dims = {length_of(last), fixed(numbers)}};
	if (request->wants[FORWARD_LOGITS_ALL])
		list(listing, &like, "logits_all");
	if (request->top_logits == 0)
		return;
	like = (struct forward_member){.result = FORWARD_RESULT_TOP_LOGIT_INDICES,
	                               .integers = true,
	                               .rank = 1,
	                               .dims = {fixed(request->top_logits)}};
	list(listing, &like, "top_logits.indices");
	like.result = FORWARD_RESULT_TOP_LOGIT_VALUES;
	like.integers = false;
	list(listing, &like, "top_logits.values");
}

bool forward_members_list(struct forward_request *request)
{
	struct listing listing = {.request = request};
	struct forward_member pooled = {.result = FORWARD_RESULT_POOLED,
	                                .rank = 1,
	                                .dims = {fixed(request->info.stacks[ATTN_FIRST_STACK].width)}};
	list_tokens(&listing);
	list_hidden(&listing);
	if (request->wants[FORWARD_POOLED])
		list(&listing, &pooled, "pooled");
	list_logits(&listing);
	list_weights(&listing);
	list_statistic(&listing, ATTENTION_ENTROPY, "entropy");
	list_statistic(&listing, ATTENTION_LOGSUMEXP, "logsumexp");
	list_statistic(&listing, ATTENTION_MAXIMUM, "max");
	list_rollout(&listing);
	return !listing.failed;
}

/* ---- memory */

static bool owns(const struct forward_request *request, size_t index)
{
	const struct forward_member *member = &request->members[index];
	return member->owner == index && !is_input(member);
}

size_t forward_members_bytes(const struct forward_request *request)
{
	size_t bytes = 0;
	for (size_t i = 0; i < request->member_count; i++) {
		const struct forward_member *member = &request->members[i];
		size_t size = member->integers ? sizeof(int64_t) : sizeof(float);
		if (owns(request, i))
			bytes = saturating_add(bytes, saturating_mul(member->count, size));
	}
	return bytes;
}

bool forward_members_reserve(struct forward_request *request)
{
	for (size_t i = 0; i < request->member_count; i++) {
		struct forward_member *member = &request->members[i];
		size_t count = member->count > 0 ? member->count : 1;
		if (member->result == FORWARD_RESULT_TOKENS)
			member->indices = request->inputs[member->stack].rows.values;
		else if (member->result == FORWARD_RESULT_RANGES)
			member->indices = request->inputs[member->stack].ranges;
		else if (member->owner != i)
			member->data = request->members[member->owner].data;
		else if (member->integers)
			member->indices = calloc(count, sizeof(*member->indices));
		else
			member->data = calloc(count, sizeof(*member->data));
		if (member->data == NULL && member->indices == NULL)
			return false;
	}
	return true;
}

void forward_members_clear(struct forward_request *request)
{
	for (size_t i = 0; i < request->member_count; i++) {
		struct forward_member *member = &request->members[i];
		free(member->starts);
		if (!owns(request, i))
			continue;
		free(member->data);
		free(member->indices);
	}
	free(request->members);
	request->members = NULL;
	request->member_count = 0;
}

/* ---- the tensors of a reply */

/* The whole member, or of a ragged one the sequence. */
static void view(const struct forward_request *request, const struct forward_member *member, size_t sequence,
                 struct reply_output *out)
{
	const struct forward_groups *groups = &request->groups;
	size_t dims[TENSOR_MAX_RANK] = {request->batch}, offset = 0;
	size_t group = member->ragged ? groups->group[sequence] : 0;
	forward_member_dims(member, groups->list[group].lengths, dims + 1);
	if (member->ragged)
		offset = forward_member_offset(request, member, sequence);
	bool batched = request->batched && !member->ragged;
	reply_tensor_shape(&out->tensor, batched ? dims : dims + 1,
	                   batched ? member->rank + 1 : member->rank);
	out->tensor.data = member->data != NULL ? member->data + offset : NULL;
	out->tensor.indices = member->indices != NULL ? member->indices + offset : NULL;
}

bool forward_walk_next(struct forward_walk *walk, struct reply_output *out)
{
	const struct forward_request *request = walk->request;
	if (walk->member == request->member_count)
		return false;
	const struct forward_member *member = &request->members[walk->member];
	char *path = walk->paths[walk->second];
	*out = (struct reply_output){.path = path, .integers = member->integers, .lowest = member->lowest};
	view(request, member, walk->sequence, out);
	if (member->ragged)
		snprintf(path, FORWARD_PATH_MAX, "%s.%zu", member->path, walk->sequence);
	else
		snprintf(path, FORWARD_PATH_MAX, "%s", member->path);
	walk->second = !walk->second;
	walk->sequence++;
	if (!member->ragged || walk->sequence == request->batch) {
		walk->sequence = 0;
		walk->member++;
	}
	return true;
}
