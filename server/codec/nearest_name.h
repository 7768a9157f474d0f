/*
 * nearest_name.h - the known name that a misspelt one was probably meant to be. Pure: any thread.
 */
#ifndef ATTND_CODEC_NEAREST_NAME_H
#define ATTND_CODEC_NEAREST_NAME_H

#include <stddef.h>

/* The first of the names (bytes, not characters) with the least edit distance from name; NULL when none is
 * near: more than a third of its letters, and more than two, are wrong. */
const char *nearest_name(const char *name, const char *const *names, size_t count);

#endif
