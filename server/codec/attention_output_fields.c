#include "codec/attention_readers.h"

#include "codec/json_path.h"
#include "codec/request_fields.h"

#include <string.h>

/* ---- weights */

static bool read_stage(const json_t *value, const char *pointer, struct reading *reading)
{
	static const char *const words[ATTENTION_STAGES] = {
	    [ATTENTION_SCORES] = "scores",
	    [ATTENTION_CAPPED] = "capped",
	    [ATTENTION_MASKED] = "masked",
	    [ATTENTION_SOFTMAX] = "softmax",
	};
	if (json_is_array(value) && json_array_size(value) == 0)
		return problem_set(reading->problem, PROBLEM_BAD_VALUE, pointer,
		                   "the list names no stage; leave `stage` out for the weights alone");
	return request_read_words(value, pointer, words, ATTENTION_STAGES, reading->out->stages,
	                          reading->problem);
}

static bool read_weights_member(const json_t *value, const char *name, const char *parent,
                                struct reading *reading)
{
	static const char *const names[] = {"heads", "queries", "top_k", "stage"};
	char pointer[JSON_POINTER_MAX];
	if (!request_known_member(parent, name, names, 4, reading->problem))
		return false;
	json_pointer_member(parent, name, pointer);
	if (strcmp(name, "heads") == 0)
		return request_read_list(value, pointer, &reading->out->head_list, reading->problem);
	if (strcmp(name, "queries") == 0)
		return request_read_list(value, pointer, &reading->out->query_list, reading->problem);
	if (strcmp(name, "top_k") == 0)
		return request_read_count(value, pointer, &reading->out->top_k, reading->problem);
	return read_stage(value, pointer, reading);
}

/* What the members of the object come to. */
static bool settle_weights(const char *pointer, bool staged, struct reading *reading)
{
	struct attention_fields *out = reading->out;
	const bool *stages = out->stages;
	bool other = stages[ATTENTION_SCORES] || stages[ATTENTION_CAPPED] || stages[ATTENTION_MASKED];
	char place[JSON_POINTER_MAX];
	json_pointer_member(pointer, "top_k", place);
	if (out->top_k > 0 && other)
		return problem_set(reading->problem, PROBLEM_BAD_VALUE, place,
		                   "`top_k` is for the stage softmax only");
	out->weights = out->top_k > 0 ? WEIGHTS_TOP : staged ? WEIGHTS_NONE : WEIGHTS_PER_HEAD;
	return true;
}

static bool read_weights_object(const json_t *value, const char *pointer, struct reading *reading)
{
	const char *name;
	json_t *member;
	json_object_foreach((json_t *)value, name, member)
	{
		if (!read_weights_member(member, name, pointer, reading))
			return false;
	}
	return settle_weights(pointer, json_object_get(value, "stage") != NULL, reading);
}

bool attention_read_weights(const json_t *value, const char *pointer, struct reading *reading)
{
	if (json_is_boolean(value)) {
		reading->out->weights = json_is_true(value) ? WEIGHTS_PER_HEAD : WEIGHTS_NONE;
		return true;
	}
	if (json_is_object(value))
		return read_weights_object(value, pointer, reading);
	if (!json_is_string(value))
		return problem_set(reading->problem, PROBLEM_WRONG_TYPE, pointer,
		                   "true, false, \"mean\" or an object is expected, found %s",
		                   json_value_kind(value));
	reading->out->weights = WEIGHTS_MEAN;
	return strcmp(json_string_value(value), "mean") == 0 ||
	       problem_set(reading->problem, PROBLEM_BAD_VALUE, pointer,
	                   "true, false, \"mean\" or an object is expected, found \"%s\"",
	                   json_string_value(value));
}

/* ---- the other outputs */

bool attention_read_statistics(const json_t *value, const char *pointer, struct reading *reading)
{
	return request_read_statistics(value, pointer, reading->out->statistics, reading->problem);
}

bool attention_read_projected(const json_t *value, const char *pointer, struct reading *reading)
{
	return request_read_flag(value, pointer, &reading->out->projected, reading->problem);
}

bool attention_read_output_dtype(const json_t *value, const char *pointer, struct reading *reading)
{
	reading->out->has_output_dtype = true;
	return request_read_output_dtype(value, pointer, &reading->out->output_dtype, reading->problem);
}

bool attention_read_precision(const json_t *value, const char *pointer, struct reading *reading)
{
	return request_read_precision(value, pointer, &reading->out->precision, reading->problem);
}
