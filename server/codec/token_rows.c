#include "codec/token_rows.h"

#include "codec/base64.h"
#include "codec/json_value.h"
#include "codec/request_fields.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void token_rows_clear(struct token_rows *rows)
{
	free(rows->values);
	free(rows->lengths);
	*rows = (struct token_rows){0};
}

/* ---- places */

void token_rows_row_pointer(const struct token_rows *rows, const char *pointer, size_t row,
                            char out[JSON_POINTER_MAX])
{
	if (rows->batched && (rows->form == TOKENS_NESTED || rows->form == TOKENS_TEXT))
		json_pointer_element(pointer, row, out);
	else
		snprintf(out, JSON_POINTER_MAX, "%s", pointer);
}

void token_rows_pointer(const struct token_rows *rows, const char *pointer, size_t row, size_t column,
                        char out[JSON_POINTER_MAX])
{
	token_rows_row_pointer(rows, pointer, row, out);
	size_t length = strlen(out);
	if (rows->form == TOKENS_NESTED)
		snprintf(out + length, JSON_POINTER_MAX - length, "/%zu", column);
	else if (rows->form == TOKENS_DATA)
		snprintf(out + length, JSON_POINTER_MAX - length, "/data/%zu",
		         row * rows->lengths[0] + column);
}

/* ---- room */

static bool note_memory(struct problem *problem)
{
	return problem_note(problem, PROBLEM_MEMORY, "", "the system refused memory for the tokens");
}

static bool reserve(struct token_rows *rows, size_t count, size_t lengths, struct problem *problem)
{
	rows->values = malloc(count * sizeof(*rows->values) + 1);
	rows->lengths = malloc(lengths * sizeof(*rows->lengths) + 1);
	rows->rows = lengths;
	rows->count = count;
	return (rows->values != NULL && rows->lengths != NULL) || note_memory(problem);
}

/* Room for a tensor [L] or [B, L]. */
static bool reserve_shape(struct token_rows *rows, const char *pointer, const size_t *dims, size_t rank,
                          struct tensor_room *room, struct problem *problem)
{
	size_t count;
	if (rank < 1 || rank > 2)
		return problem_note(problem, PROBLEM_SHAPE_MISMATCH, pointer,
		                    "tokens have 1 or 2 dimensions, these have %zu", rank);
	if (!attn_size_product(dims, rank, &count))
		return problem_note(problem, PROBLEM_SHAPE_OVERFLOW, pointer,
		                    "the product of the dimensions overflows");
	if (!tensor_room_take(room, pointer, count, dims, rank, problem) || problem->code != PROBLEM_NONE)
		return false;
	if (rank == 2 && dims[0] > JSON_ROWS_MAX)
		return problem_note(problem, PROBLEM_TOO_MANY_ELEMENTS, pointer,
		                    "a batch of %zu sequences is over the limit of %zu", dims[0],
		                    JSON_ROWS_MAX);
	if (count == 0 && dims[0] > TOKEN_ROWS_EMPTY_MAX)
		return problem_note(problem, PROBLEM_TOO_MANY_ELEMENTS, pointer,
		                    "a batch of %zu empty sequences is over the limit of %d", dims[0],
		                    TOKEN_ROWS_EMPTY_MAX);
	rows->batched = rank == 2;
	rows->length = dims[rank - 1];
	if (!reserve(rows, count, rows->batched ? dims[0] : 1, problem))
		return false;
	for (size_t row = 0; row < rows->rows; row++)
		rows->lengths[row] = rows->length;
	return true;
}

/* ---- JSON: numbers in brackets */

static bool read_number(const json_t *value, const char *parent, size_t index, int64_t *out,
                        struct problem *problem)
{
	struct problem own = {.code = PROBLEM_NONE};
	if (json_is_integer(value)) {
		*out = json_integer_value(value);
		return true;
	}
	char pointer[JSON_POINTER_MAX];
	json_pointer_element(parent, index, pointer);
	return json_value_integer(value, pointer, INT64_MIN, INT64_MAX, out, &own) ||
	       problem_note(problem, own.code, own.pointer, "%s", own.detail);
}

static bool read_row(const json_t *list, const char *pointer, int64_t *out, struct problem *problem)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		if (!read_number(json_array_get(list, i), pointer, i, &out[i], problem))
			return false;
	}
	return true;
}

/* Counts the numbers of rows; false when an element is no row. */
static bool count_rows(const json_t *value, const char *pointer, size_t *count, struct problem *problem)
{
	*count = 0;
	for (size_t i = 0; i < json_array_size(value); i++) {
		const json_t *row = json_array_get(value, i);
		char place[JSON_POINTER_MAX];
		*count += json_array_size(row);
		if (json_is_array(row))
			continue;
		json_pointer_element(pointer, i, place);
		return problem_note(problem, PROBLEM_WRONG_TYPE, place,
		                    "a list of integers is expected as its neighbours are, found %s",
		                    json_value_kind(row));
	}
	return true;
}

static bool read_nested(const json_t *value, const char *pointer, struct tensor_room *room,
                        struct token_rows *rows, struct problem *problem)
{
	size_t count = json_array_size(value), lists = 1;
	if (count == 0)
		return problem_note(problem, PROBLEM_BAD_VALUE, pointer,
		                    "a bare [] has no shape; write one sequence without tokens as "
		                    "{\"shape\": [0], \"data\": []}");
	rows->batched = json_is_array(json_array_get(value, 0));
	if (rows->batched) {
		lists = count;
		if (!count_rows(value, pointer, &count, problem))
			return false;
	}
	if (!tensor_room_take(room, pointer, count, &count, 1, problem) ||
	    !reserve(rows, count, lists, problem))
		return false;
	rows->lengths[0] = count;
	if (!rows->batched)
		return read_row(value, pointer, rows->values, problem);
	int64_t *at = rows->values;
	for (size_t row = 0; row < lists; row++) {
		char place[JSON_POINTER_MAX];
		const json_t *list = json_array_get(value, row);
		json_pointer_element(pointer, row, place);
		if (!read_row(list, place, at, problem))
			return false;
		rows->lengths[row] = json_array_size(list);
		at += rows->lengths[row];
	}
	return true;
}

/* ---- bytes */

static bool is_integer_type(attn_dtype dtype)
{
	return dtype == ATTN_INT64 || dtype == ATTN_INT32;
}

static void take_bytes(struct token_rows *rows, attn_dtype dtype, const uint8_t *bytes)
{
	for (size_t i = 0; i < rows->count; i++) {
		uint64_t wide = 0;
		uint32_t narrow = 0;
		if (dtype == ATTN_INT64) {
			memcpy(&wide, bytes + i * sizeof(wide), sizeof(wide));
			rows->values[i] = (int64_t)le64toh(wide);
		} else {
			memcpy(&narrow, bytes + i * sizeof(narrow), sizeof(narrow));
			rows->values[i] = (int32_t)le32toh(narrow);
		}
	}
}

static bool read_stored(const attn_stored_tensor *stored, const char *pointer, struct tensor_room *room,
                        struct token_rows *rows, struct problem *problem)
{
	if (!is_integer_type(stored->dtype))
		return problem_note(problem, PROBLEM_WRONG_TYPE, pointer,
		                    "a tensor of I64 or I32 is expected, found %s",
		                    attn_dtype_name(stored->dtype));
	rows->form = TOKENS_BYTES;
	if (!reserve_shape(rows, pointer, stored->shape, stored->rank, room, problem))
		return false;
	take_bytes(rows, stored->dtype, stored->data);
	return true;
}

/* ---- JSON: with a shape */

/* `shape`, which must be there; false with a problem noted. */
static bool read_dims(const json_t *value, const char *parent, struct integer_list *out,
                      struct problem *problem)
{
	struct problem own = {.code = PROBLEM_NONE};
	char pointer[JSON_POINTER_MAX];
	json_pointer_member(parent, "shape", pointer);
	if (value == NULL)
		return problem_note(problem, PROBLEM_MISSING_FIELD, pointer,
		                    "`shape` must stand beside `data` or `base64`");
	if (!request_read_list(value, pointer, out, &own))
		return problem_note(problem, own.code, own.pointer, "%s", own.detail);
	for (size_t i = 0; i < out->count; i++) {
		if (out->values[i] < 0)
			return problem_note(problem, PROBLEM_BAD_VALUE, pointer,
			                    "a dimension is not below 0");
	}
	return true;
}

static bool reserve_dims(struct token_rows *rows, const struct integer_list *list, const char *parent,
                         struct tensor_room *room, struct problem *problem)
{
	size_t dims[2] = {0};
	char pointer[JSON_POINTER_MAX];
	json_pointer_member(parent, "shape", pointer);
	for (size_t i = 0; i < list->count && i < 2; i++)
		dims[i] = (size_t)list->values[i];
	return reserve_shape(rows, pointer, dims, list->count, room, problem);
}

static bool read_data(const json_t *data, const char *parent, struct token_rows *rows,
                      struct problem *problem)
{
	char pointer[JSON_POINTER_MAX];
	json_pointer_member(parent, "data", pointer);
	if (!json_is_array(data))
		return problem_note(problem, PROBLEM_WRONG_TYPE, pointer,
		                    "a list of integers is expected, found %s", json_value_kind(data));
	if (json_array_size(data) != rows->count)
		return problem_note(problem, PROBLEM_SHAPE_MISMATCH, pointer,
		                    "`shape` takes %zu elements, `data` has %zu", rows->count,
		                    json_array_size(data));
	return read_row(data, pointer, rows->values, problem);
}

static bool read_dtype(const json_t *value, const char *parent, attn_dtype *out, struct problem *problem)
{
	static const char *const words[] = {"int64", "int32"};
	struct problem own = {.code = PROBLEM_NONE};
	char pointer[JSON_POINTER_MAX];
	size_t word;
	json_pointer_member(parent, "dtype", pointer);
	if (value == NULL)
		return problem_note(problem, PROBLEM_MISSING_FIELD, pointer,
		                    "`dtype` must stand beside `base64`");
	if (!json_value_word(value, pointer, words, 2, &word, &own))
		return problem_note(problem, own.code, own.pointer, "%s", own.detail);
	*out = word == 0 ? ATTN_INT64 : ATTN_INT32;
	return true;
}

static bool read_base64(const json_t *object, const char *parent, struct token_rows *rows,
                        struct problem *problem)
{
	const char *text = json_string_value(json_object_get(object, "base64"));
	size_t length = json_string_length(json_object_get(object, "base64")), decoded, bad = 0;
	attn_dtype dtype = ATTN_INT64;
	char pointer[JSON_POINTER_MAX];
	json_pointer_member(parent, "base64", pointer);
	if (text == NULL)
		return problem_note(problem, PROBLEM_WRONG_TYPE, pointer, "a string is expected");
	if (!read_dtype(json_object_get(object, "dtype"), parent, &dtype, problem))
		return false;
	uint8_t *bytes = malloc(base64_room(length) + 1);
	if (bytes == NULL)
		return note_memory(problem);
	bool read = base64_decode(text, length, bytes, &decoded, &bad) ||
	            problem_note(problem, PROBLEM_BAD_VALUE, pointer,
	                         "this is not base64, from character %zu on", bad);
	if (read && decoded != rows->count * attn_dtype_size(dtype))
		read = problem_note(problem, PROBLEM_SHAPE_MISMATCH, pointer,
		                    "`shape` takes %zu elements of %zu bytes each, `base64` has %zu bytes",
		                    rows->count, attn_dtype_size(dtype), decoded);
	if (read)
		take_bytes(rows, dtype, bytes);
	free(bytes);
	return read;
}

static bool read_object(const json_t *value, const char *pointer, struct tensor_room *room,
                        struct token_rows *rows, struct problem *problem)
{
	struct problem own = {.code = PROBLEM_NONE};
	struct integer_list dims = {0};
	const json_t *data = json_object_get(value, "data");
	if (!request_read_tensor(value, pointer, &own))
		return problem_note(problem, own.code, own.pointer, "%s", own.detail);
	rows->form = data != NULL ? TOKENS_DATA : TOKENS_BYTES;
	bool read = read_dims(json_object_get(value, "shape"), pointer, &dims, problem) &&
	            reserve_dims(rows, &dims, pointer, room, problem);
	free(dims.values);
	if (!read)
		return false;
	if (data != NULL)
		return read_data(data, pointer, rows, problem);
	return read_base64(value, pointer, rows, problem);
}

static bool read_json(const json_t *value, const char *pointer, struct tensor_room *room,
                      struct token_rows *rows, struct problem *problem)
{
	if (json_is_array(value))
		return read_nested(value, pointer, room, rows, problem);
	if (json_is_object(value))
		return read_object(value, pointer, room, rows, problem);
	return problem_note(problem, PROBLEM_WRONG_TYPE, pointer,
	                    "a list of token numbers, or a list of such lists, is expected, found %s",
	                    json_value_kind(value));
}

bool token_rows_take(struct json_array *array, const char *pointer, struct tensor_room *room,
                     struct token_rows *rows, struct problem *problem)
{
	if (!tensor_room_take(room, pointer, array->count, &array->count, 1, problem) ||
	    problem->code != PROBLEM_NONE)
		return false;
	*rows = (struct token_rows){.values = array->data,
	                            .count = array->count,
	                            .lengths = array->lengths,
	                            .rows = array->rows,
	                            .length = array->lengths[0],
	                            .batched = array->rank == 2};
	array->data = NULL;
	array->lengths = NULL;
	if (rows->values == NULL) /* rows of nothing */
		rows->values = malloc(1);
	if (rows->values != NULL)
		return true;
	token_rows_clear(rows);
	return note_memory(problem);
}

/* ---- the whole: what was read in part is nothing */

bool token_rows_read(const json_t *value, const char *pointer, struct tensor_room *room,
                     struct token_rows *rows, struct problem *problem)
{
	if (read_json(value, pointer, room, rows, problem))
		return true;
	token_rows_clear(rows);
	return false;
}

bool token_rows_read_stored(const attn_stored_tensor *stored, const char *pointer, struct tensor_room *room,
                            struct token_rows *rows, struct problem *problem)
{
	if (read_stored(stored, pointer, room, rows, problem))
		return true;
	token_rows_clear(rows);
	return false;
}
