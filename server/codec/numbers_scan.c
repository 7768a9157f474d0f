/*
 * Up to 19 significant digits w and a decimal exponent q are taken from the text. The product w * 10^q is
 * then known to lie in an interval two units wide in its 63rd or 64th bit, and float32 has 24: unless a point
 * half way between two floats lies within, the rounding is certain. The one number in 2^37 that is left, and
 * exact ties, go to strtof, on a copy that needs no more than EXACT_DIGITS digits.
 */
#include "codec/numbers.h"
#include "codec/numbers_powers.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* w holds at most this many digits. */
#define WORD_DIGITS 19
/* No point half way between two float32 has more significant digits than 113: what lies beyond can only say
 * whether the number is greater than its first digits, which one more digit says as well. */
#define EXACT_DIGITS 120
/* Far beyond any float32 for any text that fits memory, and far from overflow of int64_t. */
#define EXPONENT_LIMIT INT64_C(1000000000000000000)

/* The parts of a number's text: value = digits * 10^exponent, the digits read without their point. */
struct parts {
	const char *digits, *digits_end; /* point included */
	uint64_t word;                   /* all digits, modulo 2^64 */
	size_t count;                    /* of digits */
	int64_t exponent;
	bool negative;
};

static inline bool is_digit(const char *p, const char *end)
{
	return p < end && (unsigned char)(*p - '0') <= 9;
}

/* Appends digits to *word, modulo 2^64. */
static inline const char *take_digits(const char *p, const char *end, uint64_t *word)
{
	uint64_t w = *word;
	for (; is_digit(p, end); p++)
		w = 10 * w + (uint64_t)(*p - '0');
	*word = w;
	return p;
}

/* p is behind the e. NULL with *wrong set when no digit follows. */
static const char *take_exponent(const char *p, const char *end, int64_t *exponent, const char **wrong)
{
	bool negative = p < end && *p == '-';
	if (p < end && (*p == '-' || *p == '+'))
		p++;
	if (!is_digit(p, end)) {
		*wrong = p;
		return NULL;
	}
	int64_t value = 0;
	for (; is_digit(p, end); p++)
		value = value < EXPONENT_LIMIT / 10 ? 10 * value + (*p - '0') : EXPONENT_LIMIT;
	*exponent += negative ? -value : value;
	return p;
}

/* The grammar: returns the end of the number, or NULL with *wrong at the byte that is wrong. */
static inline const char *take_parts(const char *p, const char *end, struct parts *parts, const char **wrong)
{
	parts->negative = p < end && *p == '-';
	p += parts->negative;
	parts->digits = p;
	parts->word = 0;
	parts->exponent = 0;
	if (!is_digit(p, end)) {
		*wrong = p;
		return NULL;
	}
	p = *p == '0' ? p + 1 : take_digits(p, end, &parts->word);
	parts->count = (size_t)(p - parts->digits);
	if (p < end && *p == '.') {
		const char *fraction = p + 1;
		p = take_digits(fraction, end, &parts->word);
		if (p == fraction) {
			*wrong = p;
			return NULL;
		}
		parts->count += (size_t)(p - fraction);
		parts->exponent = -(int64_t)(p - fraction);
	}
	parts->digits_end = p;
	if (p < end && (*p == 'e' || *p == 'E'))
		p = take_exponent(p + 1, end, &parts->exponent, wrong);
	return p;
}

/* Copies up to `room` significant digits to out, without point and leading zeros; *dropped tells how many
 * digits follow those, *sticky whether one of them is not 0. Returns the count copied. */
static size_t copy_digits(const struct parts *parts, char *out, size_t room, int64_t *dropped, bool *sticky)
{
	size_t count = 0;
	*dropped = 0;
	*sticky = false;
	for (const char *p = parts->digits; p < parts->digits_end; p++) {
		if (*p == '.' || (count == 0 && *p == '0'))
			continue;
		if (count < room) {
			out[count++] = *p;
		} else {
			++*dropped;
			*sticky |= *p != '0';
		}
	}
	return count;
}

static float float_from_bits(uint32_t bits)
{
	float value;
	memcpy(&value, &bits, sizeof value);
	return value;
}

/* The magnitude by strtof, which is given an integer and an exponent: no locale's decimal point. */
static float scan_exactly(const struct parts *parts)
{
	char text[EXACT_DIGITS + 32];
	int64_t dropped;
	bool sticky;
	size_t count = copy_digits(parts, text, EXACT_DIGITS, &dropped, &sticky);
	int64_t exponent = parts->exponent + dropped;
	if (sticky) {
		text[count++] = '1';
		exponent--;
	}
	snprintf(text + count, sizeof text - count, "e%lld", (long long)exponent);
	return strtof(text, NULL);
}

/* Bits of the float32 nearest to word * 10^q (word + 1 at most when more digits were cut off), word not 0,
 * infinity when it is beyond; false when they cannot be told. */
static inline bool round_product(uint64_t word, int q, bool cut, uint32_t *bits)
{
	int zeros = __builtin_clzll(word);
	unsigned __int128 product = (unsigned __int128)(word << zeros) * number_power(q);
	uint64_t high = (uint64_t)(product >> 64);
	/* The true product is high * 2^unit, or more by less than `slack` times 2^unit: one for the rest of
	 * the product, one for the rest of the power, 2^zeros (19 digits leave 4 zeros) for the digits cut
	 * off. */
	bool exact = number_power_is_exact(q) && !cut;
	uint64_t slack = exact ? 0 : cut ? 20 : 2;
	int unit = number_power_log2(q) + 1 - zeros;
	int drop = 64 - __builtin_clzll(high) - 24;
	if (drop < -149 - unit)
		drop = -149 - unit; /* subnormal */
	if (drop >= 64)
		return false;
	uint64_t half = UINT64_C(1) << (drop - 1);
	uint64_t rest = high & (2 * half - 1);
	if (half - rest <= slack && !exact) /* modulo 2^64: not when rest > half */
		return false;
	uint32_t mantissa = (uint32_t)(high >> drop);
	bool tie = rest == half && (uint64_t)product == 0;
	mantissa += tie ? mantissa & 1 : rest >= half;
	/* The mantissa's leading bit adds one to the exponent, and so does a carry. */
	int exponent = unit + drop + 149;
	*bits = exponent > 254 ? UINT32_C(0x7f800000) : ((uint32_t)exponent << 23) + mantissa;
	return true;
}

/* Bits of the magnitude. */
static inline uint32_t scan_magnitude(const struct parts *parts)
{
	uint64_t word = parts->word;
	int64_t q = parts->exponent;
	bool cut = false;
	if (parts->count > WORD_DIGITS) {
		char digits[WORD_DIGITS];
		int64_t dropped;
		size_t count = copy_digits(parts, digits, WORD_DIGITS, &dropped, &cut);
		word = 0;
		take_digits(digits, digits + count, &word);
		q += dropped;
	}
	if (word == 0 || q < NUMBER_POWER_MIN)
		return 0;
	uint32_t bits;
	if (q > 38)
		return UINT32_C(0x7f800000);
	if (round_product(word, (int)q, cut, &bits))
		return bits;
	float value = scan_exactly(parts);
	memcpy(&bits, &value, sizeof bits);
	return bits;
}

enum number_result number_scan(const char *text, const char *end, float *value, const char **after)
{
	struct parts parts;
	const char *p = take_parts(text, end, &parts, after);
	if (p == NULL)
		return NUMBER_SYNTAX;
	*after = p;
	uint32_t bits = scan_magnitude(&parts);
	if (bits >= UINT32_C(0x7f800000))
		return NUMBER_BEYOND_FLOAT32;
	*value = float_from_bits(bits | (uint32_t)parts.negative << 31);
	return NUMBER_OK;
}
