#include "tokenizer_files.h"

#include "suite.h"

#include <inttypes.h>
#include <string.h>

struct tokenizer *tokenizer_in(const char *folder)
{
	struct tokenizer *tokenizer = NULL;
	attn_error err = {.status = ATTN_OK};
	attn_status status = tokenizer_open(folder, &tokenizer, &err);
	ck_assert_msg(status == ATTN_OK && tokenizer != NULL, "%s: %s", folder, err.message);
	return tokenizer;
}

struct tokenizer *tokenizer_of(const char *json)
{
	struct tokenizer *tokenizer = NULL;
	attn_error err = {.status = ATTN_OK};
	attn_status status = tokenizer_parse(json, strlen(json), &tokenizer, &err);
	ck_assert_msg(status == ATTN_OK, "%s", err.message);
	return tokenizer;
}

char *tokenizer_refused(const char *json)
{
	struct tokenizer *tokenizer = NULL;
	attn_error err = {.status = ATTN_OK};
	attn_status status = tokenizer_parse(json, strlen(json), &tokenizer, &err);
	ck_assert_msg(status != ATTN_OK && status != ATTN_MEMORY, "taken: %s", json);
	ck_assert_int_eq(err.status, status);
	ck_assert_ptr_null(tokenizer);
	char *message = strdup(err.message);
	ck_assert_ptr_nonnull(message);
	return message;
}

char *tokenizer_row(const struct tokenizer *tokenizer, const char *text, size_t length, bool special)
{
	struct text_tokens tokens;
	struct problem problem = {.code = PROBLEM_NONE};
	bool good = tokenizer_encode(tokenizer, text, length, special, "/text", &tokens, &problem);
	ck_assert_msg(good, "%s", problem.detail);
	size_t room = tokens.count * 48 + 1, used = 0;
	char *row = calloc(1, room);
	ck_assert_ptr_nonnull(row);
	for (size_t i = 0; i < tokens.count; i++)
		used += (size_t)snprintf(row + used, room - used, "%s%" PRId64 ":%u:%u", i > 0 ? " " : "",
		                         tokens.ids[i], tokens.ranges[i].start, tokens.ranges[i].end);
	text_tokens_clear(&tokens);
	return row;
}

struct problem tokenizer_problem(const struct tokenizer *tokenizer, const char *text, size_t length)
{
	struct text_tokens tokens;
	struct problem problem = {.code = PROBLEM_NONE};
	ck_assert(!tokenizer_encode(tokenizer, text, length, true, "/text", &tokens, &problem));
	ck_assert_ptr_null(tokens.ids);
	ck_assert_str_eq(problem.pointer, "/text");
	return problem;
}
