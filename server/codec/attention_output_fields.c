#include "codec/attention_readers.h"

#include "codec/json_path.h"

#include <string.h>

/* A word, or a list of words: wanted[i] becomes true for each. */
static bool read_words(const json_t *value, const char *pointer, const char *const *words, size_t count,
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
		snprintf(place, sizeof(place), "%s/%zu", pointer, i);
		if (!json_value_word(json_array_get(value, i), place, words, count, &word, problem))
			return false;
		wanted[word] = true;
	}
	return true;
}

/* ---- weights */

static bool read_list(const json_t *value, const char *pointer, struct integer_list *out,
                      struct problem *problem)
{
	if (!json_is_array(value))
		return problem_set(problem, PROBLEM_WRONG_TYPE, pointer,
		                   "a list of integers is expected, found %s", json_value_kind(value));
	return json_value_integers(value, pointer, INT64_MIN, INT64_MAX, out, problem);
}

static bool read_top_k(const json_t *value, const char *pointer, struct reading *reading)
{
	int64_t top_k;
	if (!json_value_integer(value, pointer, 1, INT64_MAX, &top_k, reading->problem))
		return false;
	reading->out->top_k = (size_t)top_k;
	return true;
}

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
	return read_words(value, pointer, words, ATTENTION_STAGES, reading->out->stages, reading->problem);
}

static bool read_weights_member(const json_t *value, const char *name, const char *parent,
                                struct reading *reading)
{
	static const char *const names[] = {"heads", "queries", "top_k", "stage"};
	char pointer[JSON_POINTER_MAX];
	if (!attention_known_member(parent, name, names, 4, reading->problem))
		return false;
	json_pointer_member(parent, name, pointer);
	if (strcmp(name, "heads") == 0)
		return read_list(value, pointer, &reading->out->head_list, reading->problem);
	if (strcmp(name, "queries") == 0)
		return read_list(value, pointer, &reading->out->query_list, reading->problem);
	if (strcmp(name, "top_k") == 0)
		return read_top_k(value, pointer, reading);
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
	static const char *const words[ATTENTION_STATISTICS] = {
	    [ATTENTION_ENTROPY] = "entropy",
	    [ATTENTION_LOGSUMEXP] = "logsumexp",
	    [ATTENTION_MAXIMUM] = "max",
	};
	return read_words(value, pointer, words, ATTENTION_STATISTICS, reading->out->statistics,
	                  reading->problem);
}

bool attention_read_projected(const json_t *value, const char *pointer, struct reading *reading)
{
	if (!json_is_boolean(value))
		return problem_set(reading->problem, PROBLEM_WRONG_TYPE, pointer,
		                   "true or false is expected, found %s", json_value_kind(value));
	reading->out->projected = json_is_true(value);
	return true;
}

bool attention_read_output_dtype(const json_t *value, const char *pointer, struct reading *reading)
{
	static const char *const words[] = {"float32", "float16", "bfloat16", "float64"};
	static const attn_dtype dtypes[] = {ATTN_FLOAT32, ATTN_FLOAT16, ATTN_BFLOAT16, ATTN_FLOAT64};
	size_t word;
	if (!json_value_word(value, pointer, words, 4, &word, reading->problem))
		return false;
	reading->out->has_output_dtype = true;
	reading->out->output_dtype = dtypes[word];
	return true;
}

bool attention_read_precision(const json_t *value, const char *pointer, struct reading *reading)
{
	int64_t digits = 0;
	if (json_is_string(value))
		return strcmp(json_string_value(value), "shortest") == 0 ||
		       problem_set(reading->problem, PROBLEM_BAD_VALUE, pointer,
		                   "1 to 9 digits or \"shortest\" is expected, found \"%s\"",
		                   json_string_value(value));
	if (!json_value_integer(value, pointer, 1, 9, &digits, reading->problem))
		return false;
	reading->out->precision = (int)digits;
	return true;
}
