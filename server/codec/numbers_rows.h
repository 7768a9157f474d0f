/*
 * numbers_rows.h - rows of float32 from decimal text and back: what numbers.h does with one number, done with
 * many at once where the processor can.
 *
 * Bits and bytes are those of numbers.h, whatever the processor. Pure functions: any thread, no allocation.
 */
#ifndef ATTND_CODEC_NUMBERS_ROWS_H
#define ATTND_CODEC_NUMBERS_ROWS_H

#include <stddef.h>
#include <stdint.h>

/* Reads up to count numbers with a comma, and at most one space, between them from *at, which has at least
 * `before` readable bytes before it and ends before end. Returns how many it took, 0 too; *at then points
 * behind the last of them. It stops early at its convenience: the next number may be of any form, and what
 * stands there may be none; number_scan tells. */
size_t numbers_scan_row(const char **at, size_t before, const char *end, float *out, size_t count);

/* Writes count numbers as number_print_shortest does, with a comma after each, until one that is not finite;
 * returns how many. *at points behind the last comma. There is room for NUMBER_TEXT_MAX bytes a number; those
 * behind the text may be written too. */
size_t numbers_print_row(const float *values, size_t count, char **at);

/* What stands in 64 bytes of text, the first in the lowest bit. */
#define NUMBERS_BLOCK 64
struct numbers_marks {
	uint64_t commas;
	uint64_t brackets; /* [ ] { } and quotes; perhaps others that JSON has in strings only */
	unsigned comma_count;
};

/* Marks blocks of 64 bytes. */
void numbers_mark(const char *text, size_t blocks, struct numbers_marks *out);

#endif
