#include "codec/attention_tensors.h"

#include "codec/json_path.h"
#include "codec/json_value.h"

#include <stdio.h>
#include <string.h>

const struct json_rule attention_rules[ATTENTION_PLACES] = {
    [PLACE_QUERY] = {"/query", JSON_FLOATS},
    [PLACE_EMBEDDINGS] = {"/embeddings", JSON_FLOATS},
    [PLACE_KEY] = {"/key", JSON_FLOATS},
    [PLACE_VALUE] = {"/value", JSON_FLOATS},
    [PLACE_MASK] = {"/mask", JSON_BOOLEANS},
    [PLACE_BIAS] = {"/bias", JSON_FLOATS},
    [PLACE_PROJECTIONS + 0] = {"/projections/query", JSON_FLOATS},
    [PLACE_PROJECTIONS + 1] = {"/projections/key", JSON_FLOATS},
    [PLACE_PROJECTIONS + 2] = {"/projections/value", JSON_FLOATS},
    [PLACE_PROJECTIONS + 3] = {"/projections/output", JSON_FLOATS},
    [PLACE_PROJECTIONS + 4] = {"/projections/query_bias", JSON_FLOATS},
    [PLACE_PROJECTIONS + 5] = {"/projections/key_bias", JSON_FLOATS},
    [PLACE_PROJECTIONS + 6] = {"/projections/value_bias", JSON_FLOATS},
    [PLACE_PROJECTIONS + 7] = {"/projections/output_bias", JSON_FLOATS},
};

/* A tensor on its way from the scan to the request. */
struct taking {
	const char *pointer;
	struct json_array *array;
	struct problem *problem;
	size_t rank, dims[TENSOR_MAX_RANK];
};

/* What stands in the envelope at the place, or NULL. */
static const json_t *envelope_at(const json_t *envelope, const char *pointer)
{
	char name[JSON_NAME_MAX];
	const json_t *value = envelope;
	while (*pointer == '/' && value != NULL) {
		size_t length = strcspn(pointer + 1, "/");
		snprintf(name, sizeof(name), "%.*s", (int)length, pointer + 1);
		value = json_object_get(value, name);
		pointer += 1 + length;
	}
	return value;
}

static bool note_dim(struct taking *taking, size_t index, enum problem_code code, const char *detail)
{
	char pointer[JSON_POINTER_MAX];
	snprintf(pointer, sizeof(pointer), "%s/shape/%zu", taking->pointer, index);
	return problem_note(taking->problem, code, pointer, "%s", detail);
}

/* One number of `shape`. */
static bool take_dim(struct taking *taking, const json_t *value, size_t index)
{
	if (!json_value_is_integer(value))
		return note_dim(taking, index, PROBLEM_WRONG_TYPE, "a dimension is an integer");
	if (json_number_value(value) < 0)
		return note_dim(taking, index, PROBLEM_BAD_VALUE, "a dimension is not below 0");
	if (!json_is_integer(value) && json_number_value(value) >= 0x1p63)
		return note_dim(taking, index, PROBLEM_SHAPE_OVERFLOW, "a dimension is too large");
	taking->dims[index] =
	    json_is_integer(value) ? (size_t)json_integer_value(value) : (size_t)json_number_value(value);
	return true;
}

/* `shape` into dims; false when something is noted. */
static bool take_dims(struct taking *taking, const json_t *shape)
{
	char pointer[JSON_POINTER_MAX];
	json_pointer_member(taking->pointer, "shape", pointer);
	if (shape == NULL)
		return problem_note(taking->problem, PROBLEM_MISSING_FIELD, pointer,
		                    "`shape` must stand beside `data`");
	if (!json_is_array(shape))
		return problem_note(taking->problem, PROBLEM_WRONG_TYPE, pointer,
		                    "a list of integers is expected, found %s", json_value_kind(shape));
	taking->rank = json_array_size(shape);
	if (taking->rank == 0 || taking->rank > TENSOR_MAX_RANK)
		return problem_note(taking->problem, PROBLEM_SHAPE_MISMATCH, pointer,
		                    "a tensor has 1 to 4 dimensions, this has %zu", taking->rank);
	bool taken = true;
	for (size_t i = 0; i < taking->rank; i++)
		taken = take_dim(taking, json_array_get(shape, i), i) && taken;
	return taken;
}

/* Checks `shape` against its own product and the count of `data`. */
static bool check_count(struct taking *taking)
{
	size_t count;
	char pointer[JSON_POINTER_MAX];
	if (!attn_size_product(taking->dims, taking->rank, &count)) {
		json_pointer_member(taking->pointer, "shape", pointer);
		return problem_note(taking->problem, PROBLEM_SHAPE_OVERFLOW, pointer,
		                    "the product of the dimensions overflows");
	}
	json_pointer_member(taking->pointer, "data", pointer);
	if (taking->array->rank != 1)
		return problem_note(taking->problem, PROBLEM_SHAPE_MISMATCH, pointer,
		                    "`data` must be a flat array");
	if (count != taking->array->count)
		return problem_note(taking->problem, PROBLEM_SHAPE_MISMATCH, pointer,
		                    "`shape` takes %zu elements, `data` has %zu", count,
		                    taking->array->count);
	return true;
}

/* The shape of a tensor in either form. */
static bool take_shape(struct taking *taking, const json_t *value)
{
	if (taking->array->present && !taking->array->data_of_shape) {
		taking->rank = taking->array->rank;
		memcpy(taking->dims, taking->array->dims, sizeof(taking->dims));
		return true;
	}
	bool shaped = take_dims(taking, json_object_get(value, "shape"));
	if (!taking->array->present) {
		char pointer[JSON_POINTER_MAX];
		json_pointer_member(taking->pointer, "data", pointer);
		return problem_note(taking->problem, PROBLEM_MISSING_FIELD, pointer,
		                    "`data` must stand beside `shape`");
	}
	return shaped && check_count(taking);
}

/* Empty tensors are bounded too: no dimension is over the limit of elements. */
static void note_dims(const struct taking *taking, size_t limit)
{
	for (size_t i = 0; i < taking->rank; i++) {
		if (taking->dims[i] > limit)
			problem_note(taking->problem, PROBLEM_TOO_MANY_ELEMENTS, taking->pointer,
			             "dimension %zu is %zu, the limit of elements is %zu", i, taking->dims[i],
			             limit);
	}
}

/* All that tensors are taken from. */
struct source {
	struct json_scan *scan;
	const json_t *envelope;
	const struct attention_limits *limits;
	struct problem *problem;
};

/* false when there is no tensor at the place, or none with a shape. */
static bool take_place(const struct source *source, enum attention_place place, struct taking *taking)
{
	*taking = (struct taking){.pointer = attention_rules[place].pointer,
	                          .array = &source->scan->arrays[place],
	                          .problem = source->problem};
	const json_t *value = envelope_at(source->envelope, taking->pointer);
	if ((!taking->array->present && !json_is_object(value)) || !take_shape(taking, value))
		return false;
	note_dims(taking, source->limits->elements);
	return true;
}

static void take_floats(const struct source *source, enum attention_place place, struct tensor *out)
{
	struct taking taking;
	if (!take_place(source, place, &taking))
		return;
	*out = (struct tensor){.data = taking.array->data, .rank = taking.rank, .count = taking.array->count};
	memcpy(out->dims, taking.dims, sizeof(out->dims));
	taking.array->data = NULL;
}

static void take_mask(const struct source *source, struct mask_tensor *out)
{
	struct taking taking;
	if (!take_place(source, PLACE_MASK, &taking))
		return;
	*out = (struct mask_tensor){
	    .data = taking.array->data, .rank = taking.rank, .count = taking.array->count};
	memcpy(out->dims, taking.dims, sizeof(out->dims));
	taking.array->data = NULL;
}

static void note_length(const struct tensor *tensor, const char *pointer, size_t limit,
                        struct problem *problem)
{
	if (tensor->rank < 2 || tensor->dims[tensor->rank - 2] <= limit)
		return;
	problem_note(problem, PROBLEM_SEQUENCE_TOO_LONG, pointer,
	             "the sequence has length %zu, the limit is %zu", tensor->dims[tensor->rank - 2], limit);
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
	const struct source source = {scan, envelope, limits, problem};
	take_floats(&source, query, &request->query);
	take_floats(&source, PLACE_KEY, &request->key);
	take_floats(&source, PLACE_VALUE, &request->value);
	take_mask(&source, &request->mask);
	take_floats(&source, PLACE_BIAS, &request->bias);
	for (int i = 0; i < 8; i++)
		take_floats(&source, (enum attention_place)(PLACE_PROJECTIONS + i), &request->projections[i]);
	note_length(&request->query, attention_rules[query].pointer, limits->sequence_length, problem);
	note_length(&request->key, "/key", limits->sequence_length, problem);
	note_length(&request->value, "/value", limits->sequence_length, problem);
	return problem->code == PROBLEM_NONE;
}
