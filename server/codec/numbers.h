/*
 * numbers.h - float32 from decimal text and back, for tensors in JSON.
 *
 * Pure functions of their arguments: any thread, no locale, no allocation.
 */
#ifndef ATTND_CODEC_NUMBERS_H
#define ATTND_CODEC_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes that any number printed here takes at most (the charge for one number of a text reply, with its
 * comma). */
#define NUMBER_TEXT_MAX 16

enum number_result { NUMBER_OK, NUMBER_SYNTAX, NUMBER_BEYOND_FLOAT32 };

/* Reads one JSON number (RFC 8259 section 6) at text, ending before end or at the first byte that cannot
 * continue it. *value is the nearest float32, ties to even, as strtof rounds; what is nearer to 2^128 than to
 * the greatest float32 is NUMBER_BEYOND_FLOAT32; what is too small is 0 with its sign. *after points past
 * the number (NUMBER_SYNTAX: at the byte that is wrong). */
enum number_result number_scan(const char *text, const char *end, float *value, const char **after);

/* Writes the shortest decimal text that reads back to the same float32 bits (-0 keeps its sign) to out, which
 * has room for NUMBER_TEXT_MAX bytes (those behind the text may be written too); returns its length, not
 * terminated. value must be finite. The closest
 * to value among the shortest digit strings is taken. 0.1f is "0.1", 1 is "1", 1e30f is "1e30". */
size_t number_print_shortest(float value, char *out);

/* The same with at most `digits` (1 to 9) significant digits, correctly rounded, trailing zeros dropped. */
size_t number_print_digits(float value, int digits, char *out);

#endif
