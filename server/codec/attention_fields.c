#include "codec/attention_fields.h"

#include "codec/json_path.h"
#include "codec/nearest_name.h"

#include <stdlib.h>
#include <string.h>

/* What a reader of a field gets and fills. */
struct reading {
	const struct attention_limits *limits;
	struct attention_fields *out;
	struct problem *problem;
};

/* ---- one reader for each field; pointer is the field's */

static bool read_count(const json_t *value, const char *pointer, size_t *out, struct reading *reading)
{
	int64_t count;
	if (!json_value_integer(value, pointer, 1, INT64_MAX, &count, reading->problem))
		return false;
	*out = (size_t)count;
	return true;
}

static bool read_heads(const json_t *value, const char *pointer, struct reading *reading)
{
	return read_count(value, pointer, &reading->out->heads, reading);
}

static bool read_kv_heads(const json_t *value, const char *pointer, struct reading *reading)
{
	return read_count(value, pointer, &reading->out->kv_heads, reading);
}

static bool read_layout(const json_t *value, const char *pointer, struct reading *reading)
{
	static const char *const words[] = {"in_out", "out_in"};
	size_t word;
	if (!json_value_word(value, pointer, words, 2, &word, reading->problem))
		return false;
	reading->out->layout = word == 0 ? ATTN_IN_OUT : ATTN_OUT_IN;
	return true;
}

static int64_t nearer_than_far(int64_t value)
{
	return value > ATTENTION_FAR ? ATTENTION_FAR : value < -ATTENTION_FAR ? -ATTENTION_FAR : value;
}

static bool read_causal(const json_t *value, const char *pointer, struct reading *reading)
{
	static const char *const words[] = {"top_left", "bottom_right"};
	struct attention_fields *out = reading->out;
	if (json_is_boolean(value)) {
		out->causal = json_is_true(value) ? ATTN_CAUSAL_BOTTOM_RIGHT : ATTN_CAUSAL_NONE;
		return true;
	}
	if (json_is_string(value)) {
		size_t word;
		if (!json_value_word(value, pointer, words, 2, &word, reading->problem))
			return false;
		out->causal = word == 0 ? ATTN_CAUSAL_TOP_LEFT : ATTN_CAUSAL_BOTTOM_RIGHT;
		return true;
	}
	if (!json_is_number(value) && !json_is_array(value))
		return problem_set(
		    reading->problem, PROBLEM_WRONG_TYPE, pointer,
		    "false, true, \"top_left\", \"bottom_right\", an integer offset or a list of "
		    "them is expected, found %s",
		    json_value_kind(value));
	out->causal = ATTN_CAUSAL_OFFSET;
	out->causal_is_list = json_is_array(value);
	if (!json_value_integers(value, pointer, INT64_MIN, INT64_MAX, &out->causal_offsets,
	                         reading->problem))
		return false;
	for (size_t i = 0; i < out->causal_offsets.count; i++)
		out->causal_offsets.values[i] = nearer_than_far(out->causal_offsets.values[i]);
	return true;
}

static bool read_key_lengths(const json_t *value, const char *pointer, struct reading *reading)
{
	reading->out->key_lengths_is_list = json_is_array(value);
	return json_value_integers(value, pointer, 0, INT64_MAX, &reading->out->key_lengths,
	                           reading->problem);
}

static bool read_window(const json_t *value, const char *pointer, struct reading *reading)
{
	struct integer_list window = {0};
	bool read = false;
	if (!json_is_array(value) || json_array_size(value) != 2) {
		problem_set(reading->problem, json_is_array(value) ? PROBLEM_BAD_VALUE : PROBLEM_WRONG_TYPE,
		            pointer, "a list of two integers, [left, right], is expected");
		goto done;
	}
	if (!json_value_integers(value, pointer, -1, INT64_MAX, &window, reading->problem))
		goto done;
	reading->out->window_left = nearer_than_far(window.values[0]);
	reading->out->window_right = nearer_than_far(window.values[1]);
	read = true;
done:
	free(window.values);
	return read;
}

static bool read_scale(const json_t *value, const char *pointer, struct reading *reading)
{
	reading->out->has_scale = true;
	return json_value_float(value, pointer, &reading->out->scale, reading->problem);
}

static bool read_softcap(const json_t *value, const char *pointer, struct reading *reading)
{
	if (!json_value_float(value, pointer, &reading->out->softcap, reading->problem))
		return false;
	if (reading->out->softcap > 0)
		return true;
	return problem_set(reading->problem, PROBLEM_BAD_VALUE, pointer,
	                   "a softcap is over 0 in float32, found %g", json_number_value(value));
}

static bool read_sink(const json_t *value, const char *pointer, struct reading *reading)
{
	reading->out->sink_is_list = json_is_array(value);
	return json_value_floats(value, pointer, &reading->out->sinks, reading->problem);
}

static bool read_weights(const json_t *value, const char *pointer, struct reading *reading)
{
	static const char *const words[] = {"mean"};
	size_t word;
	if (json_is_boolean(value)) {
		reading->out->weights = json_is_true(value) ? WEIGHTS_PER_HEAD : WEIGHTS_NONE;
		return true;
	}
	if (!json_is_string(value))
		return problem_set(reading->problem, PROBLEM_WRONG_TYPE, pointer,
		                   "true, false or \"mean\" is expected, found %s", json_value_kind(value));
	reading->out->weights = WEIGHTS_MEAN;
	return json_value_word(value, pointer, words, 1, &word, reading->problem);
}

static bool read_precision(const json_t *value, const char *pointer, struct reading *reading)
{
	static const char *const words[] = {"shortest"};
	size_t word;
	int64_t digits = 0;
	if (json_is_string(value))
		return json_value_word(value, pointer, words, 1, &word, reading->problem);
	if (!json_value_integer(value, pointer, 1, 9, &digits, reading->problem))
		return false;
	reading->out->precision = (int)digits;
	return true;
}

static bool read_timeout(const json_t *value, const char *pointer, struct reading *reading)
{
	uint64_t limit = reading->limits->timeout_ms;
	int64_t most = limit > INT64_MAX ? INT64_MAX : (int64_t)limit, timeout;
	if (!json_value_integer(value, pointer, 1, most, &timeout, reading->problem))
		return false;
	reading->out->timeout_ms = (uint64_t)timeout;
	return true;
}

static bool read_layer(const json_t *value, const char *pointer, struct reading *reading)
{
	int64_t layer;
	if (!json_value_integer(value, pointer, 0, INT64_MAX, &layer, reading->problem))
		return false;
	reading->out->layer = (size_t)layer;
	return true;
}

static bool read_kind(const json_t *value, const char *pointer, struct reading *reading)
{
	static const char *const words[] = {"self", "cross"};
	size_t word;
	if (!json_value_word(value, pointer, words, 2, &word, reading->problem))
		return false;
	reading->out->kind = word == 0 ? ATTN_SELF : ATTN_CROSS;
	return true;
}

/* ---- members of objects that hold tensors */

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(name, names[i]) == 0)
			return true;
	}
	return false;
}

/* UNKNOWN_FIELD at parent/name. */
static bool unknown(const char *parent, const char *name, const char *const *names, size_t count,
                    struct problem *problem)
{
	char pointer[JSON_POINTER_MAX];
	const char *nearest = nearest_name(name, names, count);
	json_pointer_member(parent, name, pointer);
	if (nearest == NULL)
		return problem_set(problem, PROBLEM_UNKNOWN_FIELD, pointer, "there is no field `%s` here",
		                   name);
	return problem_set(problem, PROBLEM_UNKNOWN_FIELD, pointer,
	                   "there is no field `%s` here; `%s` is the nearest that there is", name, nearest);
}

/* A tensor: what is not its index is an object of these two. */
static bool read_tensor(const json_t *value, const char *pointer, struct reading *reading)
{
	static const char *const names[] = {"shape", "data"};
	const char *name;
	json_t *member;
	json_object_foreach((json_t *)value, name, member)
	{
		if (!is_one_of(name, names, 2))
			return unknown(pointer, name, names, 2, reading->problem);
	}
	return true;
}

static bool read_projections(const json_t *value, const char *pointer, struct reading *reading)
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
		if (!is_one_of(name, names, sizeof(names) / sizeof(names[0])))
			return unknown(pointer, name, names, sizeof(names) / sizeof(names[0]),
			               reading->problem);
		json_pointer_member(pointer, name, place);
		if (!read_tensor(member, place, reading))
			return false;
	}
	return true;
}

/* ---- the table */

enum { ON_TENSORS = 1, ON_MODEL = 2, EVERYWHERE = 3 };

static const struct field {
	const char *name;
	int routes;
	bool (*read)(const json_t *value, const char *pointer, struct reading *reading);
} fields[] = {
    {"query", EVERYWHERE, read_tensor},
    {"embeddings", EVERYWHERE, read_tensor},
    {"key", EVERYWHERE, read_tensor},
    {"value", EVERYWHERE, read_tensor},
    {"mask", EVERYWHERE, read_tensor},
    {"bias", EVERYWHERE, read_tensor},
    {"causal", EVERYWHERE, read_causal},
    {"key_lengths", EVERYWHERE, read_key_lengths},
    {"window", EVERYWHERE, read_window},
    {"softcap", EVERYWHERE, read_softcap},
    {"sink", EVERYWHERE, read_sink},
    {"weights", EVERYWHERE, read_weights},
    {"precision", EVERYWHERE, read_precision},
    {"timeout_ms", EVERYWHERE, read_timeout},
    {"heads", ON_TENSORS, read_heads},
    {"kv_heads", ON_TENSORS, read_kv_heads},
    {"projections", ON_TENSORS, read_projections},
    {"projection_layout", ON_TENSORS, read_layout},
    {"scale", ON_TENSORS, read_scale},
    {"layer", ON_MODEL, read_layer},
    {"kind", ON_MODEL, read_kind},
};
#define FIELDS (sizeof(fields) / sizeof(fields[0]))

static const struct field *find_field(const char *name)
{
	for (size_t i = 0; i < FIELDS; i++) {
		if (strcmp(fields[i].name, name) == 0)
			return &fields[i];
	}
	return NULL;
}

bool attention_fields_known(const char *name, bool model, struct problem *problem)
{
	int route = model ? ON_MODEL : ON_TENSORS;
	const struct field *field = find_field(name);
	char pointer[JSON_POINTER_MAX];
	if (field == NULL) {
		const char *names[FIELDS];
		size_t count = 0;
		for (size_t i = 0; i < FIELDS; i++) {
			if (fields[i].routes & route)
				names[count++] = fields[i].name;
		}
		return unknown("", name, names, count, problem);
	}
	if (field->routes & route)
		return true;
	json_pointer_member("", name, pointer);
	return problem_set(problem, PROBLEM_UNKNOWN_FIELD, pointer,
	                   model ? "`%s` is the model's own and cannot be sent"
	                         : "`%s` is for /v1/models/{model}/attention only",
	                   name);
}

bool attention_fields_read(const json_t *envelope, bool model, const struct attention_limits *limits,
                           struct attention_fields *out, struct problem *problem)
{
	struct reading reading = {.limits = limits, .out = out, .problem = problem};
	const char *name;
	json_t *value;
	*out = (struct attention_fields){.weights = WEIGHTS_PER_HEAD, .window_left = -1, .window_right = -1};
	json_object_foreach((json_t *)envelope, name, value)
	{
		char pointer[JSON_POINTER_MAX];
		if (!attention_fields_known(name, model, problem))
			return false;
		json_pointer_member("", name, pointer);
		if (!find_field(name)->read(value, pointer, &reading))
			return false;
	}
	return true;
}

void attention_fields_clear(struct attention_fields *out)
{
	free(out->causal_offsets.values);
	free(out->key_lengths.values);
	free(out->sinks.values);
	*out = (struct attention_fields){0};
}
