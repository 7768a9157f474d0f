#include "text/strings.h"

#include <stdlib.h>
#include <string.h>

void strings_put(struct strings *strings, const char *text, size_t length)
{
	if (strings->memory || length == 0)
		return;
	if (length > strings->room - strings->length) {
		size_t room = (strings->length + length) * 2 + 64;
		char *bytes = realloc(strings->bytes, room);
		strings->memory = bytes == NULL;
		if (bytes == NULL)
			return;
		strings->bytes = bytes;
		strings->room = room;
	}
	memcpy(strings->bytes + strings->length, text, length);
	strings->length += length;
}

void strings_end(struct strings *strings)
{
	if (strings->memory)
		return;
	if (strings->count == strings->ends_room) {
		size_t room = strings->ends_room * 2 + 16;
		size_t *ends = realloc(strings->ends, room * sizeof *ends);
		strings->memory = ends == NULL;
		if (ends == NULL)
			return;
		strings->ends = ends;
		strings->ends_room = room;
	}
	strings->ends[strings->count++] = strings->length;
}

const char *strings_at(const struct strings *strings, size_t index, size_t *length)
{
	size_t begin = index > 0 ? strings->ends[index - 1] : 0;
	*length = strings->ends[index] - begin;
	return *length > 0 ? strings->bytes + begin : "";
}

void strings_clear(struct strings *strings)
{
	free(strings->bytes);
	free(strings->ends);
	*strings = (struct strings){.bytes = NULL};
}
