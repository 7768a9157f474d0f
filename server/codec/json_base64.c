#include "codec/json_walk.h"

#include "codec/base64.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Decodes text to the array; false with *bad set when it is not base64. *memory becomes false when the system
 * refuses. */
static bool decode(struct json_array *array, const char *text, size_t length, size_t *bad, bool *memory)
{
	uint8_t *bytes = malloc(base64_room(length) + 1);
	*memory = bytes != NULL;
	if (bytes == NULL)
		return false;
	if (!base64_decode(text, length, bytes, &array->count, bad)) {
		free(bytes);
		return false;
	}
	array->data = bytes;
	return true;
}

/* A string without escapes, ended by the first quote: most are. false leaves everything as it was. */
static bool take_plain(struct json_walk *walk, struct json_array *array)
{
	const char *text = walk->cursor.at + 1;
	const char *quote = memchr(text, '"', (size_t)(walk->cursor.end - text));
	size_t bad;
	bool memory;
	if (quote == NULL || !decode(array, text, (size_t)(quote - text), &bad, &memory))
		return false;
	walk->cursor.at = quote + 1;
	return true;
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

/* Any string: one with escapes, or one that is wrong. */
static bool take_any(struct json_walk *walk, struct json_array *array)
{
	struct json_cursor ahead = walk->cursor;
	bool nul = false, memory, taken;
	if (!json_take_string(&ahead, NULL, 0, &nul)) {
		walk->cursor = ahead;
		return json_walk_syntax(walk, "a well-formed string");
	}
	size_t size = (size_t)(ahead.at - walk->cursor.at), bad = 0;
	char *text = malloc(size);
	if (text == NULL)
		return json_walk_memory(walk);
	json_take_string(&walk->cursor, text, size, &nul);
	taken = decode(array, text, strlen(text), &bad, &memory);
	if (nul)
		json_walk_note(walk, PROBLEM_NUL_ESCAPE, "the string holds \\u0000");
	else if (!taken && memory)
		note_bad(walk, bad, strlen(text));
	free(text);
	return memory || json_walk_memory(walk);
}

bool json_walk_base64(struct json_walk *walk, size_t rule)
{
	struct json_array *place = &walk->out->arrays[rule];
	struct json_array again = {0}, *array = place->present ? &again : place;
	if (place->present)
		json_walk_note_again(walk, place, JSON_FORM_BASE64);
	array->present = true;
	array->form = JSON_FORM_BASE64;
	bool whole = take_plain(walk, array) || take_any(walk, array);
	free(again.data);
	return whole;
}
