#include "codec/forward_texts.h"

#include "codec/forward_inputs.h"
#include "codec/json_path.h"

#include <stdlib.h>

/* The input as it grows. */
struct reading {
	const struct text_reader *reader;
	struct forward_input *input;
	size_t room; /* tokens that values and ranges have room for */
	struct problem *problem;
};

static bool note_memory(struct reading *reading)
{
	return problem_note(reading->problem, PROBLEM_MEMORY, "", "the system refused memory for the tokens");
}

static bool reserve(struct reading *reading, size_t count)
{
	struct forward_input *input = reading->input;
	size_t needed = input->rows.count + count, room = needed + needed / 2 + 1;
	if (needed <= reading->room && input->ranges != NULL)
		return true;
	int64_t *values = realloc(input->rows.values, room * sizeof(*values));
	input->rows.values = values != NULL ? values : input->rows.values;
	int64_t *ranges = realloc(input->ranges, 2 * room * sizeof(*ranges));
	input->ranges = ranges != NULL ? ranges : input->ranges;
	reading->room = room;
	return (values != NULL && ranges != NULL) || note_memory(reading);
}

static bool append(struct reading *reading, const struct text_tokens *tokens)
{
	struct forward_input *input = reading->input;
	if (!reserve(reading, tokens->count))
		return false;
	for (size_t i = 0; i < tokens->count; i++) {
		size_t at = input->rows.count++;
		input->rows.values[at] = tokens->ids[i];
		input->ranges[2 * at] = tokens->ranges[i].start;
		input->ranges[2 * at + 1] = tokens->ranges[i].end;
	}
	return true;
}

/* One text, as the next row. */
static bool read_row(struct reading *reading, const json_t *text, const char *pointer)
{
	struct token_rows *rows = &reading->input->rows;
	struct problem own = {.code = PROBLEM_NONE};
	struct text_tokens tokens;
	const struct text_reader *reader = reading->reader;
	if (!reader->encode(reader->tokenizer, json_string_value(text), json_string_length(text), pointer,
	                    &tokens, &own))
		return problem_note(reading->problem, own.code, own.pointer, "%s", own.detail);
	rows->lengths[rows->rows] = tokens.count;
	bool good = append(reading, &tokens);
	rows->rows += good;
	text_tokens_clear(&tokens);
	return good;
}

static void read_rows(struct reading *reading, const json_t *value, const char *pointer)
{
	struct token_rows *rows = &reading->input->rows;
	rows->form = TOKENS_TEXT;
	rows->batched = json_is_array(value);
	size_t count = rows->batched ? json_array_size(value) : 1;
	rows->lengths = malloc(count * sizeof(*rows->lengths) + 1);
	if (rows->lengths == NULL) {
		note_memory(reading);
		return;
	}
	bool good = reserve(reading, 0);
	for (size_t i = 0; i < count && good; i++) {
		char place[JSON_POINTER_MAX];
		json_pointer_element(pointer, i, place);
		good = rows->batched ? read_row(reading, json_array_get(value, i), place)
		                     : read_row(reading, value, pointer);
	}
}

static bool is_text(const json_t *value)
{
	bool strings = json_is_string(value) || json_is_array(value);
	for (size_t i = 0; i < json_array_size(value); i++)
		strings = strings && json_is_string(json_array_get(value, i));
	return strings;
}

void forward_texts_read(const json_t *envelope, struct forward_request *request, struct problem *problem)
{
	for (size_t stack = 0; stack < ATTN_STACKS; stack++) {
		struct forward_input *input = &request->inputs[stack];
		struct reading reading = {.reader = &request->reader, .input = input, .problem = problem};
		const char *pointer = forward_input_pointers[stack].text;
		const json_t *value = json_object_get(envelope, pointer + 1);
		bool free_for_text = input->rows.lengths == NULL && input->embeddings.data == NULL &&
		                     request->info.stacks[stack].layers > 0;
		if (is_text(value) && free_for_text && forward_request_reads(request, stack))
			read_rows(&reading, value, pointer);
	}
}
