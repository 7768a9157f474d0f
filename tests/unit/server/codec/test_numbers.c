#include "codec/numbers.h"
#include "codec/numbers_powers.h"
#include "suite.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* ck_assert writes to a file each time; millions of cases would wait for that. */
#define expect(condition, ...)                                                                               \
	do {                                                                                                 \
		if (!(condition))                                                                            \
			ck_abort_msg(__VA_ARGS__);                                                           \
	} while (0)

static uint64_t random_next(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static int random_below(uint64_t *state, int bound)
{
	return (int)(random_next(state) % (uint64_t)bound);
}

static float float_of(uint32_t bits)
{
	float value;
	memcpy(&value, &bits, sizeof value);
	return value;
}

static uint32_t bits_of(float value)
{
	uint32_t bits;
	memcpy(&bits, &value, sizeof bits);
	return bits;
}

/* The text must be read whole, as strtof reads it. */
static void expect_like_strtof(const char *text)
{
	size_t length = strlen(text);
	float value = NAN;
	const char *after = NULL;
	enum number_result result = number_scan(text, text + length, &value, &after);
	float expected = strtof(text, NULL);
	expect(after == text + length, "%.200s: read up to %td", text, after - text);
	if (isinf(expected))
		expect(result == NUMBER_BEYOND_FLOAT32, "%.200s: result %d", text, (int)result);
	else
		expect(result == NUMBER_OK && bits_of(value) == bits_of(expected),
		       "%.200s: result %d, %.9g instead of %.9g", text, (int)result, (double)value,
		       (double)expected);
}

/* ---- reading */

START_TEST(scanning_takes_the_json_grammar_and_stops_where_it_ends)
{
	static const struct {
		const char *text;
		int taken; /* bytes, when it is a number */
		int wrong; /* or the place of the byte that is wrong */
	} cases[] = {
	    {"0", 1, 0},
	    {"-0", 2, 0},
	    {"01", 1, 0},
	    {"1,2", 1, 0},
	    {"1.5]", 3, 0},
	    {"1e5 ", 3, 0},
	    {"1E+05", 5, 0},
	    {"-1.0e-0x", 7, 0},
	    {"2.", -1, 2},
	    {"2.e3", -1, 2},
	    {".5", -1, 0},
	    {"+1", -1, 0},
	    {"-", -1, 1},
	    {"--1", -1, 1},
	    {"", -1, 0},
	    {"1e", -1, 2},
	    {"1e+", -1, 3},
	    {"1e-a", -1, 3},
	    {"NaN", -1, 0},
	    {"Infinity", -1, 0},
	    {"-Infinity", -1, 1},
	    {"0x10", 1, 0},
	    {"1 000", 1, 0},
	    {"1.5.5", 3, 0},
	    {"1_0", 1, 0},
	    {"-.5", -1, 1},
	    {"0e1", 3, 0},
	    {"1e5e5", 3, 0},
	    {"\xef\xbc\x91", -1, 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const char *text = cases[i].text;
		const char *after = NULL;
		float value;
		enum number_result result = number_scan(text, text + strlen(text), &value, &after);
		expect((result == NUMBER_OK) == (cases[i].taken > 0), "%s", text);
		expect(after - text == (cases[i].taken > 0 ? cases[i].taken : cases[i].wrong), "%s: %td",
		       text, after - text);
	}
}
END_TEST

START_TEST(scanning_never_looks_past_the_end)
{
	static const char text[] = "-12.5e3";
	static const enum number_result expected[] = {NUMBER_SYNTAX, NUMBER_SYNTAX, NUMBER_OK,     NUMBER_OK,
	                                              NUMBER_SYNTAX, NUMBER_OK,     NUMBER_SYNTAX, NUMBER_OK};
	for (size_t length = 0; length < sizeof text; length++) {
		char *copy = malloc(length + 1); /* an address checker sees a byte read after it */
		ck_assert_ptr_nonnull(copy);
		char *exact = realloc(copy, length ? length : 1);
		ck_assert_ptr_nonnull(exact);
		memcpy(exact, text, length);
		const char *after;
		float value;
		ck_assert_int_eq(number_scan(exact, exact + length, &value, &after), expected[length]);
		ck_assert_ptr_eq(after, exact + length);
		free(exact);
	}
}
END_TEST

START_TEST(scanning_rounds_known_numbers)
{
	static const struct {
		const char *text;
		uint32_t bits;
	} cases[] = {
	    {"0", 0},
	    {"-0", 0x80000000},
	    {"-0.0e99999999999999999999", 0x80000000},
	    {"0.1", 0x3dcccccd},
	    {"1", 0x3f800000},
	    {"16777217", 0x4b800000}, /* a tie, to even */
	    {"16777219", 0x4b800002},
	    {"16777217.0000000000000000000000000000000000000000000000001", 0x4b800001},
	    {"17000000000000000000", 0x5f6bec22},
	    {"3.4028234663852886e38", 0x7f7fffff},
	    {"3.4028235677973366e38", 0x7f7fffff},
	    {"1.401298464324817e-45", 1},
	    {"7.006492321624085e-46", 0}, /* under half of the smallest */
	    {"7.006492321624086e-46", 1},
	    {"-1e-400", 0x80000000},
	    {"1e-99999999999999999999999999", 0},
	    {"1.17549435e-38", 0x00800000},
	    {"1.1754943e-38", 0x00800000},
	    {"1.1754942e-38", 0x007fffff},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const char *after;
		float value;
		const char *text = cases[i].text;
		ck_assert_int_eq(number_scan(text, text + strlen(text), &value, &after), NUMBER_OK);
		expect(bits_of(value) == cases[i].bits, "%s: %08x", text, bits_of(value));
	}
}
END_TEST

START_TEST(scanning_refuses_what_is_beyond_float32)
{
	static const char *const texts[] = {
	    "1e39",
	    "-1e39",
	    "340282356779733661637539395458142568448",
	    "3.4028235677973367e38",
	    "1e999",
	    "1e99999999999999999999999999999",
	    "340282366920938463463374607431768211456",
	};
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		const char *after;
		float value;
		const char *end = texts[i] + strlen(texts[i]);
		ck_assert_int_eq(number_scan(texts[i], end, &value, &after), NUMBER_BEYOND_FLOAT32);
		ck_assert_ptr_eq(after, end);
	}
}
END_TEST

START_TEST(scanning_rounds_random_text_as_strtof_does)
{
	uint64_t state = 1;
	for (int round = 0; round < 1000000; round++) {
		char text[80];
		size_t length = 0;
		int digits = 1 + random_below(&state, round % 8 == 0 ? 40 : 20);
		int point = random_below(&state, digits + 4);
		if (random_below(&state, 2))
			text[length++] = '-';
		text[length++] = (char)('1' + random_below(&state, 9));
		for (int i = 1; i < digits; i++) {
			if (i == point)
				text[length++] = '.';
			text[length++] = (char)('0' + random_below(&state, 10));
		}
		text[length] = '\0';
		if (random_below(&state, 4))
			snprintf(text + length, sizeof text - length, "e%d", random_below(&state, 116) - 65);
		expect_like_strtof(text);
	}
}
END_TEST

/* The decimal expansions of the point half way above a float, of it less one in its last digit, and more. */
static void expect_half_way(uint32_t bits)
{
	double low = (double)float_of(bits);
	double high = bits == 0x7f7fffff ? 0x1p128 : (double)float_of(bits + 1);
	char text[512];
	int length = snprintf(text, sizeof text - 8, "%.150g", (low + high) / 2);
	expect_like_strtof(text);
	char *last = strchr(text, 'e') ? strchr(text, 'e') - 1 : text + length - 1;
	char digit = *last;
	if (digit > '0' && digit < '9') {
		*last = (char)(digit - 1);
		expect_like_strtof(text);
		*last = (char)(digit + 1);
		expect_like_strtof(text);
	}
	for (int precision = 15; precision <= 20; precision++) {
		snprintf(text, sizeof text, "%.*g", precision, (low + high) / 2);
		expect_like_strtof(text);
	}
}

START_TEST(scanning_rounds_half_way_points_as_strtof_does)
{
	uint64_t state = 2;
	for (uint32_t exponent = 0; exponent < 255; exponent++) {
		uint32_t base = exponent << 23;
		static const uint32_t edges[] = {0, 1, 2, 0x3fffff, 0x400000, 0x7ffffe, 0x7fffff};
		for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++)
			expect_half_way(base + edges[i]);
		for (int i = 0; i < 100; i++)
			expect_half_way(base + (uint32_t)random_below(&state, 0x800000));
	}
	for (uint32_t bits = 0; bits < 2000; bits++)
		expect_half_way(bits);
}
END_TEST

START_TEST(scanning_judges_digits_however_far_behind)
{
	/* half way points, followed by many zeros and then nothing, 0 or 1; as digits before or after the
	 * point */
	static const char *const halves[] = {
	    "16777217",
	    "33554434",
	    "1.000000059604644775390625",
	    "7.006492321624085354618647916449580656401309709382578858785341419448955413429303e-46",
	    "340282356779733661637539395458142568448",
	};
	static const size_t lengths[] = {1, 10, 100, 200, 1000, 5000};
	char text[6000];
	for (size_t h = 0; h < sizeof halves / sizeof halves[0]; h++) {
		for (size_t i = 0; i < 3 * sizeof lengths / sizeof lengths[0]; i++) {
			size_t zeros = lengths[i / 3];
			const char *exponent = strchr(halves[h], 'e');
			size_t digits = exponent ? (size_t)(exponent - halves[h]) : strlen(halves[h]);
			int length = snprintf(text, sizeof text, "%.*s%s", (int)digits, halves[h],
			                      memchr(halves[h], '.', digits) ? "" : ".");
			memset(text + length, '0', zeros);
			snprintf(text + length + zeros, sizeof text - (size_t)length - zeros, "%s%s",
			         i % 3 ? i % 3 == 1 ? "1" : "9" : "", exponent ? exponent : "");
			expect_like_strtof(text);
		}
	}
}
END_TEST

START_TEST(scanning_reads_numbers_of_thousands_of_digits)
{
	uint64_t state = 3;
	size_t size = 30000;
	char *text = malloc(size);
	ck_assert_ptr_nonnull(text);
	for (int round = 0; round < 500; round++) {
		int digits = 1000 + random_below(&state, 20000);
		for (int i = 0; i < digits; i++)
			text[i] = (char)('0' + random_below(&state, 10));
		text[0] = '7';
		snprintf(text + digits, size - (size_t)digits, "e-%d",
		         digits - 38 + random_below(&state, 80));
		expect_like_strtof(text);
		text[0] = '0';
		text[1] = '.'; /* as many behind the point, some of them zeros */
		memset(text + 2, '0', (size_t)random_below(&state, 400));
		snprintf(text + digits, size - (size_t)digits, "e%d", random_below(&state, 400));
		expect_like_strtof(text);
	}
	free(text);
}
END_TEST

/* ---- powers of ten */

/* Little-endian numbers of 320 bits, of which 10^45 takes 150 and 2^319 / 10^64 leaves 107. */
#define LIMBS 10

static void limbs_multiply(uint32_t *limbs, uint32_t factor)
{
	uint64_t carry = 0;
	for (int i = 0; i < LIMBS; i++) {
		carry += (uint64_t)limbs[i] * factor;
		limbs[i] = (uint32_t)carry;
		carry >>= 32;
	}
}

static void limbs_divide(uint32_t *limbs, uint32_t divisor)
{
	uint64_t rest = 0;
	for (int i = LIMBS - 1; i >= 0; i--) {
		rest = rest << 32 | limbs[i];
		limbs[i] = (uint32_t)(rest / divisor);
		rest %= divisor;
	}
}

/* The leading 64 bits; *log2 is the place of the first. */
static uint64_t limbs_lead(const uint32_t *limbs, int *log2)
{
	int top = 32 * LIMBS - 1;
	while ((limbs[top / 32] >> (top % 32) & 1) == 0)
		top--;
	uint64_t lead = 0;
	for (int bit = top; bit > top - 64; bit--)
		lead = lead << 1 | (bit >= 0 ? limbs[bit / 32] >> (bit % 32) & 1 : 0);
	*log2 = top;
	return lead;
}

START_TEST(each_power_of_ten_is_its_leading_bits)
{
	uint32_t up[LIMBS] = {1};
	uint32_t down[LIMBS] = {[LIMBS - 1] = UINT32_C(1) << 31};
	int log2;
	for (int k = 0; k <= NUMBER_POWER_MAX; k++) {
		ck_assert_uint_eq(number_power(k), limbs_lead(up, &log2));
		ck_assert_int_eq(number_power_log2(k), log2);
		bool exact = true; /* when nothing is left below the leading bits */
		for (int bit = 0; bit < log2 - 63; bit++)
			exact &= (up[bit / 32] >> (bit % 32) & 1) == 0;
		expect(number_power_is_exact(k) == exact, "%d", k);
		limbs_multiply(up, 10);
	}
	for (int k = -1; k >= NUMBER_POWER_MIN; k--) {
		limbs_divide(down, 10);
		ck_assert_uint_eq(number_power(k), limbs_lead(down, &log2));
		ck_assert_int_eq(number_power_log2(k), log2 - 319);
		ck_assert(!number_power_is_exact(k));
	}
}
END_TEST

/* ---- printing */

START_TEST(printing_is_as_people_write)
{
	static const struct {
		float value;
		const char *text;
	} cases[] = {
	    {0.0f, "0"},
	    {-0.0f, "-0"},
	    {1.0f, "1"},
	    {-1.0f, "-1"},
	    {0.1f, "0.1"},
	    {1e30f, "1e30"},
	    {1.5e-7f, "1.5e-7"},
	    {16777216.0f, "16777216"},
	    {100.0f, "100"},
	    {1000.0f, "1e3"},
	    {0.01f, "0.01"},
	    {0.001f, "1e-3"},
	    {123.25f, "123.25"},
	    {1e-45f, "1e-45"},
	    {FLT_MAX, "3.4028235e38"},
	    {FLT_MIN, "1.1754944e-38"},
	    {0.25f, "0.25"},
	    {1234567.0f, "1234567"},
	    {0.0123f, "0.0123"},
	    {0.00123f, "0.00123"},
	    {-1.2345679e-38f, "-1.2345679e-38"},
	    {120000.0f, "1.2e5"},
	    {12000.0f, "12000"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char text[NUMBER_TEXT_MAX + 1];
		text[number_print_shortest(cases[i].value, text)] = '\0';
		ck_assert_str_eq(text, cases[i].text);
	}
}
END_TEST

/* Significant digits of a text, without zeros before and behind them. */
static int digits_of(const char *text, char *digits)
{
	int count = 0;
	for (; *text != '\0' && *text != 'e'; text++)
		if (*text >= '0' && *text <= '9' && (count > 0 || *text != '0'))
			digits[count++] = *text;
	while (count > 0 && digits[count - 1] == '0')
		count--;
	digits[count] = '\0';
	return count;
}

/* Prints, reads back by strtof, and compares with the shortest of the C library's roundings that reads back.
 */
static void expect_shortest(uint32_t bits)
{
	char text[NUMBER_TEXT_MAX + 1];
	char digits[16], other[16];
	float value = float_of(bits);
	size_t length = number_print_shortest(value, text);
	expect(length < NUMBER_TEXT_MAX, "%zu bytes", length);
	text[length] = '\0';
	expect(bits_of(strtof(text, NULL)) == bits, "%08x: %s", (unsigned)bits, text);
	int count = digits_of(text, digits);
	/* The library's rounding to one digit less must not read back; to as many it may, and is then the
	 * closest. (Below a power of two the closest may not read back where one further off does.) */
	char library[32];
	if (count > 1) {
		snprintf(library, sizeof library, "%.*e", count - 2, (double)value);
		expect(bits_of(strtof(library, NULL)) != bits, "%s is longer than %s", text, library);
	}
	snprintf(library, sizeof library, "%.*e", count > 0 ? count - 1 : 0, (double)value);
	if (bits_of(strtof(library, NULL)) == bits) {
		digits_of(library, other);
		expect(strcmp(digits, other) == 0, "%s is not as close as %s", text, library);
	} else {
		expect((bits & 0x7fffff) == 0, "%s is longer than needed", text);
	}
}

START_TEST(printing_is_shortest_and_closest_and_reads_back)
{
	uint64_t state = 4;
	for (uint32_t exponent = 0; exponent < 255; exponent++) {
		for (uint32_t i = 0; i < 200; i++) {
			expect_shortest(exponent << 23 | i);
			expect_shortest(exponent << 23 | (0x7fffff - i));
			expect_shortest(exponent << 23 | (0x400000 - 100 + i));
		}
	}
	for (int i = 0; i < 2000000; i++) {
		uint32_t bits = (uint32_t)random_next(&state);
		if ((bits >> 23 & 0xff) != 0xff)
			expect_shortest(bits);
	}
}
END_TEST

START_TEST(printing_never_takes_more_bytes_than_plain_or_scientific_text)
{
	uint64_t state = 5;
	for (int i = 0; i < 300000; i++) {
		/* a short decimal of any exponent, so that both forms are met */
		char given[32];
		snprintf(given, sizeof given, "%de%d", 1 + random_below(&state, i % 2 ? 99999999 : 999),
		         random_below(&state, 40) - 20);
		float value = strtof(given, NULL);
		char text[NUMBER_TEXT_MAX + 1], digits[16], plain[64], scientific[64];
		size_t length = number_print_shortest(value, text);
		text[length] = '\0';
		int count = digits_of(text, digits);
		snprintf(scientific, sizeof scientific, "%.*e", count - 1, (double)value);
		char *tail = strchr(scientific, 'e');
		int exponent = (int)strtol(tail + 1, NULL, 10);
		int size = (int)(tail - scientific) + snprintf(tail, 8, "e%d", exponent);
		int behind = count - 1 - exponent;
		int plain_size =
		    snprintf(plain, sizeof plain, "%.*f", behind > 0 ? behind : 0, (double)value);
		expect((int)length == (plain_size <= size ? plain_size : size), "%s: %s or %s", text, plain,
		       scientific);
	}
}
END_TEST

static void expect_digits(float value, int digits)
{
	char text[NUMBER_TEXT_MAX + 1], library[32];
	size_t length = number_print_digits(value, digits, text);
	expect(length < NUMBER_TEXT_MAX, "%zu bytes", length);
	text[length] = '\0';
	snprintf(library, sizeof library, "%.*e", digits - 1, (double)value);
	expect(strtod(text, NULL) == strtod(library, NULL), "%s, %s", text, library);
	char significant[16];
	expect(digits_of(text, significant) <= digits, "%s", text);
}

START_TEST(printing_digits_rounds_as_the_c_library_does)
{
	uint64_t state = 6;
	for (int i = 0; i < 500000; i++) {
		uint32_t bits = (uint32_t)random_next(&state);
		if ((bits >> 23 & 0xff) != 0xff)
			expect_digits(float_of(bits), 1 + i % 9);
	}
	for (int exponent = -45; exponent <= 38; exponent++) { /* about powers of ten */
		uint32_t bits = bits_of((float)pow(10, exponent));
		for (uint32_t i = 0; i < 7 * 9; i++)
			expect_digits(float_of(bits > 3 ? bits + i / 9 - 3 : bits + i / 9), 1 + (int)i % 9);
	}
	for (int i = 0; i < 20000; i++) /* ties */
		expect_digits((float)i / 16, 1 + i % 9);
}
END_TEST

START_TEST(printing_digits_drops_trailing_zeros)
{
	static const struct {
		float value;
		int digits;
		const char *text;
	} cases[] = {
	    {0.0f, 3, "0"},      {-0.0f, 3, "-0"},         {1.0f, 9, "1"},           {0.5f, 4, "0.5"},
	    {0.125f, 2, "0.12"}, {0.375f, 2, "0.38"},      {0.1f, 9, "0.100000001"}, {999.9f, 3, "1e3"},
	    {99.96f, 3, "100"},  {-1.0f / 3, 3, "-0.333"}, {FLT_MAX, 1, "3e38"},     {1e-45f, 3, "1.4e-45"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char text[NUMBER_TEXT_MAX + 1];
		text[number_print_digits(cases[i].value, cases[i].digits, text)] = '\0';
		ck_assert_str_eq(text, cases[i].text);
	}
}
END_TEST

START_TEST(scanning_reads_back_what_is_printed)
{
	uint64_t state = 7;
	for (int i = 0; i < 2000000; i++) {
		uint32_t bits = (uint32_t)random_next(&state);
		if ((bits >> 23 & 0xff) == 0xff)
			continue;
		char text[NUMBER_TEXT_MAX];
		size_t length = number_print_shortest(float_of(bits), text);
		const char *after;
		float value;
		enum number_result result = number_scan(text, text + length, &value, &after);
		expect(result == NUMBER_OK && after == text + length && bits_of(value) == bits, "%08x",
		       (unsigned)bits);
	}
}
END_TEST

SUITE_MAIN("numbers", scanning_takes_the_json_grammar_and_stops_where_it_ends,
           scanning_never_looks_past_the_end, scanning_rounds_known_numbers,
           scanning_refuses_what_is_beyond_float32, scanning_rounds_random_text_as_strtof_does,
           scanning_rounds_half_way_points_as_strtof_does, scanning_judges_digits_however_far_behind,
           scanning_reads_numbers_of_thousands_of_digits, each_power_of_ten_is_its_leading_bits,
           printing_is_as_people_write, printing_is_shortest_and_closest_and_reads_back,
           printing_never_takes_more_bytes_than_plain_or_scientific_text,
           printing_digits_rounds_as_the_c_library_does, printing_digits_drops_trailing_zeros,
           scanning_reads_back_what_is_printed)
