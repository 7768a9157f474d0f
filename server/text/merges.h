/*
 * merges.h - the merges of a byte-pair encoding, and what they make of a word (Sennrich et al. 2016).
 *
 * A table is immutable once read: any thread. Merging n symbols takes n log n steps.
 */
#ifndef ATTND_TEXT_MERGES_H
#define ATTND_TEXT_MERGES_H

#include "attn.h"
#include "text/vocabulary.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct merges;

/* From a list of "left right" or [left, right], first merges first. What the two make, less the prefix of
 * continued words before right, is a token of the vocabulary too; else the error names the merge. */
attn_status merges_new(const json_t *list, const struct vocabulary *vocabulary, const char *prefix,
                       struct merges **out, attn_error *err);
void merges_free(struct merges *merges); /* NULL is allowed */

struct symbol {
	uint32_t id;
	uint32_t length;     /* bytes of the word; 0: merged into the one before */
	int32_t left, right; /* neighbours, -1 at the ends */
};

/* Symbols of one word and the heap of merges that may come. Kept from word to word by one call. */
struct merging {
	struct symbol *symbols;
	size_t count, room;
	struct candidate *heap;
	size_t waiting, heap_room;
	bool memory; /* was refused */
};

void merging_begin(struct merging *merging); /* a new word */
void merging_add(struct merging *merging, uint32_t id, size_t length);
/* Merges neighbours, of all that can the first in the list, the leftmost of equals, until none can. */
void merging_run(struct merging *merging, const struct merges *merges);
void merging_clear(struct merging *merging);

#endif
