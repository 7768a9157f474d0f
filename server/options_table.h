/*
 * options_table.h - the table of settings: names, types, defaults, limits, words for --help.
 *
 * Private to options*.c. Constant data and functions of their arguments.
 */
#ifndef ATTND_OPTIONS_TABLE_H
#define ATTND_OPTIONS_TABLE_H

#include "options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_type {
	OPTION_TEXT,    /* char *, any text but the empty one */
	OPTION_LISTEN,  /* char *, host:port, [v6]:port or unix:/path */
	OPTION_HOSTS,   /* char *, a comma list of hosts (http/hosts.h) */
	OPTION_ORIGINS, /* char *, a comma list of origins */
	OPTION_CHOICE,  /* char *, one of a few names */
	OPTION_SIZE,    /* size_t, a whole number, K, M or G behind it counting in 1024, 1024^2, 1024^3 */
	OPTION_MS,      /* uint64_t, whole milliseconds */
	OPTION_SWITCH,  /* bool, a flag without a value */
};

enum option_place {
	OPTION_EVERYWHERE, /* flag, environment and file */
	OPTION_OUTSIDE,    /* flag and environment: it names the file */
	OPTION_FLAG,       /* flag only */
};

struct option_row {
	const char
	    *name; /* of the flag; max-body is ATTND_MAX_BODY in the environment and max_body in the file */
	enum option_type type;
	enum option_place place;
	size_t offset;                        /* in struct options */
	const char *fallback;                 /* the default, as one would write it; NULL: absent */
	uint64_t least, most;                 /* of numbers */
	const char *value;                    /* what --help calls the value, with its unit */
	const char *help;                     /* one line */
	const char *(*choices)(size_t index); /* of OPTION_CHOICE: names, NULL behind the last */
};

#define OPTION_COUNT 32
extern const struct option_row option_rows[OPTION_COUNT];

/* Room for the longest name in each of its spellings. */
#define OPTION_NAME_MAX 40

/* The row of a flag's name, or NULL. */
const struct option_row *option_find(const char *name);

/* The name in the environment, and in the file. */
void option_variable(const struct option_row *row, char out[static OPTION_NAME_MAX]);
void option_key(const struct option_row *row, char out[static OPTION_NAME_MAX]);

/* Checks text and, when store is set, puts its value into options. false with a message that starts with
 * `origin` (where the text was found), when the value is not acceptable or the system refuses memory. */
bool option_take(const struct option_row *row, const char *text, const char *origin, bool store,
                 struct options *options, char *error, size_t error_size);

#endif
