#include "codec/attention_past.h"

#include <stdio.h>

/* One of the two: [batch, kv_heads, past, width], or without batch for one sequence. */
static bool check_tensor(const struct attention_request *request, const struct tensor *past, const char *name,
                         size_t width, struct problem *problem)
{
	const attn_shape *shape = &request->shape;
	bool single = request->query.rank == 2;
	char pointer[16];
	snprintf(pointer, sizeof(pointer), "/%s", name);
	if (past->rank != 4 && !(single && past->rank == 3))
		return problem_set(problem, PROBLEM_SHAPE_MISMATCH, pointer,
		                   "%s has %zu dimensions, %s are expected", name, past->rank,
		                   single ? "3, [kv_heads, past, width],"
		                          : "4, [batch, kv_heads, past, width],");
	const size_t *dims = past->dims + (past->rank - 3);
	if (past->rank == 4 && past->dims[0] != request->batch)
		return problem_set(problem, PROBLEM_SHAPE_MISMATCH, pointer,
		                   "%s has a batch of %zu where query has %zu", name, past->dims[0],
		                   request->batch);
	if (dims[0] != shape->kv_heads)
		return problem_set(problem, PROBLEM_SHAPE_MISMATCH, pointer,
		                   "%s has %zu heads where the keys have %zu", name, dims[0],
		                   shape->kv_heads);
	if (dims[2] != width)
		return problem_set(problem, PROBLEM_SHAPE_MISMATCH, pointer,
		                   "%s has width %zu where a head has %zu", name, dims[2], width);
	return true;
}

bool attention_past_resolve(struct attention_request *request, struct problem *problem)
{
	const struct tensor *key = &request->past_key, *value = &request->past_value;
	attn_shape *shape = &request->shape;
	if (key->data == NULL && value->data == NULL)
		return true;
	if (key->data == NULL || value->data == NULL)
		return problem_set(problem, PROBLEM_MISSING_FIELD,
		                   key->data == NULL ? "/past_key" : "/past_value",
		                   "`past_key` and `past_value` are given both or not at all");
	if (request->layer.appended > 0)
		return problem_set(
		    problem, PROBLEM_BAD_VALUE, "/past_key",
		    "the layer puts %zu keys of its own behind all others, so that there is no "
		    "past to go on from",
		    request->layer.appended);
	if (!check_tensor(request, key, "past_key", shape->head_width, problem) ||
	    !check_tensor(request, value, "past_value", shape->value_width, problem))
		return false;
	size_t past = key->dims[key->rank - 2], values = value->dims[value->rank - 2];
	if (past != values)
		return problem_set(problem, PROBLEM_SHAPE_MISMATCH, "/past_value",
		                   "past_value has length %zu where past_key has %zu", values, past);
	request->has_past = true;
	shape->past = past;
	shape->keys += past;
	return true;
}
