/*
 * Shortest digits are found as in R. Giulietti, "The Schubfach way to render doubles" (2020), for float32:
 * the ends of the interval that rounds to the value are scaled by a power of ten so that it holds one or a
 * few integers, each end rounded to odd so that comparisons are exact.
 */
#include "codec/numbers.h"
#include "codec/numbers_powers.h"

#include <assert.h>
#include <endian.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MAX_DIGITS 9

/* digits * 10^exponent, digits at most 9 of them and not 0. */
struct decimal {
	uint32_t digits;
	int exponent;
};

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

	/* One digit less when just one multiple of ten lies within, else the closer integer within. No
	 * branches: which case it is differs from number to number. */
	uint32_t s = middle / 4, tens = s / 10;
	bool tens_up = 40 * tens + 40 <= high;
	bool shorter = s >= 10 && (low <= 40 * tens) != tens_up;
	bool up = 4 * s + 4 <= high;
	uint32_t half = 4 * s + 2;
	bool closer_up = middle + (s & 1) > half; /* a tie to even */
	up = (low <= 4 * s) != up ? up : closer_up;
	uint32_t mask = -(uint32_t)shorter;
	return (struct decimal){((tens + tens_up) & mask) | ((s + up) & ~mask), k + shorter};
}

static const uint32_t powers_of_ten[MAX_DIGITS + 1] = {1,      10,      100,      1000,      10000,
                                                       100000, 1000000, 10000000, 100000000, 1000000000};

static inline int count_digits(uint32_t number)
{
	int guess = ((32 - __builtin_clz(number)) * 1233) >> 12; /* bits times log10(2) */
	return guess + (number >= powers_of_ten[guess]);
}

/* Eight digits as text, the first in the lowest byte. */
static inline uint64_t eight_digits(uint32_t number)
{
	uint64_t v = number / 10000 | (uint64_t)(number % 10000) << 32; /* two fours of digits, */
	uint64_t hundreds = (v * 10486 >> 20) & UINT64_C(0x0000007f0000007f);
	v = hundreds | (v - 100 * hundreds) << 16; /* four pairs, */
	uint64_t tens = (v * 103 >> 10) & UINT64_C(0x000f000f000f000f);
	return (tens | (v - 10 * tens) << 8) + UINT64_C(0x3030303030303030); /* eight digits */
}

static inline void put_eight(char *out, uint64_t text)
{
	text = htole64(text);
	memcpy(out, &text, sizeof text);
}

/* The nine digits of a number, zeros behind included. */
struct nine {
	char first;
	uint64_t others;
};

/* d.ddde-xx */
static char *put_scientific(char *out, struct nine nine, int count, int exponent)
{
	out[0] = nine.first;
	out[1] = '.';
	put_eight(out + 2, nine.others);
	out += count > 1 ? count + 1 : 1;
	*out++ = 'e';
	if (exponent < 0)
		*out++ = '-';
	int magnitude = exponent < 0 ? -exponent : exponent;
	if (magnitude >= 10)
		*out++ = (char)('0' + magnitude / 10);
	*out++ = (char)('0' + magnitude % 10);
	return out;
}

/* dd.dddd, `before` digits (1 to 8) before the point. */
static inline void put_around_point(char *out, struct nine nine, int before)
{
	int bits = 8 * (before - 1);
	uint64_t mask = (UINT64_C(1) << bits) - 1;
	out[0] = nine.first;
	put_eight(out + 1, (nine.others & mask) | (uint64_t)'.' << bits | (nine.others & ~mask) << 8);
	out[9] = (char)(nine.others >> 56);
}

static inline struct decimal drop_zeros(struct decimal decimal)
{
	if (decimal.digits % 10000 == 0) /* a number of few digits has many zeros */
		decimal = (struct decimal){decimal.digits / 10000, decimal.exponent + 4};
	while (decimal.digits % 10 == 0)
		decimal = (struct decimal){decimal.digits / 10, decimal.exponent + 1};
	return decimal;
}

/* Plain or scientific, whichever is shorter; plain when they are as long. Writes whole words, some of whose
 * bytes the next number overwrites: 14 bytes at most. */
static inline char *put_decimal(char *out, struct decimal decimal)
{
	decimal = drop_zeros(decimal);
	int count = count_digits(decimal.digits);
	uint32_t scaled = decimal.digits * powers_of_ten[MAX_DIGITS - count];
	struct nine nine = {(char)('0' + scaled / 100000000), eight_digits(scaled % 100000000)};
	int point = count + decimal.exponent; /* place of the point, counted from the first digit */
	int leading = point - 1;              /* exponent of the first digit */
	int scientific = count + (count > 1) + 1 + (leading < 0) + (leading <= -10 || leading >= 10 ? 2 : 1);
	int plain = decimal.exponent >= 0 ? point : point > 0 ? count + 1 : count + 2 - point;
	if (scientific < plain)
		return put_scientific(out, nine, count, leading);
	if (point <= 0) { /* -2 at least: scientific text is shorter than three zeros */
		memcpy(out, "0.00", 4);
		out[2 - point] = nine.first;
		put_eight(out + 3 - point, nine.others);
	} else if (decimal.exponent >= 0) {
		out[0] = nine.first;
		put_eight(out + 1, nine.others);
		memcpy(out + MAX_DIGITS, "0000", 4); /* 12 digits at most */
	} else {
		put_around_point(out, nine, point);
	}
	return out + plain;
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
	*p = '-';
	p += bits >> 31;
	uint32_t fraction = bits & 0x7fffff;
	int biased = (int)(bits >> 23 & 0xff);
	float magnitude = fabsf(value);
	if (magnitude < 16777216.0f && (float)(uint32_t)magnitude == magnitude) {
		if (magnitude == 0) {
			*p = '0';
			return (size_t)(p + 1 - out);
		}
		p = put_decimal(p, (struct decimal){(uint32_t)magnitude, 0});
	} else if (biased == 0) {
		p = put_decimal(p, shortest_decimal(fraction, -149, false));
	} else {
		bool uneven = fraction == 0 && biased > 1;
		p = put_decimal(p, shortest_decimal(fraction | 0x800000, biased - 150, uneven));
	}
	return (size_t)(p - out);
}

/* The value to `digits` significant digits, by the C library; its decimal point, if any, is passed over. */
static struct decimal round_exactly(float magnitude, int digits)
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

/* The exponent of the first digit of a float32 that is not 0, or one less where the value is next to a power
 * of ten. */
static int leading_exponent(float magnitude)
{
	int log2;
	(void)frexpf(magnitude, &log2);
	int guess = ((log2 - 1) * 315653) >> 20; /* log10(2) */
	return guess + (magnitude >= number_power_double(guess + 1));
}

/* The product is off by less than 2^-21: it stays below 2^30 and a float64 has 53 bits. */
#define DOUBTFUL 0x1p-20

static struct decimal round_decimal(float magnitude, int digits)
{
	int leading = leading_exponent(magnitude);
	double scaled = magnitude * number_power_double(digits - 1 - leading);
	uint32_t whole = (uint32_t)scaled;
	double rest = scaled - whole;
	if (fabs(rest - 0.5) < DOUBTFUL)
		return round_exactly(magnitude, digits);
	return (struct decimal){whole + (rest > 0.5), leading - (digits - 1)};
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
		p = put_decimal(p, round_decimal(fabsf(value), digits));
	return (size_t)(p - out);
}
