/*
 * encode_lines.c - what the tokenizer of a directory makes of lines, for compare.py:
 *
 *   encode_lines DIRECTORY [plain] < LINES > TOKENS
 *
 * Each line of input is a JSON string; each line of output `id:start:end` for each token, with ranges in
 * bytes, or `!` and the problem. plain: without special tokens. `decode`: lines are lists of ids, and the
 * output is their text as a JSON string.
 */
#include "text/load_config.h"
#include "text/tokenizer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void encode(const struct tokenizer *tokenizer, const json_t *line, bool special)
{
	struct text_tokens tokens;
	struct problem problem = {.code = PROBLEM_NONE};
	const char *text = json_string_value(line);
	if (!tokenizer_encode(tokenizer, text, json_string_length(line), special, "", &tokens, &problem)) {
		printf("!%s\n", problem.detail);
		return;
	}
	for (size_t i = 0; i < tokens.count; i++)
		printf("%s%" PRId64 ":%u:%u", i > 0 ? " " : "", tokens.ids[i], tokens.ranges[i].start,
		       tokens.ranges[i].end);
	putchar('\n');
	text_tokens_clear(&tokens);
}

static void decode(const struct tokenizer *tokenizer, const json_t *line)
{
	size_t count = json_array_size(line), length;
	int64_t *ids = calloc(count + 1, sizeof *ids);
	char *text;
	struct problem problem = {.code = PROBLEM_NONE};
	for (size_t i = 0; ids != NULL && i < count; i++)
		ids[i] = json_integer_value(json_array_get(line, i));
	bool good = ids != NULL && tokenizer_decode(tokenizer, ids, count, true, &text, &length, &problem);
	free(ids);
	if (!good) {
		printf("!%s\n", problem.detail);
		return;
	}
	json_t *string = json_stringn(text, length);
	char *written = json_dumps(string, JSON_ENCODE_ANY);
	puts(written != NULL ? written : "!not UTF-8");
	free(written);
	json_decref(string);
	free(text);
}

int main(int argc, char **argv)
{
	struct tokenizer *tokenizer = NULL;
	attn_error error = {.status = ATTN_OK};
	if (argc < 2 || tokenizer_open(argv[1], &tokenizer, &error) != ATTN_OK || tokenizer == NULL) {
		fprintf(stderr, "%s\n", error.message[0] != '\0' ? error.message : "no tokenizer files");
		return EXIT_FAILURE;
	}
	const char *what = argc > 2 ? argv[2] : "";
	char *line = NULL;
	size_t room = 0;
	for (ssize_t length; (length = getline(&line, &room, stdin)) > 0;) {
		json_t *value = json_loadb(line, (size_t)length, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
		if (strcmp(what, "decode") == 0)
			decode(tokenizer, value);
		else
			encode(tokenizer, value, strcmp(what, "plain") != 0);
		json_decref(value);
	}
	free(line);
	tokenizer_free(tokenizer);
	return EXIT_SUCCESS;
}
