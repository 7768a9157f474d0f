/*
 * lists.h - comma lists, as headers and settings write them (RFC 9110 sections 5.6.1 and 12.4.2).
 *
 * Pure functions; items point into the text gone over.
 */
#ifndef ATTND_HTTP_LISTS_H
#define ATTND_HTTP_LISTS_H

#include <stdbool.h>
#include <stddef.h>

struct list_item {
	const char *text; /* without the space around it; not terminated */
	size_t length;    /* not 0 */
	double quality;   /* its parameter q: 1 without, 0 when it is no number */
};

/* The next item that is not empty, parameters cut off; moves *rest behind it. false at the end. */
bool list_next(const char **rest, struct list_item *item);
/* Whether the item is the word, without regard to case. */
bool list_item_is(const struct list_item *item, const char *word);
/* Whether the word stands in a list, without regard to case. */
bool list_holds(const char *list, const char *word);

#endif
