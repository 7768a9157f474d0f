#include "codec/base64.h"

/* Six bits of each character; 64: not of the alphabet. */
static const uint8_t values[256] = {
    64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 62, 64, 64, 64, 63, 52, 53, 54, 55,
    56, 57, 58, 59, 60, 61, 64, 64, 64, 64, 64, 64, 64, 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12,
    13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 64, 64, 64, 64, 64, 64, 26, 27, 28, 29, 30, 31, 32,
    33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
};

size_t base64_room(size_t length)
{
	return length / 4 * 3;
}

/* Characters of the last group that are not padding: 4 where there is none. */
static size_t last_group(const char *text, size_t length)
{
	if (length == 0 || text[length - 1] != '=')
		return 4;
	return text[length - 2] == '=' ? 2 : 3;
}

/* Of the groups of four in [0, length), bytes to out; false with *bad at what is not of the alphabet. */
static bool decode_groups(const char *text, size_t length, uint8_t *out, size_t *bad)
{
	const unsigned char *at = (const unsigned char *)text;
	for (size_t i = 0; i < length; i += 4, out += 3) {
		unsigned a = values[at[i]], b = values[at[i + 1]], c = values[at[i + 2]],
		         d = values[at[i + 3]];
		unsigned bits = a << 18 | b << 12 | c << 6 | d;
		if (((a | b | c | d) & 64) != 0) {
			*bad = a == 64 ? i : b == 64 ? i + 1 : c == 64 ? i + 2 : i + 3;
			return false;
		}
		out[0] = (uint8_t)(bits >> 16);
		out[1] = (uint8_t)(bits >> 8);
		out[2] = (uint8_t)bits;
	}
	return true;
}

/* The padded group, with `used` characters before its padding: 2 give one byte, 3 give two. */
static bool decode_last(const char *text, size_t used, uint8_t *out, size_t *bad)
{
	unsigned bits = 0;
	for (size_t i = 0; i < used; i++) {
		unsigned value = values[(unsigned char)text[i]];
		*bad = i;
		if (value == 64)
			return false;
		bits |= value << (18 - 6 * i);
	}
	*bad = used - 1;
	if ((bits & (used == 2 ? 0xFFFFU : 0xFFU)) != 0)
		return false;
	out[0] = (uint8_t)(bits >> 16);
	if (used == 3)
		out[1] = (uint8_t)(bits >> 8);
	return true;
}

bool base64_decode(const char *text, size_t length, uint8_t *out, size_t *count, size_t *bad)
{
	size_t whole = length - length % 4, used = 4;
	if (whole == length)
		used = last_group(text, length);
	size_t plain = used == 4 ? whole : whole - 4, at = 0;
	if (!decode_groups(text, plain, out, bad))
		return false;
	*bad = length;
	if (whole != length)
		return false;
	*count = plain / 4 * 3;
	if (used == 4)
		return true;
	if (!decode_last(text + plain, used, out + *count, &at)) {
		*bad = plain + at;
		return false;
	}
	*count += used - 1;
	return true;
}
