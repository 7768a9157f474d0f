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

struct tensor *attention_tensors_at(struct attention_request *request, enum attention_place place)
{
	switch (place) {
	case PLACE_QUERY:
	case PLACE_EMBEDDINGS:
		return &request->query;
	case PLACE_KEY:
		return &request->key;
	case PLACE_VALUE:
		return &request->value;
	case PLACE_MASK:
		return NULL;
	case PLACE_BIAS:
		return &request->bias;
	case PLACE_PAST_KEY:
		return &request->past_key;
	case PLACE_PAST_VALUE:
		return &request->past_value;
	default:
		return &request->projections[place - PLACE_PROJECTIONS];
	}
}

enum attention_place attention_tensors_query(const json_t *envelope, struct problem *problem)
{
	if (json_object_get(envelope, "embeddings") == NULL)
		return PLACE_QUERY;
	if (json_object_get(envelope, "query") != NULL)
		problem_note(problem, PROBLEM_BAD_VALUE, "/embeddings",
		             "`embeddings` is another name for `query`; both are given");
	return PLACE_EMBEDDINGS;
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

void attention_tensors_note_lengths(const struct attention_request *request, enum attention_place query,
                                    size_t limit, struct problem *problem)
{
	const char *query_pointer = attention_rules[query].pointer;
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
	enum attention_place query = attention_tensors_query(envelope, problem);
	struct json_tensor_source source = {.scan = scan,
	                                    .envelope = envelope,
	                                    .rules = attention_rules,
	                                    .room = {.limit = limits->elements},
	                                    .problem = problem};
	for (enum attention_place place = PLACE_QUERY; place < ATTENTION_PLACES; place++) {
		if (place == PLACE_MASK)
			take_mask(&source, &request->mask);
		else if (place > PLACE_EMBEDDINGS || place == query)
			take_floats(&source, place, attention_tensors_at(request, place));
	}
	attention_tensors_note_lengths(request, query, limits->sequence_length, problem);
	return problem->code == PROBLEM_NONE;
}
