#include "http/lists.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The q of the parameters [text, end), at most 1: 1 when absent; what is not a number counts as 0. */
static double quality_of(const char *text, const char *end)
{
	while (text < end) {
		text += 1 + strspn(text + 1, " \t");
		if (strncasecmp(text, "q=", 2) == 0) {
			double quality = strtod(text + 2, NULL);
			return quality > 1 ? 1 : quality > 0 ? quality : 0;
		}
		while (text < end && *text != ';')
			text++;
	}
	return 1;
}

bool list_next(const char **rest, struct list_item *item)
{
	const char *text = *rest + strspn(*rest, " \t,");
	if (*text == '\0')
		return false;
	const char *end = text + strcspn(text, ",");
	item->text = text;
	item->length = strcspn(text, "; \t,");
	item->quality = quality_of(text + strcspn(text, ";,"), end);
	*rest = end;
	return true;
}

bool list_item_is(const struct list_item *item, const char *word)
{
	return item->length == strlen(word) && strncasecmp(item->text, word, item->length) == 0;
}

bool list_holds(const char *list, const char *word)
{
	struct list_item item;
	while (list_next(&list, &item)) {
		if (list_item_is(&item, word))
			return true;
	}
	return false;
}
