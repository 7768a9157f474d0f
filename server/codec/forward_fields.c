#include "codec/forward_fields.h"

#include "codec/json_path.h"
#include "codec/request_fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const forward_kind_names[ATTN_STACK_KINDS] = {
    [ATTN_FIRST_STACK] = "encoder",
    [ATTN_SECOND_STACK] = "decoder",
    [ATTN_CROSS_STACKS] = "cross",
};

/* What a reader of a field gets and fills. */
struct reading {
	const struct attention_limits *limits;
	struct forward_fields *out;
	struct problem *problem;
};

/* ---- one reader for each field; pointer is the field's */

/* Inputs are read apart. */
static bool pass_over(const json_t *value, const char *pointer, struct reading *reading)
{
	(void)value;
	(void)pointer;
	(void)reading;
	return true;
}

static bool read_embeddings(const json_t *value, const char *pointer, struct reading *reading)
{
	return request_read_tensor(value, pointer, reading->problem);
}

static bool note_text(const json_t *value, const char *pointer, size_t stack, struct reading *reading)
{
	bool strings = json_is_string(value) || json_is_array(value);
	for (size_t i = 0; i < json_array_size(value); i++)
		strings = strings && json_is_string(json_array_get(value, i));
	reading->out->text[stack] = true;
	return strings ||
	       problem_set(reading->problem, PROBLEM_WRONG_TYPE, pointer,
	                   "a string or a list of strings is expected, found %s", json_value_kind(value));
}

static bool read_text(const json_t *value, const char *pointer, struct reading *reading)
{
	return note_text(value, pointer, ATTN_FIRST_STACK, reading);
}

static bool read_decoder_text(const json_t *value, const char *pointer, struct reading *reading)
{
	return note_text(value, pointer, ATTN_SECOND_STACK, reading);
}

static bool read_outputs(const json_t *value, const char *pointer, struct reading *reading)
{
	static const char *const words[FORWARD_OUTPUTS] = {
	    [FORWARD_HIDDEN] = "hidden",   [FORWARD_HIDDEN_ALL] = "hidden_all",
	    [FORWARD_WEIGHTS] = "weights", [FORWARD_LOGITS] = "logits",
	    [FORWARD_POOLED] = "pooled",   [FORWARD_LOGITS_ALL] = "logits_all",
	};
	bool *outputs = reading->out->outputs;
	outputs[FORWARD_HIDDEN] = false;
	return request_read_words(value, pointer, words, FORWARD_OUTPUTS, outputs, reading->problem);
}

static bool read_layers(const json_t *value, const char *pointer, struct reading *reading)
{
	return request_read_list(value, pointer, &reading->out->layers, reading->problem);
}

static bool read_heads(const json_t *value, const char *pointer, struct reading *reading)
{
	return request_read_list(value, pointer, &reading->out->heads, reading->problem);
}

static bool read_queries(const json_t *value, const char *pointer, struct reading *reading)
{
	return request_read_list(value, pointer, &reading->out->queries, reading->problem);
}

static bool read_top_k(const json_t *value, const char *pointer, struct reading *reading)
{
	return request_read_count(value, pointer, &reading->out->top_k, reading->problem);
}

static bool read_top_logits(const json_t *value, const char *pointer, struct reading *reading)
{
	return request_read_count(value, pointer, &reading->out->top_logits, reading->problem);
}

static bool read_pooling(const json_t *value, const char *pointer, struct reading *reading)
{
	static const char *const words[] = {"mean", "cls", "last"};
	static const attn_pooling poolings[] = {ATTN_POOL_MEAN, ATTN_POOL_FIRST, ATTN_POOL_LAST};
	size_t word;
	if (!json_value_word(value, pointer, words, 3, &word, reading->problem))
		return false;
	reading->out->has_pooling = true;
	reading->out->pooling = poolings[word];
	return true;
}

static bool read_normalize(const json_t *value, const char *pointer, struct reading *reading)
{
	reading->out->has_normalize = true;
	return request_read_flag(value, pointer, &reading->out->normalize, reading->problem);
}

static bool read_rollout(const json_t *value, const char *pointer, struct reading *reading)
{
	return request_read_flag(value, pointer, &reading->out->rollout, reading->problem);
}

static bool read_statistics(const json_t *value, const char *pointer, struct reading *reading)
{
	return request_read_statistics(value, pointer, reading->out->statistics, reading->problem);
}

static bool read_precision(const json_t *value, const char *pointer, struct reading *reading)
{
	return request_read_precision(value, pointer, &reading->out->precision, reading->problem);
}

static bool read_output_dtype(const json_t *value, const char *pointer, struct reading *reading)
{
	reading->out->has_output_dtype = true;
	return request_read_output_dtype(value, pointer, &reading->out->output_dtype, reading->problem);
}

static bool read_timeout(const json_t *value, const char *pointer, struct reading *reading)
{
	return request_read_timeout(value, pointer, reading->limits->timeout_ms, &reading->out->timeout_ms,
	                            reading->problem);
}

/* ---- ablate */

/* One of [layer, head], [kind, layer, head]. */
static bool read_ablation(const json_t *value, const char *parent, struct forward_ablation *out,
                          struct problem *problem)
{
	size_t size = json_array_size(value);
	char pointer[JSON_POINTER_MAX];
	if (!json_is_array(value) || (size != 2 && size != 3))
		return problem_set(problem, json_is_array(value) ? PROBLEM_BAD_VALUE : PROBLEM_WRONG_TYPE,
		                   parent,
		                   "[layer, head] is expected, or [kind, layer, head] where the model has "
		                   "several kinds of attention");
	*out = (struct forward_ablation){.has_kind = size == 3};
	json_pointer_element(parent, 0, pointer);
	if (out->has_kind && !json_value_word(json_array_get(value, 0), pointer, forward_kind_names,
	                                      ATTN_STACK_KINDS, &out->kind, problem))
		return false;
	json_pointer_element(parent, size - 2, pointer);
	if (!json_value_integer(json_array_get(value, size - 2), pointer, INT64_MIN, INT64_MAX, &out->layer,
	                        problem))
		return false;
	json_pointer_element(parent, size - 1, pointer);
	return json_value_integer(json_array_get(value, size - 1), pointer, INT64_MIN, INT64_MAX, &out->head,
	                          problem);
}

static bool read_ablate(const json_t *value, const char *pointer, struct reading *reading)
{
	struct forward_fields *out = reading->out;
	size_t count = json_array_size(value);
	if (!json_is_array(value))
		return problem_set(reading->problem, PROBLEM_WRONG_TYPE, pointer,
		                   "a list of [layer, head] is expected, found %s", json_value_kind(value));
	out->ablations = malloc(count * sizeof(*out->ablations) + 1);
	if (out->ablations == NULL)
		return problem_set_status(reading->problem, ATTN_MEMORY);
	for (size_t i = 0; i < count; i++) {
		char place[JSON_POINTER_MAX];
		json_pointer_element(pointer, i, place);
		if (!read_ablation(json_array_get(value, i), place, &out->ablations[i], reading->problem))
			return false;
	}
	out->ablation_count = count;
	return true;
}

/* ---- the table */

static const struct field {
	const char *name;
	bool (*read)(const json_t *value, const char *pointer, struct reading *reading);
} fields[] = {
    {"tokens", pass_over},
    {"text", read_text},
    {"embeddings", read_embeddings},
    {"decoder_tokens", pass_over},
    {"decoder_text", read_decoder_text},
    {"decoder_embeddings", read_embeddings},
    {"outputs", read_outputs},
    {"layers", read_layers},
    {"heads", read_heads},
    {"queries", read_queries},
    {"top_k", read_top_k},
    {"pooling", read_pooling},
    {"normalize", read_normalize},
    {"ablate", read_ablate},
    {"rollout", read_rollout},
    {"statistics", read_statistics},
    {"top_logits", read_top_logits},
    {"precision", read_precision},
    {"output_dtype", read_output_dtype},
    {"timeout_ms", read_timeout},
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

bool forward_fields_known(const char *name, struct problem *problem)
{
	const char *names[FIELDS];
	for (size_t i = 0; i < FIELDS; i++)
		names[i] = fields[i].name;
	return request_known_member("", name, names, FIELDS, problem);
}

static bool read_field(const char *name, const json_t *value, const char *pointer, void *reading)
{
	return find_field(name)->read(value, pointer, reading);
}

bool forward_fields_read(const json_t *envelope, const struct attention_limits *limits,
                         struct forward_fields *out, struct problem *problem)
{
	struct reading reading = {.limits = limits, .out = out, .problem = problem};
	*out = (struct forward_fields){.outputs = {[FORWARD_HIDDEN] = true}, .output_dtype = ATTN_FLOAT32};
	return request_read_members(envelope, forward_fields_known, read_field, &reading, problem);
}

void forward_fields_clear(struct forward_fields *out)
{
	free(out->layers.values);
	free(out->heads.values);
	free(out->queries.values);
	free(out->ablations);
	*out = (struct forward_fields){0};
}
