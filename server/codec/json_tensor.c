#include "codec/json_tensor.h"

#include "codec/binary.h"
#include "codec/json_path.h"
#include "codec/json_value.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A tensor on its way from the scan to the request. */
struct taking {
	const char *pointer;
	enum json_kind kind;
	struct json_array *array;
	struct problem *problem;
	attn_dtype dtype; /* of bytes */
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

/* ---- shape */

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
		                    "`shape` must stand beside `data` or `base64`");
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

/* Elements of `shape`. */
static bool count_dims(struct taking *taking, size_t *count)
{
	char pointer[JSON_POINTER_MAX];
	if (attn_size_product(taking->dims, taking->rank, count))
		return true;
	json_pointer_member(taking->pointer, "shape", pointer);
	return problem_note(taking->problem, PROBLEM_SHAPE_OVERFLOW, pointer,
	                    "the product of the dimensions overflows");
}

/* ---- the forms: each leaves rank, dims and array->count of elements, and checks them against each other */

static bool take_nested(struct taking *taking)
{
	taking->rank = taking->array->rank;
	memcpy(taking->dims, taking->array->dims, sizeof(taking->dims));
	return true;
}

static bool take_data(struct taking *taking, const json_t *value)
{
	size_t count;
	char pointer[JSON_POINTER_MAX];
	json_pointer_member(taking->pointer, "dtype", pointer);
	if (json_object_get(value, "dtype") != NULL)
		problem_note(taking->problem, PROBLEM_BAD_VALUE, pointer, "`dtype` is for `base64` only");
	if (!take_dims(taking, json_object_get(value, "shape")) || !count_dims(taking, &count))
		return false;
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

/* The type of bytes that the kind of tensor may have. */
static bool take_dtype(struct taking *taking, const json_t *value)
{
	static const char *const words[] = {"float32", "float16", "bfloat16", "float64"};
	static const attn_dtype numbers[] = {ATTN_FLOAT32, ATTN_FLOAT16, ATTN_BFLOAT16, ATTN_FLOAT64};
	static const char *const boolean[] = {"bool"};
	struct problem problem = {.code = PROBLEM_NONE};
	char pointer[JSON_POINTER_MAX];
	size_t word = 0;
	json_pointer_member(taking->pointer, "dtype", pointer);
	if (value == NULL)
		return problem_note(taking->problem, PROBLEM_MISSING_FIELD, pointer,
		                    "`dtype` must stand beside `base64`");
	bool floats = taking->kind == JSON_FLOATS;
	if (!json_value_word(value, pointer, floats ? words : boolean, floats ? 4 : 1, &word, &problem))
		return problem_note(taking->problem, problem.code, problem.pointer, "%s", problem.detail);
	taking->dtype = floats ? numbers[word] : ATTN_BOOL;
	return true;
}

static bool take_base64(struct taking *taking, const json_t *value)
{
	size_t count, bytes;
	char pointer[JSON_POINTER_MAX];
	bool typed = take_dtype(taking, json_object_get(value, "dtype"));
	if (!take_dims(taking, json_object_get(value, "shape")) || !count_dims(taking, &count) || !typed)
		return false;
	if (taking->array->data == NULL)
		return false; /* the scan has told why */
	json_pointer_member(taking->pointer, "base64", pointer);
	if (!attn_size_mul(count, attn_dtype_size(taking->dtype), &bytes) || bytes != taking->array->count)
		return problem_note(taking->problem, PROBLEM_SHAPE_MISMATCH, pointer,
		                    "`shape` takes %zu elements of %zu bytes each, `base64` has %zu bytes",
		                    count, attn_dtype_size(taking->dtype), taking->array->count);
	taking->array->count = count;
	return true;
}

static bool take_form(struct taking *taking, const json_t *value)
{
	char pointer[JSON_POINTER_MAX];
	if (!taking->array->present) {
		take_dims(taking, json_object_get(value, "shape"));
		json_pointer_member(taking->pointer, "data", pointer);
		return problem_note(taking->problem, PROBLEM_MISSING_FIELD, pointer,
		                    "`data` or `base64` must stand beside `shape`");
	}
	switch (taking->array->form) {
	case JSON_FORM_DATA:
		return take_data(taking, value);
	case JSON_FORM_BASE64:
		return take_base64(taking, value);
	case JSON_FORM_NESTED:
		break;
	}
	return take_nested(taking);
}

/* ---- the whole */

/* The bytes of a base64 tensor as what the request holds; where float32 is little-endian, it stands there
 * already. */
static bool convert(struct taking *taking)
{
	struct json_array *array = taking->array;
	char pointer[JSON_POINTER_MAX];
	json_pointer_member(taking->pointer, "base64", pointer);
	if (taking->dtype == ATTN_BOOL)
		return binary_check_booleans(array->data, array->count, pointer, taking->problem);
	if (taking->dtype == ATTN_FLOAT32 && htole32(1) == 1)
		return true;
	float *floats = binary_floats(taking->dtype, array->data, array->count, pointer, taking->problem);
	free(array->data);
	array->data = floats;
	return floats != NULL;
}

bool json_tensor_take(struct json_tensor_source *source, size_t rule, struct json_array *out)
{
	struct taking taking = {.pointer = source->rules[rule].pointer,
	                        .kind = source->rules[rule].kind,
	                        .array = &source->scan->arrays[rule],
	                        .problem = source->problem};
	const json_t *value = envelope_at(source->envelope, taking.pointer);
	if ((!taking.array->present && !json_is_object(value)) || !take_form(&taking, value))
		return false;
	if (!tensor_room_take(&source->room, taking.pointer, taking.array->count, taking.dims, taking.rank,
	                      source->problem))
		return false;
	if (taking.array->form == JSON_FORM_BASE64 && !convert(&taking))
		return false;
	*out = *taking.array;
	out->rank = taking.rank;
	memcpy(out->dims, taking.dims, sizeof(out->dims));
	taking.array->data = NULL;
	return true;
}
