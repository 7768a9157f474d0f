#include "codec/nearest_name.h"

#include <string.h>

/* Longer names are near to none. */
#define LONGEST 40

static size_t least(size_t a, size_t b, size_t c)
{
	size_t smaller = a < b ? a : b;
	return smaller < c ? smaller : c;
}

/* Levenshtein's distance, one row at a time; both texts are at most LONGEST long. */
static size_t distance(const char *a, const char *b)
{
	size_t row[LONGEST + 1], a_length = strlen(a), b_length = strlen(b);
	for (size_t j = 0; j <= b_length; j++)
		row[j] = j;
	for (size_t i = 1; i <= a_length; i++) {
		size_t diagonal = row[0];
		row[0] = i;
		for (size_t j = 1; j <= b_length; j++) {
			size_t above = row[j];
			row[j] = least(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1));
			diagonal = above;
		}
	}
	return row[b_length];
}

const char *nearest_name(const char *name, const char *const *names, size_t count)
{
	size_t length = strlen(name);
	size_t best = 1 + (length / 3 < 2 ? 2 : length / 3);
	const char *nearest = NULL;
	for (size_t i = 0; i < count && length <= LONGEST; i++) {
		size_t found = strlen(names[i]) <= LONGEST ? distance(name, names[i]) : best;
		if (found < best && found < length) {
			best = found;
			nearest = names[i];
		}
	}
	return nearest;
}
