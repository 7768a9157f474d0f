/*
 * Shortest digits are found as in R. Giulietti, "The Schubfach way to render doubles" (2020), for float32:
 * the ends of the interval that rounds to the value are scaled by a power of ten so that it holds one or a
 * few integers, each end rounded to odd so that comparisons are exact.
 */
#include "codec/numbers.h"
#include "codec/numbers_powers.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MAX_DIGITS 9

/* digits * 10^exponent, digits at most 9 of them and not 0. */
struct decimal {
	uint32_t digits;
	int exponent;
};

static const char digit_pairs[200] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
    "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
    "8081828384858687888990919293949596979899";

/* floor(power * factor / 2^64), its last bit set when anything was cut off. */
static inline uint32_t scale_to_odd(uint64_t power, uint32_t factor)
{
	unsigned __int128 product = (unsigned __int128)power * factor;
	uint32_t rest = (uint32_t)((uint64_t)product >> 32);
	return (uint32_t)(product >> 64) | (rest > 1);
}

/* The shortest decimal that rounds to mantissa * 2^exponent, closest to it; `uneven` says that the float
 * below is half as far as the one above. */
static inline struct decimal shortest_decimal(uint32_t mantissa, int exponent, bool uneven)
{
	/* floor(log10(2^exponent)), or of 3/4 of it: the width of the interval. */
	int k = (exponent * 1262611 - (uneven ? 524031 : 0)) >> 22;
	int shift = exponent + number_power_log2(-k) + 1;
	uint64_t power = number_power(-k) + !number_power_is_exact(-k);
	uint32_t odd = mantissa & 1; /* the ends of the interval belong to it when the mantissa is even */
	uint32_t low = scale_to_odd(power, (4 * mantissa - 2 + uneven) << shift) + odd;
	uint32_t middle = scale_to_odd(power, (4 * mantissa) << shift);
	uint32_t high = scale_to_odd(power, (4 * mantissa + 2) << shift) - odd;

	uint32_t s = middle / 4;
	if (s >= 10) {
		uint32_t tens = s / 10;
		bool down = low <= 40 * tens;
		bool up = 40 * tens + 40 <= high;
		if (down != up)
			return (struct decimal){tens + up, k + 1};
	}
	bool down = low <= 4 * s;
	bool up = 4 * s + 4 <= high;
	if (down == up) {
		uint32_t half = 4 * s + 2;
		up = middle > half || (middle == half && (s & 1) != 0);
	}
	return (struct decimal){s + up, k};
}

/* Writes exactly `count` digits of number. */
static inline void put_digits(char *out, uint32_t number, int count)
{
	for (; count >= 2; number /= 100)
		memcpy(out + (count -= 2), digit_pairs + 2 * (number % 100), 2);
	if (count == 1)
		out[0] = (char)('0' + number);
}

static inline int count_digits(uint32_t number)
{
	int count = 1;
	for (uint32_t power = 10; count < MAX_DIGITS && number >= power; power *= 10)
		count++;
	return count;
}

static char *put_zeros(char *out, int count)
{
	memset(out, '0', (size_t)count);
	return out + count;
}

/* d.ddde-xx */
static char *put_scientific(char *out, uint32_t digits, int count, int exponent)
{
	put_digits(out + 1, digits, count);
	out[0] = out[1];
	out[1] = '.';
	out += count > 1 ? count + 1 : 1;
	*out++ = 'e';
	if (exponent < 0)
		*out++ = '-';
	uint32_t magnitude = (uint32_t)(exponent < 0 ? -exponent : exponent);
	int width = magnitude < 10 ? 1 : 2;
	put_digits(out, magnitude, width);
	return out + width;
}

/* Plain or scientific, whichever is shorter; plain when they are as long. */
static inline char *put_decimal(char *out, struct decimal decimal)
{
	while (decimal.digits % 10 == 0) {
		decimal.digits /= 10;
		decimal.exponent++;
	}
	int count = count_digits(decimal.digits);
	int point = count + decimal.exponent; /* place of the point, counted from the first digit */
	int leading = point - 1;              /* exponent of the first digit */
	int scientific = count + (count > 1) + 1 + (leading < 0) + (leading <= -10 || leading >= 10 ? 2 : 1);
	int plain = decimal.exponent >= 0 ? point : point > 0 ? count + 1 : count + 2 - point;
	if (scientific < plain)
		return put_scientific(out, decimal.digits, count, leading);
	if (decimal.exponent >= 0) {
		put_digits(out, decimal.digits, count);
		return put_zeros(out + count, decimal.exponent);
	}
	if (point <= 0) {
		out = put_zeros(out, 2 - point);
		out[point - 1] = '.';
		put_digits(out, decimal.digits, count);
		return out + count;
	}
	put_digits(out + 1, decimal.digits, count);
	memmove(out, out + 1, (size_t)point);
	out[point] = '.';
	return out + count + 1;
}

static inline uint32_t bits_of(float value)
{
	uint32_t bits;
	memcpy(&bits, &value, sizeof bits);
	assert((bits & 0x7fffffff) < 0x7f800000);
	return bits;
}

size_t number_print_shortest(float value, char *out)
{
	uint32_t bits = bits_of(value);
	char *p = out;
	if (bits >> 31)
		*p++ = '-';
	uint32_t fraction = bits & 0x7fffff;
	int biased = (int)(bits >> 23 & 0xff);
	if (biased == 0 && fraction == 0) {
		*p++ = '0';
	} else if (biased == 0) {
		p = put_decimal(p, shortest_decimal(fraction, -149, false));
	} else {
		bool uneven = fraction == 0 && biased > 1;
		p = put_decimal(p, shortest_decimal(fraction | 0x800000, biased - 150, uneven));
	}
	return (size_t)(p - out);
}

/* The value to `digits` significant digits, by the C library; its decimal point, if any, is passed over. */
static struct decimal round_decimal(float magnitude, int digits)
{
	char text[MAX_DIGITS + 24];
	snprintf(text, sizeof text, "%.*e", digits - 1, (double)magnitude);
	struct decimal decimal = {0, 1 - digits};
	const char *p = text;
	for (; *p != 'e'; p++)
		if (*p >= '0' && *p <= '9')
			decimal.digits = 10 * decimal.digits + (uint32_t)(*p - '0');
	int exponent = 10 * (p[2] - '0') + (p[3] - '0');
	decimal.exponent += p[1] == '-' ? -exponent : exponent;
	return decimal;
}

size_t number_print_digits(float value, int digits, char *out)
{
	assert(digits >= 1 && digits <= MAX_DIGITS);
	uint32_t bits = bits_of(value);
	char *p = out;
	if (bits >> 31)
		*p++ = '-';
	if (bits << 1 == 0)
		*p++ = '0';
	else
		p = put_decimal(p, round_decimal(value < 0 ? -value : value, digits));
	return (size_t)(p - out);
}
