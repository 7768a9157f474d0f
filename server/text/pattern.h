/*
 * pattern.h - regular expressions of tokenizer files. The one room that knows PCRE2.
 *
 * The reference implementation gives them to Oniguruma. An expression is rewritten so that PCRE2 (UTF, its
 * own tables of characters, no code made at run time) finds the same; what would differ is refused when it is
 * compiled. A match gives up after a bounded number of steps, so that no text holds a thread. Immutable once
 * made: any thread.
 */
#ifndef ATTND_TEXT_PATTERN_H
#define ATTND_TEXT_PATTERN_H

#include "attn.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct pattern;

/* literal: the text as it stands. The error names the expression and what of it is not understood. */
attn_status pattern_new(const char *expression, bool literal, struct pattern **out, attn_error *err);
/* From {"Regex": "..."} or {"String": "..."}, as tokenizer.json writes it. */
attn_status pattern_load(const json_t *config, struct pattern **out, attn_error *err);
void pattern_free(struct pattern *pattern); /* NULL is allowed */

/* A walk over the matches in well-formed text, left to right, not overlapping. */
struct pattern_walk {
	const struct pattern *pattern;
	const char *text;
	size_t length, at, last;
	void *data;
	bool any;            /* there was a match, which ended at last */
	size_t begin, end;   /* of the match found */
	bool memory, failed; /* refused memory, too many steps: what pattern_walk_next gave up for */
};

void pattern_walk_begin(struct pattern_walk *walk, const struct pattern *pattern, const char *text,
                        size_t length);
/* false at the end, or when it gave up. */
bool pattern_walk_next(struct pattern_walk *walk);
void pattern_walk_end(struct pattern_walk *walk);

#endif
