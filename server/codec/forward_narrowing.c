#include "codec/forward_narrowing.h"

#include "codec/request_fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Whether attention of the kind is computed. */
static bool has_kind(const struct forward_request *request, size_t kind)
{
	return kind == ATTN_FIRST_STACK || request->inputs[ATTN_SECOND_STACK].given;
}

static size_t layers_of(const struct forward_request *request, size_t kind)
{
	return request->info.stacks[forward_kind_queries(kind)].layers;
}

/* ---- layers */

static bool check_once(const size_t *layers, size_t count, struct problem *problem)
{
	for (size_t i = 0; i < count; i++) {
		char pointer[JSON_POINTER_MAX];
		size_t earlier = 0;
		while (layers[earlier] != layers[i])
			earlier++;
		if (earlier == i)
			continue;
		json_pointer_element("/layers", i, pointer);
		return problem_set(problem, PROBLEM_BAD_VALUE, pointer, "layer %zu is named twice",
		                   layers[i]);
	}
	return true;
}

/* Every layer, in order. */
static size_t *all_layers(size_t count, struct problem *problem)
{
	size_t *layers = malloc(count * sizeof(*layers) + 1);
	if (layers == NULL)
		problem_set_status(problem, ATTN_MEMORY);
	for (size_t i = 0; i < count && layers != NULL; i++)
		layers[i] = i;
	return layers;
}

static bool resolve_layers(struct forward_request *request, const struct forward_fields *fields,
                           struct problem *problem)
{
	const struct integer_list *list = &fields->layers;
	request->layers_given = list->values != NULL;
	if (request->layers_given && list->count == 0)
		return problem_set(problem, PROBLEM_BAD_VALUE, "/layers",
		                   "the list names no layer; leave `layers` out for all of them");
	for (size_t kind = 0; kind < ATTN_STACK_KINDS; kind++) {
		size_t count = layers_of(request, kind);
		if (!has_kind(request, kind))
			continue;
		if (request->layers_given && list->count > count)
			return problem_set(problem, PROBLEM_BAD_VALUE, "/layers",
			                   "the list names %zu layers, there are %zu", list->count, count);
		request->layers[kind] =
		    request->layers_given ? request_resolve_indices(list, count, "/layers", "layers", problem)
		                          : all_layers(count, problem);
		request->layer_counts[kind] = request->layers_given ? list->count : count;
		if (request->layers[kind] == NULL ||
		    (request->layers_given && !check_once(request->layers[kind], list->count, problem)))
			return false;
	}
	return true;
}

/* ---- heads and queries */

static bool resolve_heads(struct forward_request *request, const struct forward_fields *fields,
                          struct problem *problem)
{
	if (fields->heads.values == NULL)
		return true;
	request->head_count = fields->heads.count;
	for (size_t kind = 0; kind < ATTN_STACK_KINDS; kind++) {
		if (!has_kind(request, kind))
			continue;
		request->heads[kind] = request_resolve_indices(
		    &fields->heads, forward_request_heads(request, kind), "/heads", "heads", problem);
		if (request->heads[kind] == NULL)
			return false;
	}
	return true;
}

/* Every index is one of a query of every sequence, which may count from the end. */
static bool check_queries(const struct forward_request *request, size_t stack, struct problem *problem)
{
	const struct forward_groups *groups = &request->groups;
	const struct integer_list *list = &request->queries;
	size_t least = SIZE_MAX, ignored;
	for (size_t i = 0; i < groups->count; i++)
		least = groups->list[i].lengths[stack] < least ? groups->list[i].lengths[stack] : least;
	for (size_t i = 0; i < list->count; i++) {
		if (!request_resolve_index(list->values[i], i, least, "/queries",
		                           "queries in the shortest sequence", &ignored, problem))
			return false;
	}
	return true;
}

static bool resolve_queries(struct forward_request *request, struct forward_fields *fields,
                            struct problem *problem)
{
	request->queries = fields->queries;
	fields->queries = (struct integer_list){0};
	if (request->queries.values == NULL)
		return true;
	for (size_t stack = 0; stack < ATTN_STACKS; stack++) {
		if (request->inputs[stack].given && !check_queries(request, stack, problem))
			return false;
	}
	return true;
}

/* ---- ablate */

static bool resolve_ablation(const struct forward_request *request, const struct forward_ablation *sent,
                             size_t index, attn_ablation *out, struct problem *problem)
{
	char pointer[JSON_POINTER_MAX];
	size_t first = sent->has_kind ? 1 : 0;
	json_pointer_element("/ablate", index, pointer);
	if (sent->has_kind != forward_request_has_kinds(request))
		return problem_set(problem, PROBLEM_BAD_VALUE, pointer,
		                   sent->has_kind
		                       ? "the model has one kind of attention: [layer, head] is expected"
		                       : "the model has several kinds of attention: [kind, layer, head] is "
		                         "expected, kind \"encoder\", \"decoder\" or \"cross\"");
	*out = (attn_ablation){.kind = sent->has_kind ? sent->kind : ATTN_FIRST_STACK};
	return request_resolve_index(sent->layer, first, layers_of(request, out->kind), pointer, "layers",
	                             &out->layer, problem) &&
	       request_resolve_index(sent->head, first + 1, forward_request_heads(request, out->kind),
	                             pointer, "heads", &out->head, problem);
}

static bool resolve_ablations(struct forward_request *request, const struct forward_fields *fields,
                              struct problem *problem)
{
	if (fields->ablation_count == 0)
		return true;
	request->ablations = malloc(fields->ablation_count * sizeof(*request->ablations));
	if (request->ablations == NULL)
		return problem_set_status(problem, ATTN_MEMORY);
	for (size_t i = 0; i < fields->ablation_count; i++) {
		if (!resolve_ablation(request, &fields->ablations[i], i, &request->ablations[i], problem))
			return false;
	}
	request->ablation_count = fields->ablation_count;
	return true;
}

/* ---- the whole */

bool forward_narrowing_resolve(struct forward_request *request, struct forward_fields *fields,
                               struct problem *problem)
{
	request->top_k = fields->top_k;
	return resolve_layers(request, fields, problem) && resolve_heads(request, fields, problem) &&
	       resolve_queries(request, fields, problem) && resolve_ablations(request, fields, problem) &&
	       (!fields->has_output_dtype || request_dtype_allowed(request->reply_form, problem));
}
