#include "codec/utf8.h"

#include <stdbool.h>

static bool in_range(unsigned char byte, unsigned low, unsigned high)
{
	return byte >= low && byte <= high;
}

/* The range of the second byte after a given first one; false when the first starts no longer sequence. */
static bool second_byte_range(unsigned char first, unsigned *low, unsigned *high)
{
	*low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
	*high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
	return in_range(first, 0xC2, 0xF4);
}

size_t utf8_sequence(const char *text, const char *end)
{
	const unsigned char *bytes = (const unsigned char *)text;
	if (bytes[0] < 0x80)
		return 1;
	unsigned low, high;
	if (!second_byte_range(bytes[0], &low, &high))
		return 0;
	size_t length = bytes[0] < 0xE0 ? 2 : bytes[0] < 0xF0 ? 3 : 4;
	if ((size_t)(end - text) < length || !in_range(bytes[1], low, high))
		return 0;
	for (size_t i = 2; i < length; i++) {
		if (!in_range(bytes[i], 0x80, 0xBF))
			return 0;
	}
	return length;
}

size_t utf8_encode(unsigned point, char *out)
{
	if (point < 0x80) {
		out[0] = (char)point;
		return 1;
	}
	size_t length = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
	static const unsigned lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
	for (size_t i = length - 1; i > 0; i--) {
		out[i] = (char)(0x80 | (point & 0x3F));
		point >>= 6;
	}
	out[0] = (char)(lead[length] | point);
	return length;
}

size_t utf8_maximal_subpart(const char *text, const char *end)
{
	const unsigned char *bytes = (const unsigned char *)text;
	unsigned low, high;
	if (end - text < 2 || !second_byte_range(bytes[0], &low, &high) || !in_range(bytes[1], low, high))
		return 1;
	bool third = bytes[0] >= 0xF0 && end - text > 2 && in_range(bytes[2], 0x80, 0xBF);
	return third ? 3 : 2;
}

size_t utf8_cut(const char *text, size_t length)
{
	size_t start = length;
	while (start > 0 && length - start < 4 && ((unsigned char)text[start - 1] & 0xC0) == 0x80)
		start--;
	if (start == 0)
		return length;
	start--;
	return start + utf8_sequence(text + start, text + length);
}
