#include "http/tokens.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MOST (1 << 20)

/* A token in a room that all have alike, filled up with zeros. */
struct token {
	unsigned char text[TOKEN_MAX];
};

struct tokens {
	size_t count;
	struct token list[TOKENS_MAX];
};

__attribute__((format(printf, 3, 4))) static bool fail(attn_error *err, attn_status status,
                                                       const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	err->status = status;
	vsnprintf(err->message, sizeof(err->message), format, arguments);
	va_end(arguments);
	return false;
}

static bool is_space(char byte)
{
	return byte == ' ' || byte == '\t' || byte == '\r';
}

static bool is_visible(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (text[i] <= ' ' || text[i] > '~')
			return false;
	}
	return true;
}

/* One line [line, length). */
static bool take_line(struct tokens *tokens, const char *path, unsigned number, const char *line,
                      size_t length, attn_error *err)
{
	while (length > 0 && is_space(line[length - 1]))
		length--;
	while (length > 0 && is_space(*line))
		line++, length--;
	if (length == 0 || *line == '#')
		return true;
	if (length > TOKEN_MAX)
		return fail(err, ATTN_FILE, "%s:%u: the token is longer than %d characters", path, number,
		            TOKEN_MAX);
	if (!is_visible(line, length))
		return fail(err, ATTN_FILE, "%s:%u: a token is of visible ASCII characters alone", path,
		            number);
	if (tokens->count == TOKENS_MAX)
		return fail(err, ATTN_FILE, "%s:%u: there are more than %d tokens", path, number, TOKENS_MAX);
	memcpy(tokens->list[tokens->count++].text, line, length);
	return true;
}

static bool take_lines(struct tokens *tokens, const char *path, const char *text, size_t size,
                       attn_error *err)
{
	unsigned number = 1;
	for (const char *end = text + size; text < end; number++) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		size_t length = (size_t)((stop ? stop : end) - text);
		if (!take_line(tokens, path, number, text, length, err))
			return false;
		text += length + 1;
	}
	if (tokens->count == 0)
		return fail(err, ATTN_FILE, "%s: there is no token in it", path);
	return true;
}

/* Reads the whole file to text; its length, or FILE_MOST + 1 with err set. */
static size_t read_file(const char *path, char text[static FILE_MOST + 1], attn_error *err)
{
	FILE *file = fopen(path, "re");
	size_t size = file ? fread(text, 1, FILE_MOST + 1, file) : 0;
	if (!file || ferror(file)) {
		fail(err, ATTN_FILE, "%s: %s", path, strerror(errno));
		size = FILE_MOST + 1;
	} else if (size > FILE_MOST) {
		fail(err, ATTN_FILE, "%s: it has more than %d bytes", path, FILE_MOST);
	}
	if (file)
		fclose(file);
	return size;
}

struct tokens *tokens_load(const char *path, attn_error *err)
{
	bool good = false;
	struct tokens *tokens = calloc(1, sizeof(*tokens));
	char *text = malloc(FILE_MOST + 1);
	if (!tokens || !text) {
		fail(err, ATTN_MEMORY, "the system refused memory for the tokens");
		goto done;
	}
	size_t size = read_file(path, text, err);
	good = size <= FILE_MOST && take_lines(tokens, path, text, size, err);
	explicit_bzero(text, FILE_MOST + 1);
done:
	free(text);
	if (good)
		return tokens;
	tokens_free(tokens);
	return NULL;
}

void tokens_free(struct tokens *tokens)
{
	if (!tokens)
		return;
	explicit_bzero(tokens, sizeof(*tokens));
	free(tokens);
}

size_t tokens_count(const struct tokens *tokens)
{
	return tokens->count;
}

/* 0 when both rooms hold the same; every byte is looked at. */
static unsigned difference(const struct token *a, const struct token *b)
{
	unsigned bits = 0;
	for (size_t i = 0; i < TOKEN_MAX; i++)
		bits |= a->text[i] ^ b->text[i];
	return bits;
}

bool tokens_match(const struct tokens *tokens, const char *text)
{
	struct token asked = {{0}};
	size_t length = strlen(text);
	memcpy(asked.text, text, length < TOKEN_MAX ? length : TOKEN_MAX);
	/* volatile: no compiler may end the loop at a match. A difference is at most 255, so that one less
	 * than it has a bit 8 only when it was 0. */
	volatile unsigned found = 0;
	for (size_t i = 0; i < tokens->count; i++)
		found |= (difference(&asked, &tokens->list[i]) - 1) >> 8 & 1;
	explicit_bzero(&asked, sizeof(asked));
	return found != 0 && length > 0 && length <= TOKEN_MAX;
}
