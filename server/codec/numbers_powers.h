/*
 * numbers_powers.h - powers of ten to 64 bits, for the scanner and the printer of numbers.h.
 *
 * Constant data; any thread.
 */
#ifndef ATTND_CODEC_NUMBERS_POWERS_H
#define ATTND_CODEC_NUMBERS_POWERS_H

#include <stdbool.h>
#include <stdint.h>

/* Below 10^NUMBER_POWER_MIN times 19 digits nothing rounds to a float32 but 0; the printer needs 10^45. */
#define NUMBER_POWER_MIN (-64)
#define NUMBER_POWER_MAX 45

/* Entry k - NUMBER_POWER_MIN holds the leading 64 bits of 10^k, rounded down, the first of them set:
 * 10^k = (entry + fraction) * 2^(number_power_log2(k) - 63) with 0 <= fraction < 1. */
extern const uint64_t number_power_bits[NUMBER_POWER_MAX - NUMBER_POWER_MIN + 1];

/* The same rounded up, for the printer. */
extern const uint64_t number_power_ceilings[NUMBER_POWER_MAX - NUMBER_POWER_MIN + 1];

static inline uint64_t number_power(int k)
{
	return number_power_bits[k - NUMBER_POWER_MIN];
}

/* The same as float64, rounded: the least float32 is over 10^-45, and times 10^(45 + 8) it has nine digits
 * before the point. */
#define NUMBER_DOUBLE_MIN (-45)
#define NUMBER_DOUBLE_MAX 53
extern const double number_power_doubles[NUMBER_DOUBLE_MAX - NUMBER_DOUBLE_MIN + 1];

static inline double number_power_double(int k)
{
	return number_power_doubles[k - NUMBER_DOUBLE_MIN];
}

/* Whether the fraction left out is 0: 5^27 is the last power of five under 2^64. */
static inline bool number_power_is_exact(int k)
{
	return k >= 0 && k <= 27;
}

/* floor(log2(10^k)), for |k| up to 400. */
static inline int number_power_log2(int k)
{
	return (k * 217706) >> 16;
}

#endif
