/*
 * Prints each of the 2^32 float32 bit patterns that is finite, reads it back with number_scan, and compares
 * every 997th with the C library: the same bits by strtof, and no shorter text of its printf that reads back.
 * Minutes long. Exit status 1 when a pattern fails. Arguments, both optional: first and last upper 16 bits.
 */
#include "codec/numbers.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SAMPLE 997

static uint32_t bits_of(float value)
{
	uint32_t bits;
	memcpy(&bits, &value, sizeof bits);
	return bits;
}

static float float_of(uint32_t bits)
{
	float value;
	memcpy(&value, &bits, sizeof value);
	return value;
}

static int significant_digits(const char *text)
{
	int count = 0, zeros = 0;
	for (; *text != '\0' && *text != 'e'; text++) {
		if (*text < '0' || *text > '9' || (count == 0 && *text == '0'))
			continue;
		count++;
		zeros = *text == '0' ? zeros + 1 : 0;
	}
	return count - zeros;
}

/* The fewest digits of a correctly rounded text that reads back. */
static int library_digits(float value)
{
	char text[32];
	for (int digits = 1; digits < 9; digits++) {
		snprintf(text, sizeof text, "%.*e", digits - 1, (double)value);
		if (strtof(text, NULL) == value)
			return digits;
	}
	return 9;
}

static bool pattern_holds(uint32_t bits)
{
	char text[NUMBER_TEXT_MAX + 1];
	float value = float_of(bits), back;
	const char *after;
	size_t length = number_print_shortest(value, text);
	if (number_scan(text, text + length, &back, &after) != NUMBER_OK || after != text + length ||
	    bits_of(back) != bits || length >= NUMBER_TEXT_MAX)
		return false;
	if (bits % SAMPLE != 0 || bits << 1 == 0)
		return true;
	text[length] = '\0';
	return bits_of(strtof(text, NULL)) == bits && significant_digits(text) <= library_digits(value);
}

int main(int argc, char **argv)
{
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) << 16 : 0;
	uint64_t last = argc > 2 ? strtoull(argv[2], NULL, 0) << 16 | 0xffff : UINT32_MAX;
	uint64_t checked = 0, failed = 0;
	clock_t start = clock();
	for (uint64_t bits = first; bits <= last; bits++) {
		if ((bits >> 23 & 0xff) == 0xff)
			continue;
		checked++;
		if (pattern_holds((uint32_t)bits))
			continue;
		if (failed++ < 20)
			printf("failed: %08" PRIx64 "\n", bits);
	}
	printf("%" PRIu64 " finite patterns, %" PRIu64 " failed, %.0f s of processor time\n", checked, failed,
	       (double)(clock() - start) / CLOCKS_PER_SEC);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
