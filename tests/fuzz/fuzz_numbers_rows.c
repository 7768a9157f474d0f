/*
 * Any bytes as a row of numbers: rows are of one mind with single numbers, on what is read and where it ends;
 * what is read is printed as single numbers print it.
 */
#include "codec/numbers.h"
#include "codec/numbers_rows.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MOST 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(int holds)
{
	if (!holds)
		abort();
}

/* Numbers with a comma, and perhaps a space, between them; how many, and where they end. */
static size_t read_numbers(const char *begin, const char *at, const char *end, int rows, float *out,
                           const char **after)
{
	size_t count = 0;
	while (count < MOST) {
		size_t taken = 0;
		if (rows)
			taken = numbers_scan_row(&at, (size_t)(at - begin), end, out + count, MOST - count);
		if (taken == 0 && number_scan(at, end, &out[count], &at) != NUMBER_OK)
			break;
		count += taken > 0 ? taken : 1;
		if (at == end || *at != ',')
			break;
		at++;
		at += at < end && *at == ' ';
	}
	*after = at;
	return count;
}

static void check_printed(const float *values, size_t count)
{
	char singly[MOST * NUMBER_TEXT_MAX], *end = singly;
	char *row = malloc(count * NUMBER_TEXT_MAX + 1), *after = row;
	expect(row != NULL);
	for (size_t i = 0; i < count; i++) {
		end += number_print_shortest(values[i], end);
		*end++ = ',';
	}
	expect(numbers_print_row(values, count, &after) == count);
	expect(after - row == end - singly && memcmp(row, singly, (size_t)(end - singly)) == 0);
	free(row);
}

/* The bytes as they are, for exponents and digits that no text leads to. */
static void check_bits(const uint8_t *data, size_t size)
{
	float values[MOST];
	size_t count = size / sizeof(float) < MOST ? size / sizeof(float) : MOST, finite = 0;
	memcpy(values, data, count * sizeof(float));
	for (size_t i = 0; i < count; i++) {
		uint32_t bits;
		memcpy(&bits, &values[i], sizeof(bits));
		if ((bits & 0x7f800000) != 0x7f800000)
			values[finite++] = values[i];
	}
	check_printed(values, finite);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	/* a copy of just the size, so that the address sanitizer sees a read past the end; the first byte
	 * says how many of the others stand before the row */
	size_t lead = data[0] % 32 < size - 1 ? data[0] % 32 : size - 1;
	char *text = malloc(size - 1 > 0 ? size - 1 : 1);
	float by_rows[MOST], singly[MOST];
	const char *after_rows, *after_singles;
	expect(text != NULL);
	memcpy(text, data + 1, size - 1);
	const char *end = text + size - 1;
	size_t count = read_numbers(text, text + lead, end, 1, by_rows, &after_rows);
	expect(count == read_numbers(text, text + lead, end, 0, singly, &after_singles));
	expect(after_rows == after_singles);
	expect(memcmp(by_rows, singly, count * sizeof(float)) == 0);
	check_printed(by_rows, count);
	check_bits(data, size);
	free(text);
	return 0;
}
