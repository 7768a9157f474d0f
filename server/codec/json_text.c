#include "codec/json_text.h"

#include "codec/utf8.h"

#include <stdio.h>
#include <string.h>

void json_skip_space(struct json_cursor *cursor)
{
	while (cursor->at < cursor->end &&
	       (*cursor->at == ' ' || *cursor->at == '\n' || *cursor->at == '\r' || *cursor->at == '\t'))
		cursor->at++;
}

char json_peek(const struct json_cursor *cursor)
{
	return (char)(cursor->at < cursor->end ? *cursor->at : '\0');
}

static bool is_word_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool json_take_word(struct json_cursor *cursor, const char *word)
{
	size_t length = strlen(word);
	size_t left = (size_t)(cursor->end - cursor->at);
	if (left < length || memcmp(cursor->at, word, length) != 0)
		return false;
	if (left > length && is_word_byte(cursor->at[length]))
		return false;
	cursor->at += length;
	return true;
}

bool json_take_not_finite(struct json_cursor *cursor)
{
	return json_take_word(cursor, "NaN") || json_take_word(cursor, "Infinity") ||
	       json_take_word(cursor, "-Infinity");
}

/* Text of a name as it is decoded. */
struct name {
	char *text;
	size_t size, length;
	bool full;
};

static void name_append(struct name *name, const char *bytes, size_t count)
{
	if (name->text == NULL || name->full)
		return;
	if (name->length + count >= name->size) {
		name->full = true;
		return;
	}
	memcpy(name->text + name->length, bytes, count);
	name->length += count;
}

/* Four hexadecimal digits; false with the cursor at what is not one. */
static bool take_hex(struct json_cursor *cursor, unsigned *value)
{
	*value = 0;
	for (int i = 0; i < 4; i++) {
		char c = json_peek(cursor);
		unsigned digit;
		if (c >= '0' && c <= '9')
			digit = (unsigned)(c - '0');
		else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))
			digit = ((unsigned)c | 0x20) - 'a' + 10;
		else
			return false;
		*value = *value * 16 + digit;
		cursor->at++;
	}
	return true;
}

/* What follows \u, with the second half of a pair of surrogates. */
static bool take_unicode_escape(struct json_cursor *cursor, unsigned *point)
{
	const char *start = cursor->at;
	if (!take_hex(cursor, point))
		return false;
	if (*point < 0xD800 || *point > 0xDFFF)
		return true;
	unsigned low;
	if (*point <= 0xDBFF && cursor->end - cursor->at >= 2 && memcmp(cursor->at, "\\u", 2) == 0) {
		cursor->at += 2;
		if (!take_hex(cursor, &low))
			return false;
		if (low >= 0xDC00 && low <= 0xDFFF) {
			*point = 0x10000 + ((*point - 0xD800) << 10) + (low - 0xDC00);
			return true;
		}
	}
	cursor->at = start;
	return false;
}

/* An escape, the cursor after its backslash. */
static bool take_escape(struct json_cursor *cursor, struct name *name, bool *nul)
{
	static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
	char c = json_peek(cursor);
	if (c == 'u') {
		unsigned point;
		char bytes[4];
		cursor->at++;
		if (!take_unicode_escape(cursor, &point))
			return false;
		*nul = *nul || point == 0;
		name_append(name, bytes, utf8_encode(point, bytes));
		return true;
	}
	const char *letter = c == '\0' ? NULL : strchr(letters, c);
	if (letter == NULL)
		return false;
	name_append(name, &meanings[letter - letters], 1);
	cursor->at++;
	return true;
}

/* To the closing quote, the cursor after the first one. */
static bool take_rest(struct json_cursor *cursor, struct name *name, bool *nul)
{
	while (cursor->at < cursor->end && *cursor->at != '"') {
		unsigned char byte = (unsigned char)*cursor->at;
		size_t length = utf8_sequence(cursor->at, cursor->end);
		if (byte < 0x20 || length == 0)
			return false;
		if (byte != '\\') {
			name_append(name, cursor->at, length);
			cursor->at += length;
			continue;
		}
		cursor->at++;
		if (!take_escape(cursor, name, nul))
			return false;
	}
	if (cursor->at == cursor->end)
		return false;
	cursor->at++;
	return true;
}

bool json_take_string(struct json_cursor *cursor, char *text, size_t size, bool *nul)
{
	struct name name = {.text = text, .size = size};
	cursor->at++;
	bool whole = take_rest(cursor, &name, nul);
	if (text != NULL)
		text[name.length] = '\0';
	return whole;
}

size_t json_put_escaped(char *out, const char *text)
{
	const char *end = text + strlen(text);
	size_t length = 0;
	while (text < end) {
		size_t bytes = utf8_sequence(text, end);
		unsigned char byte = (unsigned char)*text;
		if (bytes == 0) {
			out[length++] = '?';
			bytes = 1;
		} else if (byte == '"' || byte == '\\') {
			out[length++] = '\\';
			out[length++] = *text;
		} else if (byte < 0x20 || byte == 0x7F) {
			length += (size_t)snprintf(out + length, sizeof("\\u0000"), "\\u%04x", byte);
		} else {
			memcpy(out + length, text, bytes);
			length += bytes;
		}
		text += bytes;
	}
	return length;
}
