/*
 * splitter.h - what becomes of the parts that a pattern makes of a piece.
 *
 * The parts of a piece come in order, each a match or what lies between two. Owned by one call.
 */
#ifndef ATTND_TEXT_SPLITTER_H
#define ATTND_TEXT_SPLITTER_H

#include "text/pieces.h"

#include <stdbool.h>
#include <stddef.h>

enum split_behavior {
	SPLIT_REMOVED,    /* matches are left out */
	SPLIT_ISOLATED,   /* each part by itself */
	SPLIT_PREVIOUS,   /* a match joins the part before it */
	SPLIT_NEXT,       /* a match joins the part behind it */
	SPLIT_CONTIGUOUS, /* matches join matches */
};

struct splitter {
	struct pieces *pieces;
	enum split_behavior behavior;
	size_t begin, end;     /* the part that may yet grow */
	bool held, last_match; /* there is one; the part before was a match */
};

void splitter_take(struct splitter *splitter, size_t begin, size_t end, bool match);
void splitter_finish(struct splitter *splitter);

#endif
