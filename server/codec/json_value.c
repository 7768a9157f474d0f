#include "codec/json_value.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *json_value_kind(const json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return "an object";
	case JSON_ARRAY:
		return "an array";
	case JSON_STRING:
		return "a string";
	case JSON_INTEGER:
		return "an integer";
	case JSON_REAL:
		return "a number with a fraction";
	case JSON_TRUE:
		return "true";
	case JSON_FALSE:
		return "false";
	case JSON_NULL:
		break;
	}
	return "null";
}

bool json_value_is_integer(const json_t *value)
{
	double real = json_real_value(value);
	return json_is_integer(value) || (json_is_real(value) && floor(real) == real);
}

bool json_value_integer(const json_t *value, const char *pointer, int64_t low, int64_t high, int64_t *out,
                        struct problem *problem)
{
	if (!json_value_is_integer(value))
		return problem_set(problem, PROBLEM_WRONG_TYPE, pointer, "an integer is expected, found %s",
		                   json_value_kind(value));
	double number = json_number_value(value);
	bool fits = json_is_integer(value) || (number >= -0x1p63 && number < 0x1p63);
	if (fits)
		*out = json_is_integer(value) ? json_integer_value(value) : (int64_t)number;
	if (fits && *out >= low && *out <= high)
		return true;
	char found[32];
	if (fits)
		snprintf(found, sizeof(found), "%" PRId64, *out);
	else
		snprintf(found, sizeof(found), "%.9g", number);
	return problem_set(problem, PROBLEM_BAD_VALUE, pointer,
	                   "the integer %s is out of range, %" PRId64 " to %" PRId64 " is allowed", found,
	                   low, high);
}

bool json_value_float(const json_t *value, const char *pointer, float *out, struct problem *problem)
{
	if (!json_is_number(value))
		return problem_set(problem, PROBLEM_WRONG_TYPE, pointer, "a number is expected, found %s",
		                   json_value_kind(value));
	float number = (float)json_number_value(value);
	/* What the scan let pass is nearer to the greatest float32 than to 2^128, though its double may not
	 * be. */
	*out = isfinite(number) ? number : copysignf(FLT_MAX, number);
	return true;
}

bool json_value_integers(const json_t *value, const char *pointer, int64_t low, int64_t high,
                         struct integer_list *out, struct problem *problem)
{
	bool single = !json_is_array(value);
	size_t count = single ? 1 : json_array_size(value);
	out->values = malloc(count * sizeof(*out->values) + 1);
	out->count = count;
	if (out->values == NULL)
		return problem_set_status(problem, ATTN_MEMORY);
	if (single)
		return json_value_integer(value, pointer, low, high, &out->values[0], problem);
	for (size_t i = 0; i < count; i++) {
		char element[96];
		snprintf(element, sizeof(element), "%s/%zu", pointer, i);
		if (!json_value_integer(json_array_get(value, i), element, low, high, &out->values[i],
		                        problem))
			return false;
	}
	return true;
}

bool json_value_floats(const json_t *value, const char *pointer, struct float_list *out,
                       struct problem *problem)
{
	bool single = !json_is_array(value);
	size_t count = single ? 1 : json_array_size(value);
	out->values = malloc(count * sizeof(*out->values) + 1);
	out->count = count;
	if (out->values == NULL)
		return problem_set_status(problem, ATTN_MEMORY);
	if (single)
		return json_value_float(value, pointer, &out->values[0], problem);
	for (size_t i = 0; i < count; i++) {
		char element[96];
		snprintf(element, sizeof(element), "%s/%zu", pointer, i);
		if (!json_value_float(json_array_get(value, i), element, &out->values[i], problem))
			return false;
	}
	return true;
}

bool json_value_word(const json_t *value, const char *pointer, const char *const *words, size_t count,
                     size_t *out, struct problem *problem)
{
	const char *text = json_string_value(value);
	char list[128] = "";
	for (size_t i = 0, length = 0; i < count && length < sizeof(list); i++) {
		if (text != NULL && strcmp(text, words[i]) == 0) {
			*out = i;
			return true;
		}
		length += (size_t)snprintf(list + length, sizeof(list) - length, "%s\"%s\"",
		                           i > 0 ? ", " : "", words[i]);
	}
	if (text == NULL)
		return problem_set(problem, PROBLEM_WRONG_TYPE, pointer, "one of %s is expected, found %s",
		                   list, json_value_kind(value));
	return problem_set(problem, PROBLEM_BAD_VALUE, pointer, "one of %s is expected, found \"%s\"", list,
	                   text);
}
