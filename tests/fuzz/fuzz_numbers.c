/*
 * Any bytes as a number: what the grammar takes, strtof must round the same way, and the printed value must
 * read back.
 */
#include "codec/numbers.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(int holds)
{
	if (!holds)
		abort();
}

static void check_printed(float value)
{
	char text[NUMBER_TEXT_MAX];
	float back;
	const char *after;
	size_t length = number_print_shortest(value, text);
	expect(length < NUMBER_TEXT_MAX);
	expect(number_scan(text, text + length, &back, &after) == NUMBER_OK && after == text + length);
	expect(memcmp(&value, &back, sizeof value) == 0);
	for (int digits = 1; digits <= 9; digits++) {
		length = number_print_digits(value, digits, text);
		expect(length < NUMBER_TEXT_MAX);
		expect(number_scan(text, text + length, &back, &after) != NUMBER_SYNTAX &&
		       after == text + length);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* a copy of just the size, so that the address sanitizer sees a read past the end */
	char *text = malloc(size > 0 ? size : 1);
	char *copy = malloc(size + 1);
	expect(text != NULL && copy != NULL);
	if (size > 0)
		memcpy(text, data, size);
	const char *after = NULL;
	float value = NAN;
	enum number_result result = number_scan(text, text + size, &value, &after);
	expect(after >= text && after <= text + size);
	if (result != NUMBER_SYNTAX) {
		size_t length = (size_t)(after - text);
		memcpy(copy, text, length);
		copy[length] = '\0';
		char *end;
		float expected = strtof(copy, &end);
		expect(end == copy + length);
		expect((result == NUMBER_OK) == (isfinite(expected) != 0));
		expect(result != NUMBER_OK || memcmp(&value, &expected, sizeof value) == 0);
	}
	if (result == NUMBER_OK)
		check_printed(value);
	free(text);
	free(copy);
	return 0;
}
