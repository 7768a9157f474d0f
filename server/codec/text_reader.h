/*
 * text_reader.h - what a model's tokenizer does, to code that does not know tokenizers. Any thread.
 */
#ifndef ATTND_CODEC_TEXT_READER_H
#define ATTND_CODEC_TEXT_READER_H

#include "codec/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes start up to end of a text; [0,0] for special tokens put around it. */
struct text_range {
	uint32_t start, end;
};

struct text_tokens {
	int64_t *ids;              /* [count]; malloc'd */
	struct text_range *ranges; /* [count]; malloc'd */
	size_t count;
};

struct text_reader {
	const void *tokenizer; /* NULL: the model has none, and the functions are not called */
	/* The tokens of a text, special ones around it, for the caller to clear; false with the problem set
	 * at pointer. */
	bool (*encode)(const void *tokenizer, const char *text, size_t length, const char *pointer,
	               struct text_tokens *out, struct problem *problem);
	/* The text of a token, as long as the tokenizer lives; NULL where there is none. */
	const char *(*token)(const void *tokenizer, int64_t id);
};

void text_tokens_clear(struct text_tokens *tokens);

#endif
