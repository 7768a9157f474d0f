/*
 * Printing finds the digits of eight numbers at once by the arithmetic of numbers_print.c (Schubfach), which
 * has no branches, brings each to nine digits, and lays them out by one shuffle with the table of
 * numbers_layouts.h. Reading tells the characters of 64 bytes apart, checks the grammar of four numbers on
 * those bits, and turns their digits into float64 w * 10^-d with an error of at most 1.5 units of its last
 * place: unless that is next to a point half way between two float32, rounding it rounds the number.
 */
#include "codec/numbers_avx2.h"

#if defined(__x86_64__)

#include "codec/numbers_layouts.h"
#include "codec/numbers_powers.h"

#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#define AVX2 __attribute__((target("avx2,bmi,popcnt")))
#define INLINE AVX2 static inline __attribute__((always_inline))

/* ---- printing */

/* Eight powers of ten: those of numbers 0 2 4 6, of 1 3 5 7, and their upper halves. */
struct powers {
	__m256i even, odd, even_upper, odd_upper;
};

INLINE __m256i load_powers(const int32_t *index)
{
	const uint64_t *powers = number_power_ceilings;
	return _mm256_setr_epi64x((int64_t)powers[index[0]], (int64_t)powers[index[2]],
	                          (int64_t)powers[index[4]], (int64_t)powers[index[6]]);
}

/* Plain loads: a gather takes longer. */
INLINE struct powers find_powers(__m256i index)
{
	int32_t indices[8];
	_mm256_storeu_si256((__m256i *)indices, index);
	__m256i even = load_powers(indices), odd = load_powers(indices + 1);
	return (struct powers){even, odd, _mm256_srli_epi64(even, 32), _mm256_srli_epi64(odd, 32)};
}

/* power * factor / 2^32: 64 by 32 bits. */
INLINE __m256i multiply(__m256i power, __m256i upper, __m256i factor)
{
	__m256i rest = _mm256_srli_epi64(_mm256_mul_epu32(power, factor), 32);
	return _mm256_add_epi64(_mm256_mul_epu32(upper, factor), rest);
}

/* floor(power * factor / 2^64) of eight, its last bit set when anything was cut off. */
INLINE __m256i scale_to_odd(const struct powers *powers, __m256i factor)
{
	__m256i even = multiply(powers->even, powers->even_upper, factor);
	__m256i odd = multiply(powers->odd, powers->odd_upper, _mm256_srli_epi64(factor, 32));
	__m256i rest = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA);
	__m256i exact = _mm256_cmpeq_epi32(_mm256_srli_epi32(rest, 1), _mm256_setzero_si256());
	__m256i whole = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA);
	return _mm256_or_si256(whole, _mm256_add_epi32(exact, _mm256_set1_epi32(1)));
}

/* floor(n * magic / 2^shift) of eight, shift over 32. */
INLINE __m256i divide(__m256i n, uint32_t magic, int shift)
{
	__m256i factor = _mm256_set1_epi64x((int64_t)magic);
	__m256i even = _mm256_srli_epi64(_mm256_mul_epu32(n, factor), shift);
	__m256i odd = _mm256_srli_epi64(_mm256_mul_epu32(_mm256_srli_epi64(n, 32), factor), shift);
	return _mm256_or_si256(even, _mm256_slli_epi64(odd, 32));
}

struct decimals {
	__m256i digits, exponent;
};

/* As shortest_decimal of numbers_print.c: one digit less where just one multiple of ten lies within, else the
 * closer integer within. low, middle and high have two more bits. */
INLINE struct decimals choose_digits(__m256i low, __m256i middle, __m256i high, __m256i k)
{
	const __m256i one = _mm256_set1_epi32(1), four = _mm256_set1_epi32(4), forty = _mm256_set1_epi32(40);
	__m256i s = _mm256_srli_epi32(middle, 2), s4 = _mm256_slli_epi32(s, 2);
	__m256i tens = divide(s, 0xCCCCCCCD, 35);
	__m256i tens4 = _mm256_mullo_epi32(tens, forty);
	__m256i below = _mm256_cmpgt_epi32(low, tens4);
	__m256i above = _mm256_cmpgt_epi32(_mm256_add_epi32(tens4, forty), high);
	__m256i shorter = _mm256_xor_si256(below, above);
	/* above is 0 where the next multiple is the one within */
	__m256i by_ten = _mm256_add_epi32(tens, _mm256_add_epi32(above, one));

	below = _mm256_cmpgt_epi32(low, s4);
	above = _mm256_cmpgt_epi32(_mm256_add_epi32(s4, four), high);
	__m256i odd = _mm256_and_si256(s, one);
	__m256i half = _mm256_add_epi32(s4, _mm256_set1_epi32(2));
	__m256i closer_up = _mm256_cmpgt_epi32(_mm256_add_epi32(middle, odd), half);
	__m256i only_up = _mm256_xor_si256(above, _mm256_set1_epi32(-1));
	__m256i up = _mm256_blendv_epi8(closer_up, only_up, _mm256_xor_si256(below, above));
	return (struct decimals){_mm256_blendv_epi8(_mm256_sub_epi32(s, up), by_ten, shorter),
	                         _mm256_sub_epi32(k, shorter)};
}

/* Shortest digits of magnitudes' bits, none subnormal; 0 has any. */
INLINE struct decimals shortest_decimals(__m256i magnitude)
{
	const __m256i one = _mm256_set1_epi32(1), hidden = _mm256_set1_epi32(0x800000);
	__m256i biased = _mm256_srli_epi32(magnitude, 23);
	__m256i fraction = _mm256_and_si256(magnitude, _mm256_set1_epi32(0x7fffff));
	__m256i mantissa = _mm256_or_si256(fraction, hidden);
	__m256i exponent = _mm256_sub_epi32(_mm256_max_epi32(biased, one), _mm256_set1_epi32(150));
	/* the float below is half as far as the one above */
	__m256i uneven = _mm256_and_si256(_mm256_cmpeq_epi32(fraction, _mm256_setzero_si256()),
	                                  _mm256_cmpgt_epi32(biased, one));
	__m256i k =
	    _mm256_srai_epi32(_mm256_sub_epi32(_mm256_mullo_epi32(exponent, _mm256_set1_epi32(1262611)),
	                                       _mm256_and_si256(uneven, _mm256_set1_epi32(524031))),
	                      22);
	__m256i index = _mm256_sub_epi32(_mm256_set1_epi32(-NUMBER_POWER_MIN), k);
	__m256i log2 = _mm256_srai_epi32(_mm256_mullo_epi32(k, _mm256_set1_epi32(-217706)), 16);
	__m256i shift = _mm256_add_epi32(_mm256_add_epi32(exponent, log2), one);
	struct powers powers = find_powers(index);

	__m256i odd = _mm256_and_si256(mantissa, one); /* the ends belong to it when the mantissa is even */
	__m256i middle = _mm256_slli_epi32(mantissa, 2), two = _mm256_set1_epi32(2);
	__m256i low = _mm256_sub_epi32(_mm256_sub_epi32(middle, two), uneven);
	__m256i high = _mm256_add_epi32(middle, two);
	low = _mm256_add_epi32(scale_to_odd(&powers, _mm256_sllv_epi32(low, shift)), odd);
	high = _mm256_sub_epi32(scale_to_odd(&powers, _mm256_sllv_epi32(high, shift)), odd);
	middle = scale_to_odd(&powers, _mm256_sllv_epi32(middle, shift));
	return choose_digits(low, middle, high, k);
}

/* Six to nine digits become nine. */
INLINE struct decimals fill_nine(struct decimals decimals)
{
	const __m256i enough = _mm256_set1_epi32(100000000);
	for (int i = 0; i < 3; i++) {
		__m256i few = _mm256_cmpgt_epi32(enough, decimals.digits);
		__m256i tenfold = _mm256_mullo_epi32(decimals.digits, _mm256_set1_epi32(10));
		decimals.digits = _mm256_blendv_epi8(decimals.digits, tenfold, few);
		decimals.exponent = _mm256_add_epi32(decimals.exponent, few);
	}
	return decimals;
}

/* What a number is laid out from: its last eight digits as text, the last one first; then its first digit,
 * '.' and '0'. */
struct nine_digits {
	uint64_t others;
	char first, point, zero, rest[5];
};

/* Four numbers below 10^9 in 64 bits each, for out[0], out[2], out[4] and out[6]. */
INLINE void put_digits(__m256i number, struct nine_digits out[7])
{
	const __m256i eight = _mm256_set1_epi64x(100000000), four = _mm256_set1_epi64x(10000);
	__m256i first = _mm256_srli_epi64(_mm256_mul_epu32(number, _mm256_set1_epi64x(0x55E63B89)), 57);
	number = _mm256_sub_epi64(number, _mm256_mul_epu32(first, eight));
	__m256i upper = _mm256_srli_epi64(_mm256_mul_epu32(number, _mm256_set1_epi64x(0xD1B71759)), 45);
	__m256i v = _mm256_sub_epi64(number, _mm256_mul_epu32(upper, four));
	v = _mm256_or_si256(v, _mm256_slli_epi64(upper, 32)); /* two fours of digits, */
	__m256i hundreds = _mm256_srli_epi16(_mm256_mulhi_epu16(v, _mm256_set1_epi16(5243)), 3);
	v = _mm256_sub_epi16(v, _mm256_mullo_epi16(hundreds, _mm256_set1_epi16(100)));
	v = _mm256_or_si256(v, _mm256_slli_epi32(hundreds, 16)); /* four pairs, */
	__m256i tens = _mm256_srli_epi16(_mm256_mullo_epi16(v, _mm256_set1_epi16(103)), 10);
	v = _mm256_sub_epi16(v, _mm256_mullo_epi16(tens, _mm256_set1_epi16(10)));
	v = _mm256_or_si256(v, _mm256_slli_epi16(tens, 8)); /* eight digits */
	v = _mm256_or_si256(v, _mm256_set1_epi8('0'));
	first = _mm256_add_epi64(first, _mm256_set1_epi64x('0' | '.' << 8 | '0' << 16));
	__m256i here = _mm256_unpacklo_epi64(v, first), there = _mm256_unpackhi_epi64(v, first);
	_mm_storeu_si128((__m128i *)&out[0], _mm256_castsi256_si128(here));
	_mm_storeu_si128((__m128i *)&out[2], _mm256_castsi256_si128(there));
	_mm_storeu_si128((__m128i *)&out[4], _mm256_extracti128_si256(here, 1));
	_mm_storeu_si128((__m128i *)&out[6], _mm256_extracti128_si256(there, 1));
}

/* Places in struct nine_digits. */
#define D1 8
#define POINT 9
#define ZERO 10
#define D2_TO_9 7, 6, 5, 4, 3, 2, 1, 0

/* By the point of a layout: which byte of struct nine_digits stands where. */
static const uint8_t layout_shuffles[NUMBER_POINT_MAX - NUMBER_POINT_MIN + 1][16] = {
    {ZERO, POINT, ZERO, ZERO, D1, D2_TO_9, ZERO, ZERO, ZERO},
    {ZERO, POINT, ZERO, D1, D2_TO_9, ZERO, ZERO, ZERO, ZERO},
    {ZERO, POINT, D1, D2_TO_9, ZERO, ZERO, ZERO, ZERO, ZERO},
    {D1, POINT, D2_TO_9, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO},
    {D1, 7, POINT, 6, 5, 4, 3, 2, 1, 0, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO},
    {D1, 7, 6, POINT, 5, 4, 3, 2, 1, 0, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO},
    {D1, 7, 6, 5, POINT, 4, 3, 2, 1, 0, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO},
    {D1, 7, 6, 5, 4, POINT, 3, 2, 1, 0, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO},
    {D1, 7, 6, 5, 4, 3, POINT, 2, 1, 0, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO},
    {D1, 7, 6, 5, 4, 3, 2, POINT, 1, 0, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO},
    {D1, 7, 6, 5, 4, 3, 2, 1, POINT, 0, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO},
    {D1, D2_TO_9, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO},
    {D1, D2_TO_9, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO},
    {D1, D2_TO_9, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO},
    {D1, D2_TO_9, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO},
    {D1, D2_TO_9, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO},
};

/* Writes one number and its comma; base is the row of its leading exponent in number_layouts. */
INLINE char *put_number(char *out, const struct nine_digits *digits, uint32_t sign, int32_t base)
{
	uint64_t zeros_behind = _tzcnt_u64(digits->others ^ UINT64_C(0x3030303030303030)) / 8;
	uint32_t layout = number_layouts[base + 8 - (int32_t)zeros_behind];
	__m128i shuffle = _mm_loadu_si128((const __m128i *)layout_shuffles[layout & 0xff]);
	*out = '-';
	out += sign;
	_mm_storeu_si128((__m128i *)out, _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)digits), shuffle));
	memcpy(out + (layout >> 8 & 0xff), number_suffixes[layout >> 24], 8);
	return out + (layout >> 16 & 0xff);
}

AVX2 static char *print_eight(const float values[NUMBERS_PRINTED], size_t count, char *out)
{
	struct nine_digits digits[NUMBERS_PRINTED];
	uint32_t bits[NUMBERS_PRINTED];
	int32_t bases[NUMBERS_PRINTED];
	__m256i raw = _mm256_loadu_si256((const __m256i *)values);
	__m256i magnitude = _mm256_and_si256(raw, _mm256_set1_epi32(0x7fffffff));
	__m256i zero = _mm256_cmpeq_epi32(magnitude, _mm256_setzero_si256());
	__m256i normal = _mm256_and_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(0x7f800000), magnitude),
	                                  _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7fffff)));
	if (_mm256_movemask_epi8(_mm256_or_si256(zero, normal)) != -1)
		return NULL;

	struct decimals nine = fill_nine(shortest_decimals(magnitude));
	nine.digits = _mm256_andnot_si256(zero, nine.digits);
	/* The first digit's exponent is 8 more than the last one's; that of 0 is 0. */
	__m256i leading = _mm256_andnot_si256(zero, _mm256_add_epi32(nine.exponent, _mm256_set1_epi32(8)));
	leading = _mm256_sub_epi32(leading, _mm256_set1_epi32(NUMBER_LEADING_MIN));
	_mm256_storeu_si256((__m256i *)bases, _mm256_mullo_epi32(leading, _mm256_set1_epi32(9)));
	_mm256_storeu_si256((__m256i *)bits, raw);
	put_digits(_mm256_and_si256(nine.digits, _mm256_set1_epi64x(0xffffffff)), digits);
	put_digits(_mm256_srli_epi64(nine.digits, 32), digits + 1);
	for (size_t i = 0; i < count; i++)
		out = put_number(out, &digits[i], bits[i] >> 31, bases[i]);
	return out;
}

/* ---- reading */

/* Numbers read at once, from NUMBERS_BLOCK bytes: four, or where they are too long for that two. */
#define GROUP 4
#define SMALL_GROUP 2
#define MOST_DIGITS 15 /* that count, of a number: below 2^53; digits behind them are left out */
#define REACH 16       /* readable bytes before the first number: digits are loaded with what precedes them */
/* Units of float64's last place by which a product may be off; and by which it is too small where digits of a
 * word that is not below LONG_WORD were left out, 2^53 / LONG_WORD. */
#define DOUBT 4
#define LONG_WORD 0x1p33
#define DOUBT_OF_LONG (1 << 20)

/* Which of 64 bytes are what, the first in the lowest bit. */
struct marks {
	uint64_t digit, comma, space, minus, point;
};

INLINE uint64_t mark_equal(__m256i first, __m256i second, char c)
{
	__m256i wanted = _mm256_set1_epi8(c);
	uint32_t low = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(first, wanted));
	uint32_t high = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(second, wanted));
	return (uint64_t)high << 32 | low;
}

INLINE __m256i are_digits(__m256i bytes)
{
	__m256i value = _mm256_sub_epi8(bytes, _mm256_set1_epi8('0'));
	return _mm256_cmpeq_epi8(_mm256_min_epu8(value, _mm256_set1_epi8(9)), value);
}

INLINE struct marks mark_block(const char *at)
{
	__m256i first = _mm256_loadu_si256((const __m256i *)at);
	__m256i second = _mm256_loadu_si256((const __m256i *)(at + 32));
	uint32_t low = (uint32_t)_mm256_movemask_epi8(are_digits(first));
	uint32_t high = (uint32_t)_mm256_movemask_epi8(are_digits(second));
	return (struct marks){.digit = (uint64_t)high << 32 | low,
	                      .comma = mark_equal(first, second, ','),
	                      .space = mark_equal(first, second, ' '),
	                      .minus = mark_equal(first, second, '-'),
	                      .point = mark_equal(first, second, '.')};
}

/* One number of a group: where the digits that count end, in bytes from the block. */
struct place {
	uint32_t end, digits, decimals; /* decimals of the digits stand behind the point */
	bool negative, has_point;
};

struct group {
	struct place places[GROUP];
	uint32_t end; /* of the last number's text */
	bool is_long; /* digits are left out */
};

/* Whether up to the last of `within` there is nothing but numbers of the grammar without exponents, with a
 * comma after each and perhaps a space; leading zeros are not looked for. */
INLINE bool is_plain(const struct marks *marks, uint64_t within)
{
	uint64_t behind = marks->comma << 1, spaces = marks->space & behind;
	uint64_t starts = (1 | (behind & ~spaces) | spaces << 1) & within;
	uint64_t signs = starts & marks->minus, digits = marks->digit;
	uint64_t must_be_digits = (starts ^ signs) | signs << 1 | marks->point << 1 | marks->point >> 1;
	uint64_t known = digits | marks->comma | signs | marks->point | spaces;
	return ((must_be_digits & ~digits) | (~known & within)) == 0;
}

/* Leaves out the digits behind those that count; false when one of them stands before a point. */
INLINE bool shorten(struct place *places)
{
	bool behind = true;
	for (int i = 0; i < GROUP; i++) {
		struct place *place = &places[i];
		uint32_t more = place->digits > MOST_DIGITS ? place->digits - MOST_DIGITS : 0;
		behind &= more == 0 || more < place->decimals;
		place->end -= more;
		place->decimals -= more;
		place->digits -= more;
	}
	return behind;
}

/* Finds the plain numbers within, of which there are `size`; false when one has leading zeros or two points,
 * or too many digits before its point. */
INLINE bool find_group(const char *at, const struct marks *marks, uint64_t within, int size,
                       struct group *group)
{
	uint64_t left = marks->comma, points = marks->point;
	uint32_t start = 0, wrong = 0, most = 0;
	for (int i = 0; i < size; i++) {
		struct place *place = &group->places[i];
		uint32_t end = (uint32_t)_tzcnt_u64(left);
		uint32_t point = (uint32_t)_tzcnt_u64(points);
		place->end = end;
		place->has_point = point < end;
		place->negative = at[start] == '-';
		point = place->has_point ? point : end;
		points = place->has_point ? points & (points - 1) : points;
		uint32_t first = start + place->negative, whole = point - first;
		place->decimals = end - point - place->has_point;
		place->digits = whole + place->decimals;
		wrong |= (point < first) | ((whole > 1) & (at[first] == '0'));
		most |= place->digits + (31 - MOST_DIGITS); /* over 31 when one has too many */
		group->end = end;
		start = end + 1 + (uint32_t)(marks->space >> end >> 1 & 1);
		left &= left - 1;
	}
	for (int i = size; i < GROUP; i++)
		group->places[i] = group->places[0];
	group->is_long = most > 31;
	/* A second point of a number is left for the next, where it stands too early, or at the end. */
	return wrong == 0 && (points & within) == 0 && (!group->is_long || shorten(group->places));
}

/* The last n of 16 bytes, 0 <= n <= 16. */
INLINE __m128i last_bytes(uint32_t n)
{
	static const uint8_t mask[32] = {[16] = 255, 255, 255, 255, 255, 255, 255, 255,
	                                 255,        255, 255, 255, 255, 255, 255, 255};
	return _mm_loadu_si128((const __m128i *)(mask + n));
}

/* The digits of a number as four integers of four digits each, 32 bits wide. */
INLINE __m128i fours_of_digits(const char *block, const struct place *place)
{
	const __m128i pairs = _mm_set1_epi16(1 << 8 | 10), fours = _mm_set1_epi32(1 << 16 | 100);
	const char *end = block + place->end;
	__m128i behind = _mm_loadu_si128((const __m128i *)(end - 16)); /* the point */
	__m128i before = _mm_loadu_si128((const __m128i *)(end - 17)); /* moved over it */
	__m128i text = _mm_blendv_epi8(before, behind, last_bytes(place->has_point ? place->decimals : 16));
	__m128i digits = _mm_and_si128(_mm_sub_epi8(text, _mm_set1_epi8('0')), last_bytes(place->digits));
	return _mm_madd_epi16(_mm_maddubs_epi16(digits, pairs), fours);
}

/* 10^-d, and the same below 0. */
#define SCALES(sign)                                                                                         \
	{                                                                                                    \
		sign 1, sign 1e-1, sign 1e-2, sign 1e-3, sign 1e-4, sign 1e-5, sign 1e-6, sign 1e-7,         \
		    sign 1e-8, sign 1e-9, sign 1e-10, sign 1e-11, sign 1e-12, sign 1e-13, sign 1e-14,        \
		    sign 1e-15                                                                               \
	}
static const double scales[2][MOST_DIGITS + 1] = {SCALES(+), SCALES(-)};

INLINE double scale_of(const struct place *place)
{
	return scales[place->negative][place->decimals];
}

/* The digits of four numbers as integers, in float64. */
INLINE __m256d words_of(const char *block, const struct place *places)
{
	const __m128i eights = _mm_set1_epi32(1 << 16 | 10000);
	__m128i first =
	    _mm_packus_epi32(fours_of_digits(block, &places[0]), fours_of_digits(block, &places[1]));
	__m128i second =
	    _mm_packus_epi32(fours_of_digits(block, &places[2]), fours_of_digits(block, &places[3]));
	__m128 halves = _mm_castsi128_ps(_mm_madd_epi16(first, eights));
	__m128 others = _mm_castsi128_ps(_mm_madd_epi16(second, eights));
	__m128i upper = _mm_castps_si128(_mm_shuffle_ps(halves, others, 0x88));
	__m128i lower = _mm_castps_si128(_mm_shuffle_ps(halves, others, 0xDD));
	return _mm256_add_pd(_mm256_mul_pd(_mm256_cvtepi32_pd(upper), _mm256_set1_pd(1e8)),
	                     _mm256_cvtepi32_pd(lower));
}

/* Whether one of the float64 is so near to a point half way between two float32 that the number may lie on
 * its other side: float64 has 29 bits more, and that point is the middle of those. */
INLINE bool are_doubtful(__m256d values, int below)
{
	__m256i off = _mm256_sub_epi32(_mm256_castpd_si256(values), _mm256_set1_epi32((1 << 28) - below));
	off = _mm256_and_si256(off, _mm256_set1_epi32((1 << 29) - 1));
	__m256i near = _mm256_cmpgt_epi32(_mm256_set1_epi32(below + DOUBT + 1), off);
	return (_mm256_movemask_epi8(near) & 0x0F0F0F0F) != 0;
}

/* The numbers of a group; false when rounding one is not certain. */
INLINE bool convert_group(const char *block, const struct group *group, __m128 *out)
{
	const struct place *places = group->places;
	__m256d words = words_of(block, places);
	__m256d values = _mm256_mul_pd(words, _mm256_setr_pd(scale_of(&places[0]), scale_of(&places[1]),
	                                                     scale_of(&places[2]), scale_of(&places[3])));
	*out = _mm256_cvtpd_ps(values);
	if (!group->is_long)
		return !are_doubtful(values, DOUBT);
	__m256d small = _mm256_cmp_pd(words, _mm256_set1_pd(LONG_WORD), _CMP_LT_OQ);
	return _mm256_movemask_pd(small) == 0 && !are_doubtful(values, DOUBT_OF_LONG + DOUBT);
}

/* All bits up to the comma behind the last of `size` numbers, or 0 when it is further off. */
INLINE uint64_t group_extent(uint64_t commas, int size)
{
	for (int i = 0; i + 1 < size; i++)
		commas &= commas - 1;
	return commas == 0 ? 0 : commas ^ (commas - 1);
}

/* Reads `size` numbers; the end of the last, or NULL when it cannot. */
INLINE const char *scan_group(const char *at, const struct marks *marks, uint64_t within, int size,
                              __m128 *out)
{
	struct group group;
	bool read = is_plain(marks, within) && find_group(at, marks, within, size, &group) &&
	            convert_group(at, &group, out);
	return read ? at + group.end : NULL;
}

AVX2 static size_t scan_groups(const char **at, size_t before, const char *end, float *out, size_t count)
{
	const char *p = *at;
	size_t taken = 0;
	if (before < REACH)
		return 0;
	while (count - taken >= GROUP && end - p >= NUMBERS_BLOCK) {
		struct marks marks = mark_block(p);
		uint64_t four = group_extent(marks.comma, GROUP),
		         two = group_extent(marks.comma, SMALL_GROUP);
		__m128 numbers;
		const char *behind = four != 0  ? scan_group(p, &marks, four, GROUP, &numbers)
		                     : two != 0 ? scan_group(p, &marks, two, SMALL_GROUP, &numbers)
		                                : NULL;
		if (behind == NULL)
			break;
		_mm_storeu_ps(out + taken, numbers);
		taken += four != 0 ? GROUP : SMALL_GROUP;
		*at = behind;
		p = behind + 1;
		p += *p == ' ';
	}
	return taken;
}

/* ---- marks */

INLINE uint64_t mark_brackets(__m256i first, __m256i second)
{
	/* '[' ']' '{' '}' and, of what else may stand in JSON outside of strings, nothing */
	const __m256i common = _mm256_set1_epi8((char)0xD9);
	return mark_equal(_mm256_and_si256(first, common), _mm256_and_si256(second, common), '[' & 0xD9);
}

AVX2 static void mark_blocks(const char *text, size_t blocks, struct numbers_marks *out)
{
	for (size_t i = 0; i < blocks; i++, text += NUMBERS_BLOCK) {
		__m256i first = _mm256_loadu_si256((const __m256i *)text);
		__m256i second = _mm256_loadu_si256((const __m256i *)(text + 32));
		out[i].commas = mark_equal(first, second, ',');
		out[i].brackets = mark_brackets(first, second) | mark_equal(first, second, '"');
		out[i].comma_count = (unsigned)__builtin_popcountll(out[i].commas);
	}
}

const struct numbers_kernels *numbers_avx2(void)
{
	static const struct numbers_kernels kernels = {
	    .scan = scan_groups, .print = print_eight, .mark = mark_blocks};
	bool usable = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
	              __builtin_cpu_supports("popcnt");
	return usable ? &kernels : NULL;
}

#else

const struct numbers_kernels *numbers_avx2(void)
{
	return NULL;
}

#endif
