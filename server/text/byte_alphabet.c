#include "text/byte_alphabet.h"

#define SHIFTED 0x100
#define LOW 33             /* bytes 0 to 32 come first */
#define HIGH (0xA1 - 0x7F) /* then 0x7F to 0xA0 */

uint32_t byte_alphabet_point(unsigned char byte)
{
	if (byte < 0x21)
		return SHIFTED + byte;
	if (byte >= 0x7F && byte <= 0xA0)
		return SHIFTED + LOW + (byte - 0x7Fu);
	return byte == 0xAD ? SHIFTED + LOW + HIGH : byte;
}

int byte_alphabet_byte(uint32_t point)
{
	if (point < SHIFTED)
		return byte_alphabet_point((unsigned char)point) == point ? (int)point : -1;
	uint32_t index = point - SHIFTED;
	if (index < LOW)
		return (int)index;
	if (index < LOW + HIGH)
		return (int)(index - LOW + 0x7F);
	return index == LOW + HIGH ? 0xAD : -1;
}

void byte_alphabet_rewrite(const void *context, const struct pieces *source, struct piece piece,
                           struct pieces *out)
{
	(void)context;
	for (size_t i = piece.begin; i < piece.end; i++)
		pieces_put(out, byte_alphabet_point((unsigned char)source->bytes[i]), source->spans[i]);
}
