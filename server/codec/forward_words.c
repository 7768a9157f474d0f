#include "codec/forward_words.h"

#include "codec/forward_fields.h"
#include "codec/json_text.h"
#include "codec/safetensors_writer.h"
#include "codec/saturating.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAYER_TEXT_MAX 24  /* bytes of one number of `layers` */
#define FRAME_TEXT_MAX 160 /* bytes of what else stands around a text */
#define TOKEN_TEXT_MAX 8   /* bytes around the text of a token, or of null */

struct text {
	char *at;
	size_t length, room;
};

static bool open_text(struct text *text, size_t room)
{
	*text = (struct text){.at = malloc(room), .room = room};
	return text->at != NULL;
}

static void __attribute__((format(printf, 2, 3))) put(struct text *text, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int length = vsnprintf(text->at + text->length, text->room - text->length, format, args);
	va_end(args);
	text->length += (size_t)length;
}

/* ---- layers */

/* Bytes of `layers` as text, at most, terminator included. */
static size_t layers_bytes(const struct forward_request *request)
{
	size_t count = 0;
	for (size_t kind = 0; kind < ATTN_STACK_KINDS && request->layers_given; kind++)
		count += request->layer_counts[kind];
	return count * LAYER_TEXT_MAX + FRAME_TEXT_MAX;
}

static void put_layers(struct text *text, const struct forward_request *request, size_t kind)
{
	put(text, "[");
	for (size_t i = 0; i < request->layer_counts[kind]; i++)
		put(text, "%s%zu", i > 0 ? "," : "", request->layers[kind][i]);
	put(text, "]");
}

/* The numbers of layers, by kind where there are several, as JSON; malloc'd, NULL: no memory. */
static char *layers_text(const struct forward_request *request)
{
	struct text text;
	if (!open_text(&text, layers_bytes(request)))
		return NULL;
	if (!forward_request_has_kinds(request)) {
		put_layers(&text, request, ATTN_FIRST_STACK);
		return text.at;
	}
	for (size_t kind = 0; kind < ATTN_STACK_KINDS; kind++) {
		if (request->layer_counts[kind] == 0)
			continue;
		put(&text, "%s\"%s\":", kind == 0 ? "{" : ",", forward_kind_names[kind]);
		put_layers(&text, request, kind);
	}
	put(&text, "}");
	return text.at;
}

/* ---- texts of tokens */

static const char *const words_names[ATTN_STACKS] = {"token_strings", "decoder_token_strings"};

void forward_words_measure(struct forward_request *request)
{
	for (size_t stack = 0; stack < ATTN_STACKS; stack++) {
		struct forward_input *input = &request->inputs[stack];
		size_t bytes = FRAME_TEXT_MAX + 4 * input->rows.rows;
		if (!input->given || input->rows.values == NULL || !forward_request_reads(request, stack))
			continue;
		for (size_t i = 0; i < input->rows.count; i++) {
			const char *word =
			    request->reader.token(request->reader.tokenizer, input->rows.values[i]);
			size_t length = word != NULL ? strlen(word) : 0;
			/* each backslash of an escape takes one byte more in a binary reply */
			bytes = saturating_add(bytes, (JSON_ESCAPED_MAX + 1) * length + TOKEN_TEXT_MAX);
		}
		input->words_bytes = bytes;
	}
}

static void put_words(struct text *text, const struct forward_request *request, const int64_t *ids,
                      size_t count)
{
	put(text, "[");
	for (size_t i = 0; i < count; i++) {
		const char *word = request->reader.token(request->reader.tokenizer, ids[i]);
		put(text, "%s%s", i > 0 ? "," : "", word != NULL ? "\"" : "null");
		if (word == NULL)
			continue;
		text->length += json_put_escaped(text->at + text->length, word);
		put(text, "\"");
	}
	put(text, "]");
}

static char *words_text(const struct forward_request *request, size_t stack)
{
	const struct forward_input *input = &request->inputs[stack];
	const struct token_rows *rows = &input->rows;
	struct text text;
	if (!open_text(&text, input->words_bytes))
		return NULL;
	put(&text, "%s", rows->batched ? "[" : "");
	for (size_t row = 0; row < rows->rows; row++) {
		put(&text, "%s", row > 0 ? "," : "");
		put_words(&text, request, rows->values + input->starts[row], rows->lengths[row]);
	}
	put(&text, "%s", rows->batched ? "]" : "");
	return text.at;
}

/* ---- all */

size_t forward_words_bytes(const struct forward_request *request)
{
	/* In a binary reply each quote takes a backslash more. */
	size_t bytes = SAFETENSORS_ENTRY_MAX + 2 * layers_bytes(request);
	for (size_t stack = 0; stack < ATTN_STACKS; stack++)
		bytes = saturating_add(bytes, request->inputs[stack].words_bytes);
	return bytes;
}

static bool add(struct forward_words *words, const char *name, char *text)
{
	if (text == NULL)
		return false;
	words->names[words->count] = name;
	words->texts[words->count++] = text;
	return true;
}

bool forward_words_make(const struct forward_request *request, struct forward_words *out)
{
	*out = (struct forward_words){.count = 0};
	for (size_t stack = 0; stack < ATTN_STACKS; stack++) {
		if (request->inputs[stack].words_bytes > 0 &&
		    !add(out, words_names[stack], words_text(request, stack)))
			return false;
	}
	return !request->layers_given || add(out, "layers", layers_text(request));
}

void forward_words_clear(struct forward_words *words)
{
	for (size_t i = 0; i < words->count; i++)
		free(words->texts[i]);
	words->count = 0;
}
