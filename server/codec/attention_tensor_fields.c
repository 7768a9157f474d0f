#include "codec/attention_readers.h"

#include "codec/json_path.h"
#include "codec/request_fields.h"

bool attention_read_tensor(const json_t *value, const char *pointer, struct reading *reading)
{
	return request_read_tensor(value, pointer, reading->problem);
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
		if (!request_known_member(pointer, name, names, sizeof(names) / sizeof(names[0]),
		                          reading->problem))
			return false;
		json_pointer_member(pointer, name, place);
		if (!attention_read_tensor(member, place, reading))
			return false;
	}
	return true;
}
