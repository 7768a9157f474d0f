/*
 * numbers_layouts.h - how the digits of a printed number become its text, by their count and the exponent of
 * the first: plain or scientific, whichever is shorter, plain when they are as long.
 *
 * Constant data; any thread.
 */
#ifndef ATTND_CODEC_NUMBERS_LAYOUTS_H
#define ATTND_CODEC_NUMBERS_LAYOUTS_H

#include <stdint.h>

/* Of float32: the least is 1.4e-45, the greatest 3.4028235e38. */
#define NUMBER_LEADING_MIN (-45)
#define NUMBER_LEADING_MAX 38

/* Digits stand before the point of plain text, from -2 (0.00d) to 13. */
#define NUMBER_POINT_MIN (-2)
#define NUMBER_POINT_MAX 13

/* From the lowest byte: digits before the point, less NUMBER_POINT_MIN (of scientific text 1); bytes of the
 * digits, the point and the zeros among them; bytes of these and the suffix; which suffix. The row of leading
 * exponent e and n digits is number (e - NUMBER_LEADING_MIN) * 9 + n - 1. */
extern const uint32_t number_layouts[(NUMBER_LEADING_MAX - NUMBER_LEADING_MIN + 1) * 9];

/* What follows the digits, a comma included; not terminated. */
extern const char number_suffixes[NUMBER_LEADING_MAX - NUMBER_LEADING_MIN + 2][8];

#endif
