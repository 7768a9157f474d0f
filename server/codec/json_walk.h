/*
 * json_walk.h - what the parts of json_scan share: the walk's state and its ways to complain.
 *
 * Functions return false only when the walk cannot go on (problem set); what it notes on its way does not
 * stop it. Private to json_scan.c, json_array.c, json_plain.c, json_tokens.c
 * and json_base64.c.
 */
#ifndef ATTND_CODEC_JSON_WALK_H
#define ATTND_CODEC_JSON_WALK_H

#include "codec/json_path.h"
#include "codec/json_scan.h"
#include "codec/json_text.h"

struct json_walk {
	struct json_cursor cursor;
	const char *begin;
	struct json_path path;
	const struct json_rule *rules;
	size_t rule_count;
	const struct json_limits *limits;
	attn_executor *executor; /* or NULL */
	const char *asked;       /* where json_walk_wanted last asked it */
	struct json_scan *out;
	struct problem *problem;
	bool quiet;           /* inside a tensor: nothing goes to the envelope, no place is a rule's */
	size_t elements;      /* of all arrays so far */
	size_t envelope_room; /* bytes allocated */
	bool envelope_over;   /* its limit was met */
};

/* SYNTAX at the cursor: "... expected, found ...". */
bool json_walk_syntax(struct json_walk *walk, const char *expected);
/* MEMORY. */
bool json_walk_memory(struct json_walk *walk);
/* DEADLINE when nobody waits for the walk any more; true when somebody does. Asks now and then only, by where
 * the cursor stands. */
bool json_walk_wanted(struct json_walk *walk);
/* Notes a problem of the place where the walk stands. Always true: the walk goes on. */
bool json_walk_note(struct json_walk *walk, enum problem_code code, const char *detail);

/* Notes that a tensor at the place of `before`, found already, stands here again in that form. */
bool json_walk_note_again(struct json_walk *walk, const struct json_array *before, enum json_form form);

/* Enters a container at its bracket; TOO_DEEP. */
bool json_walk_open(struct json_walk *walk, bool object);
/* After a member or element: *more is true past a comma, false past `close`. */
bool json_walk_next(struct json_walk *walk, char close, bool *more);

/* Any value, to the envelope unless quiet. */
bool json_walk_value(struct json_walk *walk);

/* The array at the cursor, for a rule; false as above. form: nested, or data. */
bool json_walk_array(struct json_walk *walk, size_t rule, enum json_form form);

/* The same in parts, on the executor, of a tensor that there is nothing to complain about: its shape and
 * elements to out, which is empty, and the cursor behind it. *taken is false when it is anything else:
 * nothing has changed then. */
bool json_walk_plain(struct json_walk *walk, enum json_kind kind, struct json_array *out, bool *taken);

/* Plain tokens at the cursor's bracket to out, which is empty, and the cursor behind them; *taken as above.
 */
bool json_walk_tokens(struct json_walk *walk, struct json_array *out, bool *taken);

/* The string at the cursor, for a rule: base64; likewise. */
bool json_walk_base64(struct json_walk *walk, size_t rule);

#endif
