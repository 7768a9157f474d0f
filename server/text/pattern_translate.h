/*
 * pattern_translate.h - an expression as Oniguruma reads it, in PCRE2's words. Pure function: any thread.
 */
#ifndef ATTND_TEXT_PATTERN_TRANSLATE_H
#define ATTND_TEXT_PATTERN_TRANSLATE_H

#include <stddef.h>

/* The rewritten expression, malloc'd. NULL with *wrong the place of what is not understood, or NULL for want
 * of memory. Rewritten are \s \S \w \W \h \v and \uHHHH, which the two read differently; refused are word
 * boundaries, nested and intersected classes, POSIX classes, named and conditional groups, comments,
 * back-references, and possessive counts. */
char *pattern_translate(const char *expression, const char **wrong);

#endif
