#include "error.h"

#include "suite.h"

#include <errno.h>
#include <string.h>

#define MOST (sizeof(((attn_error *)NULL)->message) - 1)

START_TEST(an_error_is_set_as_printf_says_and_returned)
{
	attn_error err = {ATTN_OK, ""};
	errno = ENOENT;
	ck_assert_int_eq(attn_error_set(&err, ATTN_FILE, "%s has %d: %m", "x", 7), ATTN_FILE);
	ck_assert_int_eq(err.status, ATTN_FILE);
	ck_assert_str_eq(err.message, "x has 7: No such file or directory");
	attn_error_prefix(&err, "model");
	ck_assert_str_eq(err.message, "model: x has 7: No such file or directory");
}
END_TEST

START_TEST(nobody_need_want_the_words)
{
	ck_assert_int_eq(attn_error_set(NULL, ATTN_MEMORY, "x"), ATTN_MEMORY);
	attn_error_prefix(NULL, "y");
}
END_TEST

/* "x..." of so many letters and then two-byte characters, longer than a message. */
static void text_make(char text[2001], size_t letters)
{
	memset(text, 'x', letters);
	for (size_t i = letters; i < 1998; i += 2)
		memcpy(text + i, "\xC3\xA4", 2);
	text[1998 + letters % 2] = '\0';
}

START_TEST(a_message_that_is_too_long_ends_with_a_whole_character)
{
	for (size_t letters = 500; letters < 520; letters++) {
		char text[2001];
		attn_error err = {ATTN_OK, ""};
		text_make(text, letters);
		attn_error_set(&err, ATTN_FORMAT, "%s", text);
		size_t length = strlen(err.message);
		ck_assert(length >= MOST - 2 && length <= MOST);
		ck_assert(err.message[length - 1] == 'x' || err.message[length - 1] == '\xA4');
		attn_error_prefix(&err, "p");
		length = strlen(err.message);
		ck_assert(length >= MOST - 2 && length <= MOST && strncmp(err.message, "p: xxx", 6) == 0);
		ck_assert(err.message[length - 1] == 'x' || err.message[length - 1] == '\xA4');
	}
}
END_TEST

START_TEST(a_quoted_name_is_at_most_160_bytes_of_whole_characters)
{
	char text[2001];
	ck_assert_int_eq(attn_error_quote(""), 0);
	ck_assert_int_eq(attn_error_quote("name"), 4);
	text_make(text, 0);
	ck_assert_int_eq(attn_error_quote(text), 160);
	text_make(text, 1);
	ck_assert_int_eq(attn_error_quote(text), 159);
	text[160] = '\0';
	ck_assert_int_eq(attn_error_quote(text), 160); /* short enough to be left as it is */
}
END_TEST

SUITE_MAIN("error", an_error_is_set_as_printf_says_and_returned, nobody_need_want_the_words,
           a_message_that_is_too_long_ends_with_a_whole_character,
           a_quoted_name_is_at_most_160_bytes_of_whole_characters)
