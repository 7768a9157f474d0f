/*
 * json_text.h - the words of JSON (RFC 8259): white space, strings, literals. Numbers are in numbers.h.
 *
 * Pure functions over a cursor: any thread, no allocation, no knowledge of what the words are for.
 */
#ifndef ATTND_CODEC_JSON_TEXT_H
#define ATTND_CODEC_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct json_cursor {
	const char *at, *end;
};

void json_skip_space(struct json_cursor *cursor);

/* The byte at the cursor, or '\0' at the end. */
char json_peek(const struct json_cursor *cursor);

/* Passes the word if it stands at the cursor and no letter or digit follows; false leaves the cursor. */
bool json_take_word(struct json_cursor *cursor, const char *word);

/* Passes NaN, Infinity or -Infinity, which some writers print where JSON has no number. */
bool json_take_not_finite(struct json_cursor *cursor);

/* Passes a string, the cursor at its opening quote. name (room for size bytes, or NULL) gets its text with
 * the escapes decoded, cut at a whole character and terminated; *nul becomes true when it escapes a NUL.
 * false with the cursor at the byte that is wrong: no closing quote, a control character, a bad escape, half
 * a surrogate pair, or what is not UTF-8. */
bool json_take_string(struct json_cursor *cursor, char *name, size_t size, bool *nul);

/* Writes text as the inside of a string, not terminated, what is not UTF-8 as '?'; returns how many bytes it
 * took, at most JSON_ESCAPED_MAX for each of the text. */
#define JSON_ESCAPED_MAX 6
size_t json_put_escaped(char *out, const char *text);

#endif
