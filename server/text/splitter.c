#include "text/splitter.h"

/* Whether the part joins the one that is held. */
static bool joins(const struct splitter *splitter, bool match)
{
	switch (splitter->behavior) {
	case SPLIT_PREVIOUS:
		return match && !splitter->last_match;
	case SPLIT_NEXT:
		return splitter->last_match && !match;
	case SPLIT_CONTIGUOUS:
		return match == splitter->last_match;
	default:
		return false;
	}
}

void splitter_take(struct splitter *splitter, size_t begin, size_t end, bool match)
{
	if (splitter->behavior == SPLIT_REMOVED && match)
		return;
	if (splitter->held && joins(splitter, match)) {
		splitter->end = end;
	} else {
		splitter_finish(splitter);
		splitter->begin = begin;
		splitter->end = end;
		splitter->held = true;
	}
	splitter->last_match = match;
}

void splitter_finish(struct splitter *splitter)
{
	if (splitter->held)
		pieces_cut(splitter->pieces, splitter->begin, splitter->end, -1);
	splitter->held = false;
}
