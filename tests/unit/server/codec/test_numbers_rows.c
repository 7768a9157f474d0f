#include "codec/numbers_rows.h"

#include "codec/numbers.h"
#include "suite.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* ck_assert writes to a file each time; millions of cases would wait for that. */
#define expect(condition, ...)                                                                               \
	do {                                                                                                 \
		if (!(condition))                                                                            \
			ck_abort_msg(__VA_ARGS__);                                                           \
	} while (0)

#define ROW 64
#define TEXT_MAX (ROW * 40)

static uint32_t random_next(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 32);
}

static float float_of(uint32_t bits)
{
	float value;
	memcpy(&value, &bits, sizeof value);
	return value;
}

/* ---- printing */

/* The row as single numbers print it. */
static size_t print_singly(const float *values, size_t count, char *out)
{
	char *at = out;
	for (size_t i = 0; i < count; i++) {
		at += number_print_shortest(values[i], at);
		*at++ = ',';
	}
	return (size_t)(at - out);
}

static void expect_printed(const float *values, size_t count)
{
	char expected[(ROW + 1) * NUMBER_TEXT_MAX];
	size_t length = print_singly(values, count, expected);
	char *text = malloc(count * NUMBER_TEXT_MAX + 1),
	     *end = text; /* an address checker sees one byte more */
	ck_assert_ptr_nonnull(text);
	expect(numbers_print_row(values, count, &end) == count, "%zu numbers from %a on", count,
	       (double)values[0]);
	expect((size_t)(end - text) == length && memcmp(text, expected, length) == 0, "%.*s instead of %.*s",
	       (int)(end - text), text, (int)length, expected);
	free(text);
}

START_TEST(a_row_prints_as_its_numbers_do)
{
	uint64_t state = 1;
	for (uint32_t exponent = 0; exponent < 255; exponent++) {
		for (int round = 0; round < 60; round++) {
			float row[ROW];
			size_t count = 1 + random_next(&state) % ROW;
			for (size_t i = 0; i < count; i++) {
				uint32_t bits = exponent << 23 | (random_next(&state) & 0x807fffff);
				row[i] = float_of(round < 2 ? bits & 0xff800000 : bits); /* powers of two */
			}
			expect_printed(row, count);
		}
	}
}
END_TEST

START_TEST(a_row_of_any_exponents_and_few_digits_prints_as_its_numbers_do)
{
	uint64_t state = 2;
	for (int round = 0; round < 20000; round++) {
		float row[ROW];
		size_t count = 1 + random_next(&state) % ROW;
		for (size_t i = 0; i < count; i++) {
			uint32_t bits = random_next(&state), kind = random_next(&state) % 8;
			row[i] = kind == 0   ? 0.0f * (bits & 1 ? -1.0f : 1.0f)
			         : kind == 1 ? (float)(int32_t)(bits >> 20) - 2000
			         : kind == 2 ? (float)(bits % 1000) / 1000.0f
			         : kind == 3
			             ? powf(10, (float)(bits % 70) - 35)
			             : float_of((bits & 0x7f800000) == 0x7f800000 ? bits & 0xbfffffff : bits);
		}
		expect_printed(row, count);
	}
}
END_TEST

START_TEST(a_row_ends_before_what_is_not_finite)
{
	static const float wrong[] = {INFINITY, -INFINITY, NAN};
	for (size_t at = 0; at < ROW; at++) {
		float row[ROW];
		char text[(ROW + 1) * NUMBER_TEXT_MAX], *end = text;
		for (size_t i = 0; i < ROW; i++)
			row[i] = 0.5f;
		row[at] = wrong[at % 3];
		ck_assert_uint_eq(numbers_print_row(row, ROW, &end), at);
		ck_assert_uint_eq((size_t)(end - text), 4 * at);
	}
}
END_TEST

/* ---- reading */

/* Numbers separated by commas from text on, read by rows where that can be, else one by one: how many, and
 * where it ended. */
static size_t read_text(const char *text, const char *begin, const char *end, bool rows, float *out,
                        const char **after)
{
	size_t count = 0;
	while (count < ROW) {
		size_t taken =
		    rows ? numbers_scan_row(&text, (size_t)(text - begin), end, out + count, ROW - count) : 0;
		if (taken == 0 && number_scan(text, end, &out[count], &text) != NUMBER_OK)
			break;
		count += taken > 0 ? taken : 1;
		if (text < end && *text == ',')
			text++;
		if (text < end && *text == ' ')
			text++;
	}
	*after = text;
	return count;
}

/* Rows and single numbers are of one mind on the text, wherever it stands in memory. */
static void expect_same_reading(const char *text, size_t length, size_t lead)
{
	float by_rows[ROW], singly[ROW];
	const char *after_rows, *after_singles;
	char *copy = malloc(lead + length + 1), *end; /* sized so that an address checker sees a byte more */
	ck_assert_ptr_nonnull(copy);
	copy = realloc(copy, lead + length);
	end = copy + lead + length;
	memset(copy, '7', lead);
	memcpy(copy + lead, text, length);
	size_t count = read_text(copy + lead, copy, end, true, by_rows, &after_rows);
	size_t expected = read_text(copy + lead, copy, end, false, singly, &after_singles);
	expect(count == expected && after_rows == after_singles, "%zu instead of %zu numbers of %.*s", count,
	       expected, (int)length, text);
	for (size_t i = 0; i < count; i++)
		expect(memcmp(&by_rows[i], &singly[i], sizeof(float)) == 0, "number %zu of %.*s: %a not %a",
		       i, (int)length, text, (double)by_rows[i], (double)singly[i]);
	free(copy);
}

/* A number as writers print it, or a row of them. */
static size_t put_number(uint64_t *state, char *out)
{
	static const char *const odd[] = {"0",
	                                  "-0",
	                                  "1",
	                                  "-1e5",
	                                  "1E-3",
	                                  "12",
	                                  "007",
	                                  "-",
	                                  "1.",
	                                  ".5",
	                                  "1.2.3",
	                                  "+1",
	                                  "--1",
	                                  "1-",
	                                  "0.1234567890123456789",
	                                  "123456789012345",
	                                  "1234567890123456",
	                                  "16777217",
	                                  "16777217.0",
	                                  "1e39",
	                                  "",
	                                  " 1",
	                                  "1 ",
	                                  "[1]",
	                                  "00.5",
	                                  "1e-50"};
	uint32_t bits = random_next(state), kind = random_next(state) % 64;
	double value = (double)(int32_t)bits / 2147483648.0;
	if (kind == 0)
		return (size_t)sprintf(out, "%s", odd[random_next(state) % (sizeof odd / sizeof odd[0])]);
	if (kind < 8)
		return (size_t)sprintf(out, "%d", (int)(int8_t)bits);
	if (kind < 16)
		return (size_t)sprintf(out, "%.9g", value * 1e-3);
	if (kind < 24)
		return (size_t)sprintf(out, "%.17g", value * 100);
	if (kind < 32)
		return (size_t)sprintf(out, "%.*f", (int)(bits % 13), value * 1000);
	return number_print_shortest((float)value, out);
}

START_TEST(a_row_reads_as_its_numbers_do)
{
	uint64_t state = 3;
	for (int round = 0; round < 60000; round++) {
		char text[TEXT_MAX];
		size_t length = 0, count = 1 + random_next(&state) % ROW;
		bool spaces = round % 3 == 0;
		for (size_t i = 0; i < count; i++) {
			length += put_number(&state, text + length);
			text[length++] = i + 1 < count ? ',' : round % 2 ? ']' : ',';
			if (spaces)
				text[length++] = ' ';
		}
		expect_same_reading(text, length, random_next(&state) % 24);
		size_t at = random_next(&state) % length; /* and with a byte changed */
		text[at] = "0123456789,,..--  eE+]["[random_next(&state) % 23];
		expect_same_reading(text, length, random_next(&state) % 24);
	}
}
END_TEST

/* Points half way between two float32, and their neighbours, to as many digits as rows take. */
START_TEST(a_row_rounds_half_way_points_as_strtof_does)
{
	uint64_t state = 4;
	for (int round = 0; round < 200000; round++) {
		char text[256], numbers[4][40];
		size_t length = 16;
		memset(text, ' ', sizeof(text));
		for (int i = 0; i < 4; i++) {
			uint32_t bits =
			    (100 + random_next(&state) % 50) << 23 | random_next(&state) % 0x800000;
			double middle = ((double)float_of(bits) + (double)float_of(bits + 1)) / 2;
			int whole = middle < 1 ? 1 : (int)floor(log10(middle)) + 1;
			snprintf(numbers[i], sizeof(numbers[i]), "%.*f", 15 - whole + round % 7, middle);
			length += (size_t)snprintf(text + length, sizeof(text) - length, "%s,", numbers[i]);
		}
		float out[4];
		const char *at = text + 16;
		text[length] = ' ';
		size_t count = numbers_scan_row(&at, 16, text + sizeof(text), out, 4);
		for (size_t i = 0; i < count; i++)
			expect(out[i] == strtof(numbers[i], NULL), "%s: %a", numbers[i], (double)out[i]);
	}
}
END_TEST

START_TEST(no_byte_outside_the_text_is_looked_at)
{
	static const char text[] = "0.25,-0.5,1.75,0.125,0.25,-0.5,1.75,0.125,0.25,-0.5,1.75,0.125,0.5";
	for (size_t length = 0; length < sizeof(text); length++) {
		for (size_t lead = 0; lead < 20; lead++)
			if (lead + length > 0)
				expect_same_reading(text, length, lead);
	}
}
END_TEST

/* ---- marks */

START_TEST(marks_stand_where_the_bytes_do)
{
	static const char alphabet[] = "0123456789.-+eE, \n\t[]{}\"truefalsn\\";
	uint64_t state = 5;
	for (int round = 0; round < 2000; round++) {
		char text[3 * NUMBERS_BLOCK];
		struct numbers_marks marks[3];
		for (size_t i = 0; i < sizeof(text); i++)
			text[i] = alphabet[random_next(&state) % (sizeof(alphabet) - 1)];
		numbers_mark(text, 3, marks);
		for (size_t block = 0; block < 3; block++) {
			unsigned commas = 0;
			for (size_t i = 0; i < NUMBERS_BLOCK; i++) {
				char c = text[block * NUMBERS_BLOCK + i];
				commas += c == ',';
				expect((marks[block].commas >> i & 1) == (c == ','), "'%c'", c);
				expect((marks[block].brackets >> i & 1) == (strchr("[]{}\"", c) != NULL),
				       "'%c'", c);
			}
			ck_assert_uint_eq(marks[block].comma_count, commas);
		}
	}
}
END_TEST

SUITE_MAIN("numbers_rows", a_row_prints_as_its_numbers_do,
           a_row_of_any_exponents_and_few_digits_prints_as_its_numbers_do,
           a_row_ends_before_what_is_not_finite, a_row_reads_as_its_numbers_do,
           a_row_rounds_half_way_points_as_strtof_does, no_byte_outside_the_text_is_looked_at,
           marks_stand_where_the_bytes_do)
