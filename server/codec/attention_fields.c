#include "codec/attention_fields.h"

#include "codec/attention_readers.h"
#include "codec/json_path.h"
#include "codec/request_fields.h"

#include <stdlib.h>
#include <string.h>

/* ---- one reader for each field; pointer is the field's */

static bool read_heads(const json_t *value, const char *pointer, struct reading *reading)
{
	return request_read_count(value, pointer, &reading->out->heads, reading->problem);
}

static bool read_kv_heads(const json_t *value, const char *pointer, struct reading *reading)
{
	return request_read_count(value, pointer, &reading->out->kv_heads, reading->problem);
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

static bool read_positions(const json_t *value, const char *pointer, struct reading *reading)
{
	static const char *const words[] = {
	    [POSITIONS_NONE] = "none",   [POSITIONS_SINUSOIDAL] = "sinusoidal",
	    [POSITIONS_ROPE] = "rope",   [POSITIONS_ROPE_INTERLEAVED] = "rope_interleaved",
	    [POSITIONS_ALIBI] = "alibi",
	};
	size_t word;
	if (!json_value_word(value, pointer, words, sizeof(words) / sizeof(words[0]), &word,
	                     reading->problem))
		return false;
	reading->out->positions = (enum attention_positions)word;
	return true;
}

static bool read_rope_theta(const json_t *value, const char *pointer, struct reading *reading)
{
	float theta;
	if (!json_value_float(value, pointer, &theta, reading->problem))
		return false;
	reading->out->rope_theta = json_number_value(value);
	if (theta > 0)
		return true;
	return problem_set(reading->problem, PROBLEM_BAD_VALUE, pointer,
	                   "rope_theta is over 0 in float32, found %g", json_number_value(value));
}

static bool read_position_offset(const json_t *value, const char *pointer, struct reading *reading)
{
	reading->out->has_position_offset = true;
	return json_value_integer(value, pointer, -ATTENTION_FAR, ATTENTION_FAR,
	                          &reading->out->position_offset, reading->problem);
}

static bool read_timeout(const json_t *value, const char *pointer, struct reading *reading)
{
	return request_read_timeout(value, pointer, reading->limits->timeout_ms, &reading->out->timeout_ms,
	                            reading->problem);
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

/* ---- the table */

enum { ON_TENSORS = 1, ON_MODEL = 2, EVERYWHERE = 3 };

static const struct field {
	const char *name;
	int routes;
	bool (*read)(const json_t *value, const char *pointer, struct reading *reading);
} fields[] = {
    {"query", EVERYWHERE, attention_read_tensor},
    {"embeddings", EVERYWHERE, attention_read_tensor},
    {"key", EVERYWHERE, attention_read_tensor},
    {"value", EVERYWHERE, attention_read_tensor},
    {"mask", EVERYWHERE, attention_read_tensor},
    {"bias", EVERYWHERE, attention_read_tensor},
    {"past_key", EVERYWHERE, attention_read_tensor},
    {"past_value", EVERYWHERE, attention_read_tensor},
    {"position_offset", EVERYWHERE, read_position_offset},
    {"causal", EVERYWHERE, attention_read_causal},
    {"key_lengths", EVERYWHERE, attention_read_key_lengths},
    {"window", EVERYWHERE, attention_read_window},
    {"softcap", EVERYWHERE, read_softcap},
    {"sink", EVERYWHERE, read_sink},
    {"weights", EVERYWHERE, attention_read_weights},
    {"projected", EVERYWHERE, attention_read_projected},
    {"statistics", EVERYWHERE, attention_read_statistics},
    {"output_dtype", EVERYWHERE, attention_read_output_dtype},
    {"precision", EVERYWHERE, attention_read_precision},
    {"timeout_ms", EVERYWHERE, read_timeout},
    {"heads", ON_TENSORS, read_heads},
    {"kv_heads", ON_TENSORS, read_kv_heads},
    {"projections", ON_TENSORS, attention_read_projections},
    {"projection_layout", ON_TENSORS, read_layout},
    {"scale", ON_TENSORS, read_scale},
    {"positions", ON_TENSORS, read_positions},
    {"rope_theta", ON_TENSORS, read_rope_theta},
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

static bool known(const char *name, bool model, struct problem *problem)
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
		return request_known_member("", name, names, count, problem);
	}
	if (field->routes & route)
		return true;
	json_pointer_member("", name, pointer);
	return problem_set(problem, PROBLEM_UNKNOWN_FIELD, pointer,
	                   model ? "`%s` is the model's own and cannot be sent"
	                         : "`%s` is for /v1/models/{model}/attention only",
	                   name);
}

static bool known_on_tensors(const char *name, struct problem *problem)
{
	return known(name, false, problem);
}

static bool known_on_model(const char *name, struct problem *problem)
{
	return known(name, true, problem);
}

body_field_known *attention_fields_of(bool model)
{
	return model ? known_on_model : known_on_tensors;
}

static bool read_field(const char *name, const json_t *value, const char *pointer, void *reading)
{
	return find_field(name)->read(value, pointer, reading);
}

bool attention_fields_read(const json_t *envelope, bool model, const struct attention_limits *limits,
                           struct attention_fields *out, struct problem *problem)
{
	struct reading reading = {.limits = limits, .out = out, .problem = problem};
	*out = (struct attention_fields){.weights = WEIGHTS_PER_HEAD,
	                                 .window_left = -1,
	                                 .window_right = -1,
	                                 .rope_theta = 10000,
	                                 .output_dtype = ATTN_FLOAT32};
	return request_read_members(envelope, attention_fields_of(model), read_field, &reading, problem);
}

void attention_fields_clear(struct attention_fields *out)
{
	free(out->causal_offsets.values);
	free(out->key_lengths.values);
	free(out->sinks.values);
	free(out->head_list.values);
	free(out->query_list.values);
	*out = (struct attention_fields){0};
}
