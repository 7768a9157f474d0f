/*
 * utf8.h - where UTF-8 is well-formed (Unicode 15, table 3-7).
 *
 * Pure functions: any thread, no allocation.
 */
#ifndef ATTND_CODEC_UTF8_H
#define ATTND_CODEC_UTF8_H

#include <stddef.h>

/* Bytes (1 to 4) of the well-formed sequence at text, which ends before end; 0 when there is none: overlong
 * forms, surrogates, code points past U+10FFFF and sequences cut short are not well-formed. text < end. */
size_t utf8_sequence(const char *text, const char *end);

/* Writes code point `point` (at most 0x10FFFF) to out, which has room for 4 bytes; returns how many it took.
 */
size_t utf8_encode(unsigned point, char *out);

/* How many of the bytes at text, where no well-formed sequence stands, one U+FFFD stands for (Unicode
 * 15, 3.9, maximal subparts): at least 1. text < end. */
size_t utf8_maximal_subpart(const char *text, const char *end);

/* The greatest length up to `length` at which text can be cut without splitting a sequence. */
size_t utf8_cut(const char *text, size_t length);

#endif
