#include "tokenizer_checks.h"

#include "codec/utf8.h"

#include <stdlib.h>

static void expect(int holds)
{
	if (!holds)
		abort();
}

static void expect_utf8(const char *text, size_t length)
{
	for (size_t at = 0, size; at < length; at += size) {
		size = utf8_sequence(text + at, text + length);
		expect(size > 0);
	}
}

/* Whether a character begins there, or the text ends. */
static int is_boundary(const char *text, size_t length, size_t at)
{
	return at == length || ((unsigned char)text[at] & 0xC0) != 0x80;
}

static void check_tokens(const struct tokenizer *tokenizer, const struct text_tokens *tokens,
                         const char *text, size_t length)
{
	for (size_t i = 0; i < tokens->count; i++) {
		struct text_range range = tokens->ranges[i];
		expect(tokens->ids[i] >= 0 && (size_t)tokens->ids[i] < tokenizer_size(tokenizer));
		expect(tokenizer_token(tokenizer, tokens->ids[i]) != NULL);
		expect(range.start <= range.end && range.end <= length);
		expect(is_boundary(text, length, range.start) && is_boundary(text, length, range.end));
	}
}

void check_tokenizer(const struct tokenizer *tokenizer, const char *text, size_t length)
{
	struct problem problem = {.code = PROBLEM_NONE};
	struct text_tokens tokens;
	char *decoded = NULL;
	size_t decoded_length;
	if (!tokenizer_encode(tokenizer, text, length, true, "/text", &tokens, &problem)) {
		int status = problem_status(problem.code);
		expect(problem.detail[0] != '\0' && (status == 400 || status == 413));
		expect(tokens.ids == NULL && tokens.count == 0);
		return;
	}
	expect(problem.code == PROBLEM_NONE);
	check_tokens(tokenizer, &tokens, text, length);
	expect(
	    tokenizer_decode(tokenizer, tokens.ids, tokens.count, true, &decoded, &decoded_length, &problem));
	expect_utf8(decoded, decoded_length);
	free(decoded);
	text_tokens_clear(&tokens);
}
