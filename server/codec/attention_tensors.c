#include "codec/attention_tensors.h"

#include "codec/json_tensor.h"

#include <string.h>

const struct json_rule attention_rules[ATTENTION_PLACES] = {
    [PLACE_QUERY] = {"/query", JSON_FLOATS},
    [PLACE_EMBEDDINGS] = {"/embeddings", JSON_FLOATS},
    [PLACE_KEY] = {"/key", JSON_FLOATS},
    [PLACE_VALUE] = {"/value", JSON_FLOATS},
    [PLACE_MASK] = {"/mask", JSON_BOOLEANS},
    [PLACE_BIAS] = {"/bias", JSON_FLOATS},
    [PLACE_PAST_KEY] = {"/past_key", JSON_FLOATS},
    [PLACE_PAST_VALUE] = {"/past_value", JSON_FLOATS},
    [PLACE_PROJECTIONS + 0] = {"/projections/query", JSON_FLOATS},
    [PLACE_PROJECTIONS + 1] = {"/projections/key", JSON_FLOATS},
    [PLACE_PROJECTIONS + 2] = {"/projections/value", JSON_FLOATS},
    [PLACE_PROJECTIONS + 3] = {"/projections/output", JSON_FLOATS},
    [PLACE_PROJECTIONS + 4] = {"/projections/query_bias", JSON_FLOATS},
    [PLACE_PROJECTIONS + 5] = {"/projections/key_bias", JSON_FLOATS},
    [PLACE_PROJECTIONS + 6] = {"/projections/value_bias", JSON_FLOATS},
    [PLACE_PROJECTIONS + 7] = {"/projections/output_bias", JSON_FLOATS},
};

static void take_floats(struct json_tensor_source *source, enum attention_place place, struct tensor *out)
{
	struct json_array array;
	if (!json_tensor_take(source, place, &array))
		return;
	*out = (struct tensor){.data = array.data, .rank = array.rank, .count = array.count};
	memcpy(out->dims, array.dims, sizeof(out->dims));
}

static void take_mask(struct json_tensor_source *source, struct mask_tensor *out)
{
	struct json_array array;
	if (!json_tensor_take(source, PLACE_MASK, &array))
		return;
	*out = (struct mask_tensor){.data = array.data, .rank = array.rank, .count = array.count};
	memcpy(out->dims, array.dims, sizeof(out->dims));
}

/* ---- lengths */

/* Rows of the tensor, 0 when it is absent or has no such dimension. */
static size_t length_of(const struct tensor *tensor)
{
	return tensor->data == NULL || tensor->rank < 2 ? 0 : tensor->dims[tensor->rank - 2];
}

static void note_length(const struct tensor *tensor, const char *pointer, size_t limit,
                        struct problem *problem)
{
	size_t length = length_of(tensor);
	if (length > limit)
		problem_note(problem, PROBLEM_SEQUENCE_TOO_LONG, pointer,
		             "the sequence has length %zu, the limit is %zu", length, limit);
}

void attention_tensors_note_lengths(const struct attention_request *request, const char *query_pointer,
                                    size_t limit, struct problem *problem)
{
	const struct tensor *key = request->key.data != NULL ? &request->key : &request->query;
	size_t past = length_of(&request->past_key), keys = length_of(key);
	note_length(&request->query, query_pointer, limit, problem);
	note_length(&request->key, "/key", limit, problem);
	note_length(&request->value, "/value", limit, problem);
	if (past > limit || keys > limit - past)
		problem_note(problem, PROBLEM_SEQUENCE_TOO_LONG, past > 0 ? "/past_key" : query_pointer,
		             "%zu past keys and %zu new ones are over the limit of a sequence, %zu", past,
		             keys, limit);
}

bool attention_tensors_take(struct json_scan *scan, const json_t *envelope,
                            const struct attention_limits *limits, struct attention_request *request,
                            struct problem *problem)
{
	bool embeddings = json_object_get(envelope, "embeddings") != NULL;
	if (embeddings && json_object_get(envelope, "query") != NULL)
		problem_note(problem, PROBLEM_BAD_VALUE, "/embeddings",
		             "`embeddings` is another name for `query`; both are given");
	enum attention_place query = embeddings ? PLACE_EMBEDDINGS : PLACE_QUERY;
	struct json_tensor_source source = {.scan = scan,
	                                    .envelope = envelope,
	                                    .rules = attention_rules,
	                                    .limit = limits->elements,
	                                    .problem = problem};
	take_floats(&source, query, &request->query);
	take_floats(&source, PLACE_KEY, &request->key);
	take_floats(&source, PLACE_VALUE, &request->value);
	take_mask(&source, &request->mask);
	take_floats(&source, PLACE_BIAS, &request->bias);
	take_floats(&source, PLACE_PAST_KEY, &request->past_key);
	take_floats(&source, PLACE_PAST_VALUE, &request->past_value);
	for (int i = 0; i < 8; i++)
		take_floats(&source, (enum attention_place)(PLACE_PROJECTIONS + i), &request->projections[i]);
	attention_tensors_note_lengths(request, attention_rules[query].pointer, limits->sequence_length,
	                               problem);
	return problem->code == PROBLEM_NONE;
}
