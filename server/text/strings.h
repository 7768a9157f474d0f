/*
 * strings.h - a list of short texts in one piece of memory. Owned by one call. Refused memory sticks.
 */
#ifndef ATTND_TEXT_STRINGS_H
#define ATTND_TEXT_STRINGS_H

#include <stdbool.h>
#include <stddef.h>

struct strings {
	char *bytes;
	size_t length, room;
	size_t *ends; /* [count] of each text; it begins where the one before ends */
	size_t count, ends_room;
	bool memory; /* was refused */
};

/* Adds to the text that is being made; ends it. */
void strings_put(struct strings *strings, const char *text, size_t length);
void strings_end(struct strings *strings);
/* Text number index < count. */
const char *strings_at(const struct strings *strings, size_t index, size_t *length);
void strings_clear(struct strings *strings);

#endif
