#include "codec/forward_meaning.h"

#include "codec/forward_inputs.h"
#include "codec/forward_narrowing.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A request as it is resolved. */
struct meaning {
	struct forward_request *request;
	struct forward_fields *fields;
	struct problem *problem;
};

/* ---- inputs */

static bool given_as_tokens(const struct forward_input *input)
{
	return input->rows.lengths != NULL && input->rows.form != TOKENS_TEXT;
}

static bool check_one_input(struct meaning *meaning, size_t stack)
{
	const struct forward_input *input = &meaning->request->inputs[stack];
	const struct forward_input_pointers *pointers = &forward_input_pointers[stack];
	bool tokens = given_as_tokens(input), embeddings = input->embeddings.data != NULL;
	bool text = meaning->fields->text[stack];
	if (tokens + embeddings + text > 1)
		return problem_set(
		    meaning->problem, PROBLEM_BAD_VALUE, embeddings ? pointers->embeddings : pointers->text,
		    "one of `%s`, `%s` and `%s` is expected, found %d of them", pointers->tokens + 1,
		    pointers->text + 1, pointers->embeddings + 1, tokens + embeddings + text);
	if (text && !forward_request_reads(meaning->request, stack))
		return problem_set(meaning->problem, PROBLEM_NO_TOKENIZER, pointers->text,
		                   "the model has no tokenizer for this; send `%s`", pointers->tokens + 1);
	if (stack == ATTN_FIRST_STACK && !tokens && !embeddings && !text)
		return problem_set(meaning->problem, PROBLEM_MISSING_FIELD, pointers->tokens,
		                   "`tokens`, `text` or `embeddings` is required");
	return true;
}

static bool check_second_stack(struct meaning *meaning)
{
	const struct forward_input *input = &meaning->request->inputs[ATTN_SECOND_STACK];
	const struct forward_input_pointers *pointers = &forward_input_pointers[ATTN_SECOND_STACK];
	bool tokens = given_as_tokens(input), embeddings = input->embeddings.data != NULL;
	bool text = meaning->fields->text[ATTN_SECOND_STACK];
	if (forward_request_has_kinds(meaning->request) || !(tokens || embeddings || text))
		return true;
	return problem_set(meaning->problem, PROBLEM_BAD_VALUE,
	                   tokens       ? pointers->tokens
	                   : embeddings ? pointers->embeddings
	                                : pointers->text,
	                   "the model has one stack and no decoder beside an encoder");
}

static bool check_tokens(struct meaning *meaning, size_t stack)
{
	const struct token_rows *rows = &meaning->request->inputs[stack].rows;
	const char *pointer = forward_input_pointer(meaning->request, stack);
	size_t vocabulary = meaning->request->info.stacks[stack].vocabulary;
	if (vocabulary == 0)
		return problem_set(meaning->problem, PROBLEM_BAD_VALUE, pointer,
		                   "the model has no vocabulary; send `%s`",
		                   forward_input_pointers[stack].embeddings + 1);
	const int64_t *at = rows->values;
	for (size_t row = 0; row < rows->rows; row++) {
		for (size_t i = 0; i < rows->lengths[row]; i++, at++) {
			char place[JSON_POINTER_MAX];
			if (*at >= 0 && (uint64_t)*at < vocabulary)
				continue;
			token_rows_pointer(rows, pointer, row, i, place);
			return problem_set(meaning->problem, PROBLEM_BAD_VALUE, place,
			                   "the token %" PRId64
			                   " at position %zu is out of range, the vocabulary has %zu",
			                   *at, i, vocabulary);
		}
	}
	return true;
}

/* Of embeddings: checks the shape, and makes rows of their lengths. */
static bool resolve_embeddings(struct meaning *meaning, size_t stack)
{
	struct forward_input *input = &meaning->request->inputs[stack];
	const struct tensor *embeddings = &input->embeddings;
	const char *pointer = forward_input_pointers[stack].embeddings;
	size_t rank = embeddings->rank, width = meaning->request->info.stacks[stack].width;
	struct token_rows *rows = &input->rows;
	if (rank < 2 || rank > 3)
		return problem_set(meaning->problem, PROBLEM_SHAPE_MISMATCH, pointer,
		                   "embeddings have 2 or 3 dimensions, these have %zu", rank);
	if (embeddings->dims[rank - 1] != width)
		return problem_set(meaning->problem, PROBLEM_SHAPE_MISMATCH, pointer,
		                   "the embeddings have width %zu, the model's is %zu",
		                   embeddings->dims[rank - 1], width);
	if (embeddings->count == 0 && rank == 3 && embeddings->dims[0] > TOKEN_ROWS_EMPTY_MAX)
		return problem_set(meaning->problem, PROBLEM_TOO_MANY_ELEMENTS, pointer,
		                   "a batch of %zu empty sequences is over the limit of %d",
		                   embeddings->dims[0], TOKEN_ROWS_EMPTY_MAX);
	*rows = (struct token_rows){.rows = rank == 3 ? embeddings->dims[0] : 1,
	                            .length = embeddings->dims[rank - 2],
	                            .batched = rank == 3};
	rows->lengths = malloc(rows->rows * sizeof(*rows->lengths) + 1);
	if (rows->lengths == NULL)
		return problem_set_status(meaning->problem, ATTN_MEMORY);
	for (size_t row = 0; row < rows->rows; row++)
		rows->lengths[row] = rows->length;
	return true;
}

static bool resolve_input(struct meaning *meaning, size_t stack)
{
	struct forward_input *input = &meaning->request->inputs[stack];
	if (!check_one_input(meaning, stack))
		return false;
	bool tokens = input->rows.lengths != NULL, embeddings = input->embeddings.data != NULL;
	if (tokens && !check_tokens(meaning, stack))
		return false;
	if (embeddings && !resolve_embeddings(meaning, stack))
		return false;
	input->given = tokens || embeddings;
	if (!input->given)
		return true;
	const struct token_rows *rows = &input->rows;
	size_t start = 0;
	input->starts = malloc(rows->rows * sizeof(*input->starts) + 1);
	if (input->starts == NULL)
		return problem_set_status(meaning->problem, ATTN_MEMORY);
	for (size_t row = 0; row < rows->rows; row++) {
		input->starts[row] = start;
		start += rows->lengths[row];
		input->ragged = input->ragged || rows->lengths[row] != rows->lengths[0];
	}
	return true;
}

static bool check_batches(struct meaning *meaning)
{
	const struct forward_input *first = &meaning->request->inputs[ATTN_FIRST_STACK];
	const struct forward_input *second = &meaning->request->inputs[ATTN_SECOND_STACK];
	const char *pointer = forward_input_pointer(meaning->request, ATTN_SECOND_STACK);
	if (!second->given)
		return true;
	if (first->rows.batched != second->rows.batched)
		return problem_set(meaning->problem, PROBLEM_SHAPE_MISMATCH, pointer,
		                   "the decoder gets %s where the encoder gets %s",
		                   second->rows.batched ? "a batch" : "one sequence",
		                   first->rows.batched ? "a batch" : "one sequence");
	return first->rows.rows == second->rows.rows ||
	       problem_set(meaning->problem, PROBLEM_SHAPE_MISMATCH, pointer,
	                   "the decoder gets a batch of %zu where the encoder gets %zu", second->rows.rows,
	                   first->rows.rows);
}

static bool resolve_inputs(struct meaning *meaning)
{
	struct forward_request *request = meaning->request;
	const struct token_rows *first = &request->inputs[ATTN_FIRST_STACK].rows;
	const struct token_rows *second = &request->inputs[ATTN_SECOND_STACK].rows;
	if (!check_second_stack(meaning) || !resolve_input(meaning, ATTN_FIRST_STACK) ||
	    !resolve_input(meaning, ATTN_SECOND_STACK) || !check_batches(meaning))
		return false;
	request->batched = first->batched;
	request->batch = first->rows;
	const size_t *const lengths[ATTN_STACKS] = {first->lengths, second->lengths};
	const size_t none[ATTN_STACKS] = {first->length, second->length};
	return forward_groups_make(&request->groups, lengths, request->batch, none) ||
	       problem_set_status(meaning->problem, ATTN_MEMORY);
}

/* ---- logits */

/* Logits of the last position need one. */
static bool check_position(struct meaning *meaning, const char *pointer)
{
	const struct forward_request *request = meaning->request;
	size_t stack = request->inputs[ATTN_SECOND_STACK].given ? ATTN_SECOND_STACK : ATTN_FIRST_STACK;
	const struct token_rows *rows = &request->inputs[stack].rows;
	for (size_t row = 0; row < rows->rows; row++) {
		char place[JSON_POINTER_MAX];
		if (rows->lengths[row] > 0)
			continue;
		token_rows_row_pointer(rows, forward_input_pointer(request, stack), row, place);
		return problem_set(meaning->problem, PROBLEM_BAD_VALUE, place,
		                   "sequence %zu is empty and has no last position, whose logits `%s` asks "
		                   "for",
		                   row, pointer + 1);
	}
	return true;
}

static bool resolve_logits(struct meaning *meaning)
{
	struct forward_request *request = meaning->request;
	const struct forward_fields *fields = meaning->fields;
	bool last = fields->outputs[FORWARD_LOGITS] || fields->top_logits > 0;
	const char *pointer = fields->top_logits > 0 ? "/top_logits" : "/outputs";
	size_t most = request->info.logit_count;
	request->top_logits = fields->top_logits < most ? fields->top_logits : most;
	if (!last && !fields->outputs[FORWARD_LOGITS_ALL])
		return true;
	if (!request->info.logits)
		return problem_set(meaning->problem, PROBLEM_BAD_VALUE, pointer,
		                   "the model has no head that predicts tokens, so there are no logits");
	if (forward_request_has_kinds(request) && !request->inputs[ATTN_SECOND_STACK].given)
		return problem_set(meaning->problem, PROBLEM_MISSING_FIELD, "/decoder_tokens",
		                   "logits are the decoder's, which needs `decoder_tokens`");
	return !last || check_position(meaning, fields->outputs[FORWARD_LOGITS] ? "/logits" : "/top_logits");
}

/* ---- the whole */

/* Fields that say how results are made are for those results. */
static bool check_fields_used(struct meaning *meaning)
{
	const struct forward_fields *fields = meaning->fields;
	bool weights = fields->outputs[FORWARD_WEIGHTS], pooled = fields->outputs[FORWARD_POOLED];
	bool statistics = false;
	for (size_t i = 0; i < ATTENTION_STATISTICS; i++)
		statistics = statistics || fields->statistics[i];
	const struct {
		const char *name, *of;
		bool given, used;
	} uses[] = {
	    {"layers", "weights", fields->layers.values != NULL, weights || statistics},
	    {"heads", "weights", fields->heads.values != NULL, weights},
	    {"queries", "weights", fields->queries.values != NULL, weights},
	    {"top_k", "weights", fields->top_k > 0, weights},
	    {"pooling", "pooled", fields->has_pooling, pooled},
	    {"normalize", "pooled", fields->has_normalize, pooled},
	};
	for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
		char pointer[JSON_POINTER_MAX];
		if (!uses[i].given || uses[i].used)
			continue;
		json_pointer_member("", uses[i].name, pointer);
		return problem_set(meaning->problem, PROBLEM_BAD_VALUE, pointer,
		                   "`%s` is about `%s`, which `outputs` does not name", uses[i].name,
		                   uses[i].of);
	}
	return true;
}

static void take_outputs(struct forward_request *request, const struct forward_fields *fields)
{
	memcpy(request->wants, fields->outputs, sizeof(request->wants));
	memcpy(request->wants_statistic, fields->statistics, sizeof(request->wants_statistic));
	request->rollout = fields->rollout;
	request->pooling = fields->pooling;
	request->normalize = fields->normalize;
	request->output_dtype = fields->output_dtype;
	request->precision = fields->precision;
	request->timeout_ms = fields->timeout_ms;
}

bool forward_meaning_resolve(struct forward_request *request, struct forward_fields *fields,
                             struct problem *problem)
{
	struct meaning meaning = {request, fields, problem};
	if (request->info.stacks[ATTN_FIRST_STACK].layers == 0)
		return problem_set(problem, PROBLEM_NO_STACK, "",
		                   "the model is %zu layer(s) of attention without a stack around them; "
		                   "POST /v1/models/{model}/attention runs one",
		                   request->info.layers + request->info.cross_layers);
	if (!resolve_inputs(&meaning) || !check_fields_used(&meaning))
		return false;
	take_outputs(request, fields);
	return resolve_logits(&meaning) && forward_narrowing_resolve(request, fields, problem);
}
