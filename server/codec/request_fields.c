#include "codec/request_fields.h"

#include "codec/json_path.h"
#include "codec/nearest_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names */

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(name, names[i]) == 0)
			return true;
	}
	return false;
}

bool request_known_member(const char *parent, const char *name, const char *const *names, size_t count,
                          struct problem *problem)
{
	char pointer[JSON_POINTER_MAX];
	if (is_one_of(name, names, count))
		return true;
	const char *nearest = nearest_name(name, names, count);
	json_pointer_member(parent, name, pointer);
	if (nearest == NULL)
		return problem_set(problem, PROBLEM_UNKNOWN_FIELD, pointer, "there is no field `%s` here",
		                   name);
	return problem_set(problem, PROBLEM_UNKNOWN_FIELD, pointer,
	                   "there is no field `%s` here; `%s` is the nearest that there is", name, nearest);
}

bool request_read_members(const json_t *envelope, body_field_known *known, request_read_member *read,
                          void *arg, struct problem *problem)
{
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)envelope, name, value)
	{
		char pointer[JSON_POINTER_MAX];
		if (!known(name, problem))
			return false;
		json_pointer_member("", name, pointer);
		if (!read(name, value, pointer, arg))
			return false;
	}
	return true;
}

/* ---- forms */

bool request_read_flag(const json_t *value, const char *pointer, bool *out, struct problem *problem)
{
	if (!json_is_boolean(value))
		return problem_set(problem, PROBLEM_WRONG_TYPE, pointer,
		                   "true or false is expected, found %s", json_value_kind(value));
	*out = json_is_true(value);
	return true;
}

bool request_read_count(const json_t *value, const char *pointer, size_t *out, struct problem *problem)
{
	int64_t count;
	if (!json_value_integer(value, pointer, 1, INT64_MAX, &count, problem))
		return false;
	*out = (size_t)count;
	return true;
}

bool request_read_words(const json_t *value, const char *pointer, const char *const *words, size_t count,
                        bool *wanted, struct problem *problem)
{
	size_t word;
	if (!json_is_array(value)) {
		if (!json_value_word(value, pointer, words, count, &word, problem))
			return false;
		wanted[word] = true;
		return true;
	}
	for (size_t i = 0; i < json_array_size(value); i++) {
		char place[JSON_POINTER_MAX];
		json_pointer_element(pointer, i, place);
		if (!json_value_word(json_array_get(value, i), place, words, count, &word, problem))
			return false;
		wanted[word] = true;
	}
	return true;
}

bool request_read_list(const json_t *value, const char *pointer, struct integer_list *out,
                       struct problem *problem)
{
	if (!json_is_array(value))
		return problem_set(problem, PROBLEM_WRONG_TYPE, pointer,
		                   "a list of integers is expected, found %s", json_value_kind(value));
	return json_value_integers(value, pointer, INT64_MIN, INT64_MAX, out, problem);
}

bool request_read_tensor(const json_t *value, const char *pointer, struct problem *problem)
{
	static const char *const names[] = {"shape", "data", "dtype", "base64"};
	const char *name;
	json_t *member;
	json_object_foreach((json_t *)value, name, member)
	{
		if (!request_known_member(pointer, name, names, 4, problem))
			return false;
	}
	return true;
}

/* ---- fields */

bool request_read_statistics(const json_t *value, const char *pointer, bool wanted[ATTENTION_STATISTICS],
                             struct problem *problem)
{
	static const char *const words[ATTENTION_STATISTICS] = {
	    [ATTENTION_ENTROPY] = "entropy",
	    [ATTENTION_LOGSUMEXP] = "logsumexp",
	    [ATTENTION_MAXIMUM] = "max",
	};
	return request_read_words(value, pointer, words, ATTENTION_STATISTICS, wanted, problem);
}

bool request_read_precision(const json_t *value, const char *pointer, int *out, struct problem *problem)
{
	int64_t digits = 0;
	if (json_is_string(value))
		return strcmp(json_string_value(value), "shortest") == 0 ||
		       problem_set(problem, PROBLEM_BAD_VALUE, pointer,
		                   "1 to 9 digits or \"shortest\" is expected, found \"%s\"",
		                   json_string_value(value));
	if (!json_value_integer(value, pointer, 1, 9, &digits, problem))
		return false;
	*out = (int)digits;
	return true;
}

bool request_read_output_dtype(const json_t *value, const char *pointer, attn_dtype *out,
                               struct problem *problem)
{
	static const char *const words[] = {"float32", "float16", "bfloat16", "float64"};
	static const attn_dtype dtypes[] = {ATTN_FLOAT32, ATTN_FLOAT16, ATTN_BFLOAT16, ATTN_FLOAT64};
	size_t word;
	if (!json_value_word(value, pointer, words, 4, &word, problem))
		return false;
	*out = dtypes[word];
	return true;
}

bool request_read_timeout(const json_t *value, const char *pointer, uint64_t limit_ms, uint64_t *out,
                          struct problem *problem)
{
	int64_t most = limit_ms > INT64_MAX ? INT64_MAX : (int64_t)limit_ms, timeout;
	if (!json_value_integer(value, pointer, 1, most, &timeout, problem))
		return false;
	*out = (uint64_t)timeout;
	return true;
}

bool request_dtype_allowed(enum body_form reply, struct problem *problem)
{
	return reply != BODY_JSON ||
	       problem_set(problem, PROBLEM_BAD_VALUE, "/output_dtype",
	                   "`output_dtype` is for binary replies: ask for one with `Accept: "
	                   "application/x-safetensors`");
}

/* ---- indices */

bool request_resolve_index(int64_t index, size_t i, size_t count, const char *pointer, const char *name,
                           size_t *out, struct problem *problem)
{
	char place[JSON_POINTER_MAX];
	int64_t most = (int64_t)count;
	json_pointer_element(pointer, i, place);
	if (index < -most || index >= most)
		return problem_set(problem, PROBLEM_BAD_VALUE, place,
		                   "the index %" PRId64 " is out of range, there are %zu %s", index, count,
		                   name);
	*out = (size_t)(index < 0 ? index + most : index);
	return true;
}

size_t *request_resolve_indices(const struct integer_list *list, size_t count, const char *pointer,
                                const char *name, struct problem *problem)
{
	size_t *indices = malloc(list->count * sizeof(*indices) + 1);
	if (indices == NULL)
		problem_set_status(problem, ATTN_MEMORY);
	for (size_t i = 0; i < list->count && indices != NULL; i++) {
		if (!request_resolve_index(list->values[i], i, count, pointer, name, &indices[i], problem)) {
			free(indices);
			return NULL;
		}
	}
	return indices;
}
