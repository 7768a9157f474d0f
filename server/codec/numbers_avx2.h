/*
 * numbers_avx2.h - the kernels of numbers_rows.h for processors with AVX2.
 *
 * Private to numbers_rows.c. Pure functions: any thread, no allocation.
 */
#ifndef ATTND_CODEC_NUMBERS_AVX2_H
#define ATTND_CODEC_NUMBERS_AVX2_H

#include "codec/numbers_rows.h"

#include <stddef.h>

#define NUMBERS_PRINTED 8

struct numbers_kernels {
	/* As numbers_scan_row: groups of four or two numbers without exponents. */
	size_t (*scan)(const char **at, size_t before, const char *end, float *out, size_t count);

	/* Writes the first `count` of eight finite numbers, none of them subnormal, with a comma after each,
	 * and returns the end; NULL, nothing written, when one of the eight is something else. out has room
	 * for NUMBER_TEXT_MAX bytes each and 16 more. */
	char *(*print)(const float values[NUMBERS_PRINTED], size_t count, char *out);

	/* As numbers_mark. */
	void (*mark)(const char *text, size_t blocks, struct numbers_marks *out);
};

/* NULL where the processor has not what they need. */
const struct numbers_kernels *numbers_avx2(void);

#endif
