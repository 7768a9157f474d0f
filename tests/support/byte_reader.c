#include "byte_reader.h"

#include <stdlib.h>

#define IDS 50
#define NAMED 40

static bool encode(const void *tokenizer, const char *text, size_t length, const char *pointer,
                   struct text_tokens *out, struct problem *problem)
{
	(void)tokenizer;
	*out = (struct text_tokens){.ids = NULL};
	if (length > 0 && text[0] == '~')
		return problem_set(problem, PROBLEM_BAD_VALUE, pointer, "the text begins with '~'");
	out->count = length + 2;
	out->ids = malloc(out->count * sizeof(*out->ids));
	out->ranges = calloc(out->count, sizeof(*out->ranges));
	if (out->ids == NULL || out->ranges == NULL) {
		text_tokens_clear(out);
		return problem_set_status(problem, ATTN_MEMORY);
	}
	out->ids[0] = 1;
	for (size_t i = 0; i < length; i++) {
		out->ids[i + 1] = (unsigned char)text[i] % IDS;
		out->ranges[i + 1] = (struct text_range){(uint32_t)i, (uint32_t)i + 1};
	}
	out->ids[length + 1] = 2;
	return true;
}

static const char *token(const void *tokenizer, int64_t id)
{
	static char texts[NAMED][2];
	(void)tokenizer;
	if (id < 0 || id >= NAMED)
		return NULL;
	texts[id][0] = (char)('!' + id);
	return texts[id];
}

struct text_reader byte_reader(void)
{
	static const char any;
	return (struct text_reader){&any, encode, token};
}
