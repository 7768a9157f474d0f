#include "codec/forward_inputs.h"

#include "codec/forward_fields.h"
#include "codec/forward_texts.h"
#include "codec/json_tensor.h"
#include "codec/safetensors_body.h"

#include <string.h>

const struct forward_input_pointers forward_input_pointers[ATTN_STACKS] = {
    [ATTN_FIRST_STACK] = {"/tokens", "/embeddings", "/text"},
    [ATTN_SECOND_STACK] = {"/decoder_tokens", "/decoder_embeddings", "/decoder_text"},
};

const char *forward_input_pointer(const struct forward_request *request, size_t stack)
{
	const struct forward_input_pointers *pointers = &forward_input_pointers[stack];
	if (request->inputs[stack].embeddings.data != NULL)
		return pointers->embeddings;
	return request->inputs[stack].rows.form == TOKENS_TEXT ? pointers->text : pointers->tokens;
}

/* ---- lengths */

static void note_length(const struct forward_request *request, size_t stack, size_t length,
                        const char *pointer, size_t limit, struct problem *problem)
{
	size_t positions = request->info.stacks[stack].positions;
	if (length > limit)
		problem_note(problem, PROBLEM_SEQUENCE_TOO_LONG, pointer,
		             "the sequence has length %zu, the limit is %zu", length, limit);
	else if (positions > 0 && length > positions)
		problem_note(problem, PROBLEM_SEQUENCE_TOO_LONG, pointer,
		             "the sequence has length %zu, the model has %zu positions", length, positions);
}

static void note_lengths(const struct forward_request *request, size_t limit, struct problem *problem)
{
	for (size_t stack = 0; stack < ATTN_STACKS; stack++) {
		const struct forward_input *input = &request->inputs[stack];
		const struct forward_input_pointers *pointers = &forward_input_pointers[stack];
		const struct token_rows *rows = &input->rows;
		const struct tensor *embeddings = &input->embeddings;
		char pointer[JSON_POINTER_MAX];
		for (size_t row = 0; row < rows->rows; row++) {
			token_rows_row_pointer(rows, forward_input_pointer(request, stack), row, pointer);
			note_length(request, stack, rows->lengths[row], pointer, limit, problem);
		}
		if (embeddings->data != NULL && embeddings->rank >= 2)
			note_length(request, stack, embeddings->dims[embeddings->rank - 2],
			            pointers->embeddings, limit, problem);
	}
}

/* ---- a JSON body */

/* Numbers of the rules, each with a stack's added. */
enum { RULE_EMBEDDINGS, RULE_TOKENS = RULE_EMBEDDINGS + ATTN_STACKS, RULES = RULE_TOKENS + ATTN_STACKS };

static const struct json_rule rules[RULES] = {
    [RULE_EMBEDDINGS + ATTN_FIRST_STACK] = {"/embeddings", JSON_FLOATS},
    [RULE_EMBEDDINGS + ATTN_SECOND_STACK] = {"/decoder_embeddings", JSON_FLOATS},
    [RULE_TOKENS + ATTN_FIRST_STACK] = {"/tokens", JSON_TOKENS},
    [RULE_TOKENS + ATTN_SECOND_STACK] = {"/decoder_tokens", JSON_TOKENS},
};

static void take_embeddings(struct json_tensor_source *source, struct forward_request *request)
{
	for (size_t stack = 0; stack < ATTN_STACKS; stack++) {
		struct tensor *out = &request->inputs[stack].embeddings;
		struct json_array array;
		if (!json_tensor_take(source, RULE_EMBEDDINGS + stack, &array))
			continue;
		*out = (struct tensor){.data = array.data, .rank = array.rank, .count = array.count};
		memcpy(out->dims, array.dims, sizeof(out->dims));
	}
}

static void take_tokens(struct json_tensor_source *source, struct forward_request *request)
{
	for (size_t stack = 0; stack < ATTN_STACKS; stack++) {
		struct json_array *array = &source->scan->arrays[RULE_TOKENS + stack];
		struct token_rows *rows = &request->inputs[stack].rows;
		const char *pointer = forward_input_pointers[stack].tokens;
		const json_t *value = json_object_get(source->envelope, pointer + 1);
		if (array->present)
			token_rows_take(array, pointer, &source->room, rows, source->problem);
		else if (value != NULL)
			token_rows_read(value, pointer, &source->room, rows, source->problem);
	}
}

static json_t *read_json(const char *body, size_t length, const struct attention_limits *limits,
                         attn_executor *executor, struct forward_request *request, struct problem *problem)
{
	struct json_scan scan = {0};
	json_t *envelope = json_body_read(body, length, rules, RULES, limits->elements, forward_fields_known,
	                                  executor, &scan, problem);
	if (envelope != NULL) {
		struct json_tensor_source source = {.scan = &scan,
		                                    .envelope = envelope,
		                                    .rules = rules,
		                                    .room = {.limit = limits->elements},
		                                    .problem = problem};
		take_embeddings(&source, request);
		take_tokens(&source, request);
	}
	json_scan_clear(&scan);
	return envelope;
}

/* ---- a safetensors body */

/* Whether the name is that of a stack's input, tokens or embeddings. */
static bool find_input(const char *name, size_t *stack, bool *tokens)
{
	for (*stack = 0; *stack < ATTN_STACKS; ++*stack) {
		const struct forward_input_pointers *pointers = &forward_input_pointers[*stack];
		*tokens = strcmp(name, pointers->tokens + 1) == 0;
		if (*tokens || strcmp(name, pointers->embeddings + 1) == 0)
			return true;
	}
	return false;
}

static void take_field(struct safetensors_body *body, const char *name)
{
	size_t stack;
	bool tokens;
	if (find_input(name, &stack, &tokens) && !tokens) {
		safetensors_body_note_wrong_type(
		    body, name, "a tensor is expected, named as the field, found text in __metadata__");
		return;
	}
	json_t *value = safetensors_body_field(body, name);
	if (value != NULL)
		safetensors_body_put(body, body->envelope, name, value);
}

static void take_input(struct safetensors_body *body, const attn_stored_tensor *stored, size_t stack,
                       bool tokens, struct forward_request *request)
{
	struct forward_input *input = &request->inputs[stack];
	const struct forward_input_pointers *pointers = &forward_input_pointers[stack];
	if (json_object_get(body->envelope, stored->name) != NULL) {
		problem_note(body->problem, PROBLEM_DUPLICATE_KEY, pointers->tokens,
		             "the tokens are given twice, as a tensor and in __metadata__");
		return;
	}
	/* What stands in the envelope for a tensor is passed over. */
	safetensors_body_put(body, body->envelope, stored->name, json_object());
	if (tokens)
		token_rows_read_stored(stored, pointers->tokens, &body->room, &input->rows, body->problem);
	else
		safetensors_body_floats(body, stored, pointers->embeddings, 1, TENSOR_MAX_RANK,
		                        &input->embeddings);
}

/* Names that no field has are left to the reader of the envelope to complain about. */
static void take_tensor(struct safetensors_body *body, const attn_stored_tensor *stored,
                        struct forward_request *request)
{
	size_t stack;
	bool tokens;
	if (find_input(stored->name, &stack, &tokens))
		take_input(body, stored, stack, tokens, request);
	else if (safetensors_body_knows(body, stored->name))
		safetensors_body_note_wrong_type(
		    body, stored->name, "this field is not a tensor; it stands in __metadata__ as JSON text");
	else
		safetensors_body_put(body, body->envelope, stored->name, json_null());
}

/* Tokens that stand in __metadata__. */
static void read_tokens(const json_t *envelope, struct tensor_room *room, struct forward_request *request,
                        struct problem *problem)
{
	for (size_t stack = 0; stack < ATTN_STACKS; stack++) {
		struct token_rows *rows = &request->inputs[stack].rows;
		const char *pointer = forward_input_pointers[stack].tokens;
		const json_t *value = json_object_get(envelope, pointer + 1);
		if (value != NULL && rows->lengths == NULL)
			token_rows_read(value, pointer, room, rows, problem);
	}
}

static json_t *read_safetensors(const char *bytes, size_t length, const struct attention_limits *limits,
                                struct forward_request *request, struct problem *problem)
{
	struct safetensors_body body;
	if (!safetensors_body_open(&body, bytes, length, limits->elements, forward_fields_known, problem))
		return NULL;
	for (const char *name = NULL; (name = safetensors_body_next_field(&body, name)) != NULL;)
		take_field(&body, name);
	for (size_t i = 0; i < attn_safetensors_count(body.file); i++)
		take_tensor(&body, attn_safetensors_at(body.file, i), request);
	if (problem->code == PROBLEM_NONE)
		read_tokens(body.envelope, &body.room, request, problem);
	return safetensors_body_close(&body);
}

/* ---- the whole */

json_t *forward_inputs_read(const char *body, size_t length, enum body_form form,
                            const struct attention_limits *limits, attn_executor *executor,
                            struct forward_request *request, struct problem *problem)
{
	json_t *envelope = form == BODY_SAFETENSORS
	                       ? read_safetensors(body, length, limits, request, problem)
	                       : read_json(body, length, limits, executor, request, problem);
	if (envelope == NULL)
		return NULL;
	forward_texts_read(envelope, request, problem);
	note_lengths(request, limits->sequence_length, problem);
	if (problem->code == PROBLEM_NONE)
		return envelope;
	json_decref(envelope);
	return NULL;
}
