/*
 * base64.h - base64 text to bytes, strictly by RFC 4648 section 4.
 *
 * Pure functions: any thread, no allocation.
 */
#ifndef ATTND_CODEC_BASE64_H
#define ATTND_CODEC_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that text of this length decodes to at most. */
size_t base64_room(size_t length);

/* Decodes to out, which has base64_room(length) bytes; *count of them are written. The text must be whole
 * groups of four characters of the alphabet, padded with '=' at its end alone, no bits set where none count.
 * false with *bad at the first character that is wrong, or at length when the text ends inside a group. */
bool base64_decode(const char *text, size_t length, uint8_t *out, size_t *count, size_t *bad);

#endif
