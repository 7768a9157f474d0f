#include "codec/attention_readers.h"

#include "codec/json_path.h"
#include "codec/nearest_name.h"

#include <string.h>

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(name, names[i]) == 0)
			return true;
	}
	return false;
}

bool attention_known_member(const char *parent, const char *name, const char *const *names, size_t count,
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

/* A tensor: what is not its index is an object of these. */
bool attention_read_tensor(const json_t *value, const char *pointer, struct reading *reading)
{
	static const char *const names[] = {"shape", "data", "dtype", "base64"};
	const char *name;
	json_t *member;
	json_object_foreach((json_t *)value, name, member)
	{
		if (!attention_known_member(pointer, name, names, 4, reading->problem))
			return false;
	}
	return true;
}

bool attention_read_projections(const json_t *value, const char *pointer, struct reading *reading)
{
	static const char *const names[] = {"query",      "key",      "value",      "output",
	                                    "query_bias", "key_bias", "value_bias", "output_bias"};
	const char *name;
	json_t *member;
	if (!json_is_object(value))
		return problem_set(reading->problem, PROBLEM_WRONG_TYPE, pointer,
		                   "an object is expected, found %s", json_value_kind(value));
	json_object_foreach((json_t *)value, name, member)
	{
		char place[JSON_POINTER_MAX];
		if (!attention_known_member(pointer, name, names, sizeof(names) / sizeof(names[0]),
		                            reading->problem))
			return false;
		json_pointer_member(pointer, name, place);
		if (!attention_read_tensor(member, place, reading))
			return false;
	}
	return true;
}
