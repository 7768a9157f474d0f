#include "text/pattern_translate.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* White_Space, what is not, and a word's characters (UTS 18), as members of a class. */
#define SPACES                                                                                               \
	"\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}" \
	"\\x{3000}"
#define NOT_SPACES                                                                                           \
	"\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}"      \
	"\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{10ffff}"
#define WORDS "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"

struct translation {
	const char *at;
	char *out; /* what one byte becomes is at most EXPANSION bytes */
	size_t used;
	bool in_class;
};

#define EXPANSION 256

static void put(struct translation *translation, const char *text, size_t length)
{
	memcpy(translation->out + translation->used, text, length);
	translation->used += length;
}

static void put_words(struct translation *translation, const char *text)
{
	put(translation, text, strlen(text));
}

/* Members of a class, in a class or as one. */
static void put_members(struct translation *translation, const char *open, const char *members)
{
	if (!translation->in_class)
		put_words(translation, open);
	put_words(translation, members);
	if (!translation->in_class)
		put_words(translation, "]");
}

static size_t hex_digits(const char *text, size_t most)
{
	size_t count = 0;
	while (count < most && isxdigit((unsigned char)text[count]))
		count++;
	return count;
}

/* \p{...} or \P{...}, its name of letters, digits and _ with a ^ before: at the backslash. */
static bool take_property(struct translation *translation)
{
	const char *at = translation->at;
	if (at[2] != '{')
		return false;
	size_t name = 3 + (at[3] == '^');
	size_t length = strspn(at + name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
	if (length == 0 || at[name + length] != '}')
		return false;
	put(translation, at, name + length + 1);
	translation->at += name + length + 1;
	return true;
}

/* \xHH, \x{H...} or \uHHHH, at the backslash. */
static bool take_number(struct translation *translation)
{
	bool braces = translation->at[1] == 'x' && translation->at[2] == '{';
	const char *digits = translation->at + 2 + braces;
	size_t most = translation->at[1] == 'u' ? 4 : braces ? 6 : 2;
	size_t count = hex_digits(digits, most);
	if (count == 0 || (translation->at[1] == 'u' && count < 4) || (braces && digits[count] != '}'))
		return false;
	put_words(translation, "\\x{");
	put(translation, digits, count);
	put_words(translation, "}");
	translation->at = digits + count + braces;
	return true;
}

/* \s and the like. */
static bool take_class_escape(struct translation *translation)
{
	switch (translation->at[1]) {
	case 's':
		put_members(translation, "[", SPACES);
		break;
	case 'S':
		put_members(translation, "[", NOT_SPACES);
		break;
	case 'w':
		put_members(translation, "[", WORDS);
		break;
	case 'W':
		if (translation->in_class)
			return false;
		put_members(translation, "[^", WORDS);
		break;
	case 'd':
		put_words(translation, "\\p{Nd}");
		break;
	case 'D':
		put_words(translation, "\\P{Nd}");
		break;
	case 'h':
		put_members(translation, "[", "0-9A-Fa-f");
		break;
	case 'v':
		put_words(translation, "\\x{b}");
		break;
	default:
		return false;
	}
	translation->at += 2;
	return true;
}

static bool take_escape(struct translation *translation)
{
	char letter = translation->at[1];
	if (letter == 'p' || letter == 'P')
		return take_property(translation);
	if (letter == 'x' || letter == 'u')
		return take_number(translation);
	bool plain = letter != '\0' && (strchr("nrtfae", letter) != NULL || ispunct((unsigned char)letter));
	if (!plain && !(strchr("AzZ", letter) != NULL && letter != '\0' && !translation->in_class))
		return take_class_escape(translation);
	put(translation, translation->at, 2);
	translation->at += 2;
	return true;
}

/* A group's beginning: plain, (?: (?= (?! (?> (?<= (?<! or (?i: with other letters. */
static bool take_group(struct translation *translation)
{
	const char *at = translation->at;
	size_t length = 1;
	if (at[1] == '?') {
		size_t letters = strspn(at + 2, "imx-");
		if (at[2] == '<' && (at[3] == '=' || at[3] == '!'))
			length = 4;
		else if (at[2] != '\0' && strchr(":=!>", at[2]) != NULL)
			length = 3;
		else if (letters == 1 && at[2] == 'i' && at[3] == ':')
			length = 4;
		else
			return false;
	} else if (at[1] == '*') {
		return false;
	}
	put(translation, at, length);
	translation->at += length;
	return true;
}

/* {n}, {n,} or {n,m}, not possessive. */
static bool take_count(struct translation *translation)
{
	const char *at = translation->at;
	size_t length = 1 + strspn(at + 1, "0123456789");
	if (length == 1)
		return false;
	if (at[length] == ',')
		length += 1 + strspn(at + length + 1, "0123456789");
	if (at[length] != '}')
		return false;
	put(translation, at, length + 1);
	translation->at += length + 1;
	return translation->at[0] != '+';
}

/* One thing inside [ ]. */
static bool take_member(struct translation *translation)
{
	const char *at = translation->at;
	if (at[0] == '\\')
		return take_escape(translation);
	if (at[0] == '[' || (at[0] == '&' && at[1] == '&'))
		return false;
	translation->in_class = at[0] != ']';
	put(translation, at, 1);
	translation->at++;
	return true;
}

static bool take(struct translation *translation)
{
	const char *at = translation->at;
	if (translation->in_class)
		return take_member(translation);
	switch (at[0]) {
	case '\\':
		return take_escape(translation);
	case '(':
		return take_group(translation);
	case '{':
		return take_count(translation);
	case '[':
		translation->in_class = true;
		translation->at += 1 + (at[1] == '^');
		put(translation, at, (size_t)(translation->at - at));
		return translation->at[0] != ']'; /* which the two read differently there */
	default:
		put(translation, at, 1);
		translation->at++;
		return true;
	}
}

char *pattern_translate(const char *expression, const char **wrong)
{
	struct translation translation = {.at = expression};
	size_t length = strlen(expression);
	*wrong = NULL;
	translation.out = length < SIZE_MAX / EXPANSION - 1 ? malloc(length * EXPANSION + 1) : NULL;
	if (translation.out == NULL)
		return NULL;
	while (translation.at[0] != '\0') {
		const char *before = translation.at;
		if (take(&translation))
			continue;
		*wrong = before;
		free(translation.out);
		return NULL;
	}
	translation.out[translation.used] = '\0';
	return translation.out;
}
