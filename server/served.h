/*
 * served.h - what SIGHUP replaces, loaded as one: all of it, or nothing and the reason.
 */
#ifndef ATTND_SERVED_H
#define ATTND_SERVED_H

#include "attn.h"
#include "observe/log.h"
#include "options.h"
#include "pipeline/registry.h"

struct tokens;

struct served {
	struct registry *registry;
	struct tokens *tokens; /* NULL: none is needed */
	enum log_level log_level;
	enum log_format log_format;
};

/* Loads what the options name, models for these kernels, which outlive them; models NULL: the embedded one. A
 * model that cannot be loaded is left out (a failure of the registry), unless no other can. NULL with err
 * set. Any thread; reads files. */
struct served *served_load(const struct options *options, const attn_kernels *kernels, attn_error *err);
/* Reads flags, environment and file anew, as at start, and loads what they name now, models all or none. Only
 * settings that stand in struct served have an effect; the others are checked. */
struct served *served_load_again(int argc, char **argv, char **envp, const attn_kernels *kernels,
                                 attn_error *err);
void served_free(struct served *served); /* NULL is allowed */

#endif
