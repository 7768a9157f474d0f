#include "http/tokens.h"
#include "suite.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static attn_error err;

static struct tokens *load_bytes(const char *text, size_t size)
{
	char path[] = "/tmp/attnd-tokens-XXXXXX";
	int fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, size), (ssize_t)size);
	close(fd);
	err = (attn_error){.status = ATTN_OK};
	struct tokens *tokens = tokens_load(path, &err);
	unlink(path);
	return tokens;
}

static struct tokens *load(const char *text)
{
	return load_bytes(text, strlen(text));
}

static void expect_refused(struct tokens *tokens, const char *words)
{
	ck_assert_ptr_null(tokens);
	ck_assert_int_ne(err.status, ATTN_OK);
	ck_assert_msg(strstr(err.message, words) != NULL, "%s", err.message);
}

START_TEST(a_token_a_line_and_comments_do_not_count)
{
	struct tokens *tokens = load("# ours\n\nalpha\n  beta-1._~+/==  \r\n\t# more\n   \nlast#one");
	ck_assert_ptr_nonnull(tokens);
	ck_assert_uint_eq(tokens_count(tokens), 3);
	ck_assert(tokens_match(tokens, "alpha"));
	ck_assert(tokens_match(tokens, "beta-1._~+/=="));
	ck_assert(tokens_match(tokens, "last#one"));
	tokens_free(tokens);
}
END_TEST

START_TEST(only_the_whole_token_matches)
{
	struct tokens *tokens = load("alpha\nbeta\n");
	static const char *const others[] = {"",      "a",     "alph",        "alphaa", "Alpha", "alpha ",
	                                     " beta", "betaa", "alpha\nbeta", "#",      "# ours"};
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		ck_assert_msg(!tokens_match(tokens, others[i]), "%s", others[i]);
	tokens_free(tokens);
}
END_TEST

START_TEST(a_token_that_differs_in_one_bit_does_not_match)
{
	struct tokens *tokens = load("alpha\n");
	for (size_t bit = 0; bit < 8 * strlen("alpha"); bit++) {
		char text[] = "alpha";
		text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
		ck_assert_msg(!tokens_match(tokens, text), "bit %zu", bit);
	}
	tokens_free(tokens);
}
END_TEST

START_TEST(a_token_of_the_greatest_length_matches_and_a_longer_one_does_not)
{
	char text[TOKEN_MAX + 3];
	memset(text, 't', sizeof text);
	text[TOKEN_MAX] = '\0';
	struct tokens *tokens = load(text);
	ck_assert_ptr_nonnull(tokens);
	ck_assert(tokens_match(tokens, text));
	text[TOKEN_MAX] = 't';
	text[TOKEN_MAX + 1] = '\0';
	ck_assert(!tokens_match(tokens, text));
	tokens_free(tokens);
	expect_refused(load(text), ":1: the token is longer than 256");
}
END_TEST

START_TEST(every_one_of_the_most_tokens_matches)
{
	static char text[(TOKENS_MAX + 1) * 8];
	size_t length = 0;
	for (size_t i = 0; i < TOKENS_MAX; i++)
		length += (size_t)snprintf(text + length, sizeof text - length, "t%zu\n", i);
	struct tokens *tokens = load(text);
	ck_assert_ptr_nonnull(tokens);
	for (size_t i = 0; i < TOKENS_MAX; i++) {
		char token[16];
		snprintf(token, sizeof token, "t%zu", i);
		ck_assert(tokens_match(tokens, token));
	}
	ck_assert(!tokens_match(tokens, "t1024"));
	tokens_free(tokens);
	snprintf(text + length, sizeof text - length, "more\n");
	expect_refused(load(text), ":1025: there are more than 1024 tokens");
}
END_TEST

START_TEST(a_file_that_opens_to_nobody_or_anybody_is_refused)
{
	expect_refused(load(""), "there is no token in it");
	expect_refused(load("# only words\n\n"), "there is no token in it");
	expect_refused(load("good\nnot good\n"), ":2: a token is of visible");
	expect_refused(load("caf\xc3\xa9\n"), ":1: a token is of visible");
	expect_refused(load_bytes("a\0b\n", 4), ":1: a token is of visible");
	err = (attn_error){.status = ATTN_OK};
	expect_refused(tokens_load("/nowhere/tokens", &err), "/nowhere/tokens: No such file");
	expect_refused(tokens_load("/tmp", &err), "/tmp: Is a directory");
	expect_refused(tokens_load("/dev/zero", &err), "more than 1048576 bytes");
}
END_TEST

START_TEST(no_message_tells_a_token)
{
	expect_refused(load("fine\nsecret word\n"), ":2: ");
	ck_assert_ptr_null(strstr(err.message, "secret"));
}
END_TEST

SUITE_MAIN("tokens", a_token_a_line_and_comments_do_not_count, only_the_whole_token_matches,
           a_token_that_differs_in_one_bit_does_not_match,
           a_token_of_the_greatest_length_matches_and_a_longer_one_does_not,
           every_one_of_the_most_tokens_matches, a_file_that_opens_to_nobody_or_anybody_is_refused,
           no_message_tells_a_token)
