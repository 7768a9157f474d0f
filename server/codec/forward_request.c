#include "codec/forward_request.h"

#include "codec/forward_members.h"
#include "codec/forward_reply.h"
#include "codec/saturating.h"

#include <stdlib.h>
#include <string.h>

static void input_clear(struct forward_input *input)
{
	token_rows_clear(&input->rows);
	tensor_clear(&input->embeddings);
	free(input->starts);
	free(input->ranges);
}

void forward_request_free(struct forward_request *request)
{
	if (request == NULL)
		return;
	forward_members_clear(request);
	forward_groups_clear(&request->groups);
	for (size_t stack = 0; stack < ATTN_STACKS; stack++)
		input_clear(&request->inputs[stack]);
	for (size_t kind = 0; kind < ATTN_STACK_KINDS; kind++) {
		free(request->layers[kind]);
		free(request->heads[kind]);
	}
	free(request->queries.values);
	free(request->ablations);
	free(request);
}

/* ---- stacks and kinds */

bool forward_request_has_kinds(const struct forward_request *request)
{
	return request->info.stacks[ATTN_SECOND_STACK].layers > 0;
}

bool forward_request_reads(const struct forward_request *request, size_t stack)
{
	return request->reader.tokenizer != NULL &&
	       request->info.stacks[stack].vocabulary == request->info.vocabulary;
}

size_t forward_request_heads(const struct forward_request *request, size_t kind)
{
	return request->info.stacks[forward_kind_queries(kind)].heads;
}

size_t forward_kind_queries(size_t kind)
{
	return kind == ATTN_FIRST_STACK ? ATTN_FIRST_STACK : ATTN_SECOND_STACK;
}

size_t forward_kind_keys(size_t kind)
{
	return kind == ATTN_SECOND_STACK ? ATTN_SECOND_STACK : ATTN_FIRST_STACK;
}

/* ---- sizes */

size_t forward_request_input_bytes(const struct forward_request *request)
{
	const struct forward_groups *groups = &request->groups;
	size_t bytes = sizeof(*request) + request->member_count * sizeof(*request->members) +
	               groups->count * sizeof(*groups->list) + 3 * request->batch * sizeof(size_t) +
	               request->ablation_count * sizeof(*request->ablations) +
	               request->queries.count * sizeof(int64_t);
	for (size_t i = 0; i < request->member_count; i++)
		bytes += request->members[i].ragged ? groups->count * sizeof(size_t) : 0;
	for (size_t stack = 0; stack < ATTN_STACKS; stack++) {
		const struct forward_input *input = &request->inputs[stack];
		bytes += (input->ranges != NULL ? 3 : 1) * input->rows.count * sizeof(int64_t) +
		         input->embeddings.count * sizeof(float) + 2 * input->rows.rows * sizeof(size_t);
	}
	for (size_t kind = 0; kind < ATTN_STACK_KINDS; kind++)
		bytes += (request->layer_counts[kind] + request->head_count) * sizeof(size_t);
	return bytes;
}

size_t forward_request_output_bytes(const struct forward_request *request)
{
	return forward_members_bytes(request);
}

size_t forward_request_reply_bytes(const struct forward_request *request)
{
	size_t bytes = forward_reply_frame_bytes(request);
	for (size_t i = 0; i < request->member_count; i++)
		bytes = saturating_add(bytes, forward_reply_member_bytes(request, &request->members[i]));
	return bytes;
}

bool forward_request_reserve(struct forward_request *request)
{
	return forward_members_reserve(request);
}

/* ---- advice */

static const struct {
	const char *output, *instead;
} advices[] = {
    {"weights", "narrow them by `layers`, `heads`, `queries` or `top_k`"},
    {"hidden_all", "`hidden` is the last of them"},
    {"logits_all", "`logits` are those of the last position, `top_logits` the largest"},
    {"logits", "`top_logits` are the largest"},
    {"statistics", "narrow them by `layers`"},
    {"rollout", "leave it out"},
};
#define ADVICES (sizeof(advices) / sizeof(advices[0]))

static bool is_of(const struct forward_member *member, const char *output)
{
	size_t length = strlen(output);
	return strncmp(member->path, output, length) == 0 &&
	       (member->path[length] == '.' || member->path[length] == '\0');
}

struct forward_advice forward_request_advice(const struct forward_request *request)
{
	size_t shares[ADVICES] = {0}, most = 0, rest = forward_reply_frame_bytes(request);
	for (size_t i = 0; i < ADVICES; i++) {
		for (size_t j = 0; j < request->member_count; j++) {
			const struct forward_member *member = &request->members[j];
			if (is_of(member, advices[i].output))
				shares[i] =
				    saturating_add(shares[i], forward_reply_member_bytes(request, member));
		}
		most = shares[i] > shares[most] ? i : most;
	}
	if (shares[most] == 0)
		return (struct forward_advice){.without = forward_request_reply_bytes(request)};
	for (size_t j = 0; j < request->member_count; j++) {
		const struct forward_member *member = &request->members[j];
		if (!is_of(member, advices[most].output))
			rest = saturating_add(rest, forward_reply_member_bytes(request, member));
	}
	return (struct forward_advice){advices[most].output, advices[most].instead, rest};
}
