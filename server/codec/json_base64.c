#include "codec/json_walk.h"

#include "codec/base64.h"
#include "codec/large.h"
#include "codec/tiles.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Characters of a part, whole groups of four. */
#define PART_CHARACTERS ((size_t)256 << 10)

/* Text on its way into bytes. */
struct decoding {
	const char *text;
	size_t length;
	uint8_t *bytes;
};

static size_t count_parts(const struct decoding *decoding)
{
	size_t parts = (decoding->length + PART_CHARACTERS - 1) / PART_CHARACTERS;
	return parts > 0 ? parts : 1;
}

/* Only the last part may end with padding. */
static attn_status decode_part(void *arg, size_t part, attn_arena *scratch)
{
	const struct decoding *decoding = arg;
	size_t first = part * PART_CHARACTERS, count, bad;
	bool last = part + 1 == count_parts(decoding);
	size_t length = last ? decoding->length - first : PART_CHARACTERS;
	(void)scratch;
	if (!base64_decode(decoding->text + first, length, decoding->bytes + base64_room(first), &count,
	                   &bad))
		return ATTN_FORMAT;
	return last || count == base64_room(length) ? ATTN_OK : ATTN_FORMAT;
}

/* Bytes that sound base64 stands for. */
static size_t count_bytes(const char *text, size_t length)
{
	size_t padding = length > 0 && text[length - 1] == '=' ? text[length - 2] == '=' ? 2 : 1 : 0;
	return base64_room(length) - padding;
}

/* Decodes text to the array. ATTN_FORMAT with *bad set when it is not base64, ATTN_MEMORY, ATTN_CANCELLED. */
static attn_status decode(struct json_walk *walk, struct json_array *array, const char *text, size_t length,
                          size_t *bad)
{
	size_t room = base64_room(length) + 1;
	struct decoding decoding = {text, length, large_block(malloc(room), room)};
	if (decoding.bytes == NULL)
		return ATTN_MEMORY;
	attn_status status = tiles_run(walk->executor, count_parts(&decoding), decode_part, &decoding);
	if (status == ATTN_FORMAT) /* in which part matters not: the first wrong character is told */
		base64_decode(text, length, decoding.bytes, &array->count, bad);
	if (status != ATTN_OK) {
		free(decoding.bytes);
		return status;
	}
	array->count = count_bytes(text, length);
	array->data = decoding.bytes;
	return ATTN_OK;
}

/* A string without escapes, ended by the first quote: most are. Anything but ATTN_OK leaves all as it was. */
static attn_status take_plain(struct json_walk *walk, struct json_array *array)
{
	const char *text = walk->cursor.at + 1;
	const char *quote = memchr(text, '"', (size_t)(walk->cursor.end - text));
	size_t bad;
	if (quote == NULL)
		return ATTN_FORMAT;
	attn_status status = decode(walk, array, text, (size_t)(quote - text), &bad);
	if (status == ATTN_OK)
		walk->cursor.at = quote + 1;
	return status;
}

/* Notes where the text stops being base64. */
static void note_bad(struct json_walk *walk, size_t bad, size_t length)
{
	char detail[160];
	if (bad == length)
		snprintf(detail, sizeof(detail),
		         "base64 comes in groups of four characters with padding, this has %zu", length);
	else
		snprintf(detail, sizeof(detail),
		         "character %zu is not what base64 (RFC 4648 section 4) has there", bad);
	json_walk_note(walk, PROBLEM_BAD_VALUE, detail);
}

/* Any string: one with escapes, or one that is wrong. ATTN_FORMAT with a problem set when it is no string,
 * else as decode, but that bytes which are wrong are noted. */
static attn_status take_any(struct json_walk *walk, struct json_array *array)
{
	struct json_cursor ahead = walk->cursor;
	bool nul = false;
	if (!json_take_string(&ahead, NULL, 0, &nul)) {
		walk->cursor = ahead;
		json_walk_syntax(walk, "a well-formed string");
		return ATTN_FORMAT;
	}
	size_t size = (size_t)(ahead.at - walk->cursor.at), bad = 0;
	char *text = malloc(size);
	if (text == NULL)
		return ATTN_MEMORY;
	json_take_string(&walk->cursor, text, size, &nul);
	attn_status status = decode(walk, array, text, strlen(text), &bad);
	if (nul)
		json_walk_note(walk, PROBLEM_NUL_ESCAPE, "the string holds \\u0000");
	else if (status == ATTN_FORMAT)
		note_bad(walk, bad, strlen(text));
	free(text);
	return status == ATTN_FORMAT ? ATTN_OK : status;
}

bool json_walk_base64(struct json_walk *walk, size_t rule)
{
	struct json_array *place = &walk->out->arrays[rule];
	struct json_array again = {0}, *array = place->present ? &again : place;
	if (place->present)
		json_walk_note_again(walk, place, JSON_FORM_BASE64);
	array->present = true;
	array->form = JSON_FORM_BASE64;
	attn_status status = take_plain(walk, array);
	if (status == ATTN_FORMAT)
		status = take_any(walk, array);
	free(again.data);
	if (status == ATTN_MEMORY)
		return json_walk_memory(walk);
	return status == ATTN_OK || problem_set_status(walk->problem, status);
}
