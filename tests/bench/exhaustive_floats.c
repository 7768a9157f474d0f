/*
 * Prints each of the 2^32 float32 bit patterns that is finite, reads it back with number_scan, alone and in
 * rows, which must be of one mind, and compares every 997th with the C library: the same bits by strtof, and
 * no shorter text of its printf that reads back. Minutes long. Exit status 1 when a pattern fails. Arguments,
 * both optional: first and last upper 16 bits.
 */
#include "codec/numbers.h"
#include "codec/numbers_rows.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SAMPLE 997
#define ROW 64 /* patterns that go together */

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

/* Prints one pattern, with a comma, to text, which has its room; the end, or NULL when it fails. */
static char *print_pattern(uint32_t bits, char *text)
{
	float value = float_of(bits), back;
	const char *after;
	size_t length = number_print_shortest(value, text);
	if (number_scan(text, text + length, &back, &after) != NUMBER_OK || after != text + length ||
	    bits_of(back) != bits || length >= NUMBER_TEXT_MAX)
		return NULL;
	if (bits % SAMPLE == 0 && bits << 1 != 0) {
		text[length] = '\0';
		if (bits_of(strtof(text, NULL)) != bits || significant_digits(text) > library_digits(value))
			return NULL;
	}
	text[length] = ',';
	return text + length + 1;
}

/* Whether the numbers of a text are read as these by rows, with single numbers where rows stop. */
static bool row_reads(const char *begin, const char *end, const float *row)
{
	const char *at = begin + NUMBER_TEXT_MAX;
	float back[ROW];
	for (size_t done = 0; done < ROW; at++) {
		size_t taken = numbers_scan_row(&at, (size_t)(at - begin), end, back + done, ROW - done);
		if (taken == 0 && number_scan(at, end, &back[done], &at) != NUMBER_OK)
			return false;
		done += taken > 0 ? taken : 1;
		if (at == end || *at != ',')
			return false;
	}
	return memcmp(back, row, sizeof(back)) == 0;
}

/* A row of patterns, all finite. */
static bool row_holds(uint32_t first)
{
	char text[(ROW + 3) * NUMBER_TEXT_MAX], again[(ROW + 3) * NUMBER_TEXT_MAX];
	char *begin = text + NUMBER_TEXT_MAX, *end = begin, *other = again;
	float row[ROW];
	memset(text, ' ', sizeof(text));
	for (uint32_t i = 0; i < ROW && end != NULL; i++) {
		row[i] = float_of(first + i);
		end = print_pattern(first + i, end);
	}
	if (end == NULL || numbers_print_row(row, ROW, &other) != ROW)
		return false;
	bool same = other - again == end - begin && memcmp(again, begin, (size_t)(end - begin)) == 0;
	return same && row_reads(text, text + sizeof(text), row);
}

int main(int argc, char **argv)
{
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) << 16 : 0;
	uint64_t last = argc > 2 ? strtoull(argv[2], NULL, 0) << 16 | 0xffff : UINT32_MAX;
	uint64_t checked = 0, failed = 0;
	clock_t start = clock();
	for (uint64_t bits = first; bits <= last; bits += ROW) {
		if ((bits >> 23 & 0xff) == 0xff)
			continue;
		checked += ROW;
		if (row_holds((uint32_t)bits))
			continue;
		if (failed++ < 20)
			printf("failed: %08" PRIx64 " to %08" PRIx64 "\n", bits, bits + ROW - 1);
	}
	printf("%" PRIu64 " finite patterns, %" PRIu64 " rows of %d failed, %.0f s of processor time\n",
	       checked, failed, ROW, (double)(clock() - start) / CLOCKS_PER_SEC);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
