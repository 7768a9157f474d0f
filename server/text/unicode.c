#include "text/unicode.h"

#include <utf8proc.h>

struct range {
	uint32_t low, high;
};

/* Points that became punctuation, non-spacing marks or format characters after Unicode 8. */
static const struct range late[] = {
    {0x61D, 0x61D},     {0x7FD, 0x7FD},     {0x890, 0x891},     {0x898, 0x89F},     {0x8CA, 0x8E2},
    {0x9FD, 0x9FE},     {0xA76, 0xA76},     {0xAFA, 0xAFF},     {0xB55, 0xB55},     {0xC04, 0xC04},
    {0xC3C, 0xC3C},     {0xC77, 0xC77},     {0xC84, 0xC84},     {0xD00, 0xD00},     {0xD3B, 0xD3C},
    {0xD81, 0xD81},     {0xEBA, 0xEBA},     {0xECE, 0xECE},     {0x180F, 0x180F},   {0x1885, 0x1886},
    {0x1ABF, 0x1ACE},   {0x1B7D, 0x1B7E},   {0x1DF6, 0x1DFB},   {0x2E43, 0x2E4F},   {0x2E52, 0x2E5D},
    {0xA82C, 0xA82C},   {0xA8C5, 0xA8C5},   {0xA8FF, 0xA8FF},   {0xA9BD, 0xA9BD},   {0x10D24, 0x10D27},
    {0x10EAB, 0x10EAD}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50}, {0x10F55, 0x10F59}, {0x10F82, 0x10F89},
    {0x11070, 0x11070}, {0x11073, 0x11074}, {0x110C2, 0x110C2}, {0x110CD, 0x110CD}, {0x111C9, 0x111C9},
    {0x111CF, 0x111CF}, {0x1123E, 0x1123E}, {0x11241, 0x11241}, {0x1133B, 0x1133B}, {0x11438, 0x1143F},
    {0x11442, 0x11444}, {0x11446, 0x11446}, {0x1144B, 0x1144F}, {0x1145A, 0x1145B}, {0x1145D, 0x1145E},
    {0x11660, 0x1166C}, {0x116B9, 0x116B9}, {0x1182F, 0x11837}, {0x11839, 0x1183B}, {0x1193B, 0x1193C},
    {0x1193E, 0x1193E}, {0x11943, 0x11946}, {0x119D4, 0x119D7}, {0x119DA, 0x119DB}, {0x119E0, 0x119E0},
    {0x119E2, 0x119E2}, {0x11A01, 0x11A0A}, {0x11A33, 0x11A38}, {0x11A3B, 0x11A47}, {0x11A51, 0x11A56},
    {0x11A59, 0x11A5B}, {0x11A8A, 0x11A96}, {0x11A98, 0x11A9C}, {0x11A9E, 0x11AA2}, {0x11B00, 0x11B09},
    {0x11C30, 0x11C36}, {0x11C38, 0x11C3D}, {0x11C3F, 0x11C3F}, {0x11C41, 0x11C45}, {0x11C70, 0x11C71},
    {0x11C92, 0x11CA7}, {0x11CAA, 0x11CB0}, {0x11CB2, 0x11CB3}, {0x11CB5, 0x11CB6}, {0x11D31, 0x11D36},
    {0x11D3A, 0x11D3A}, {0x11D3C, 0x11D3D}, {0x11D3F, 0x11D45}, {0x11D47, 0x11D47}, {0x11D90, 0x11D91},
    {0x11D95, 0x11D95}, {0x11D97, 0x11D97}, {0x11EF3, 0x11EF4}, {0x11EF7, 0x11EF8}, {0x11F00, 0x11F01},
    {0x11F36, 0x11F3A}, {0x11F40, 0x11F40}, {0x11F42, 0x11F4F}, {0x11FFF, 0x11FFF}, {0x12FF1, 0x12FF2},
    {0x13430, 0x13440}, {0x13447, 0x13455}, {0x16E97, 0x16E9A}, {0x16F4F, 0x16F4F}, {0x16FE2, 0x16FE2},
    {0x16FE4, 0x16FE4}, {0x1CF00, 0x1CF2D}, {0x1CF30, 0x1CF46}, {0x1E000, 0x1E006}, {0x1E008, 0x1E018},
    {0x1E01B, 0x1E021}, {0x1E023, 0x1E024}, {0x1E026, 0x1E02A}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136},
    {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF}, {0x1E944, 0x1E94A}, {0x1E95E, 0x1E95F},
};

static bool in_ranges(uint32_t point, const struct range *ranges, size_t count)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (point > ranges[middle].high)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && point >= ranges[low].low;
}

#define IN(point, ranges) in_ranges(point, ranges, sizeof(ranges) / sizeof((ranges)[0]))

static utf8proc_category_t category(uint32_t point)
{
	return utf8proc_category((utf8proc_int32_t)point);
}

/* ---- UTF-8 */

uint32_t unicode_read(const char *text, size_t *size)
{
	const unsigned char *bytes = (const unsigned char *)text;
	uint32_t point = bytes[0];
	*size = point < 0x80 ? 1 : point < 0xE0 ? 2 : point < 0xF0 ? 3 : 4;
	if (*size > 1)
		point &= 0x7Fu >> *size;
	for (size_t i = 1; i < *size; i++)
		point = point << 6 | (bytes[i] & 0x3Fu);
	return point;
}

size_t unicode_before(const char *text, size_t at)
{
	do {
		at--;
	} while (at > 0 && ((unsigned char)text[at] & 0xC0) == 0x80);
	return at;
}

/* ---- properties */

bool unicode_is_space(uint32_t point)
{
	static const struct range spaces[] = {
	    {0x9, 0xD},       {0x20, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},     {0x1680, 0x1680},
	    {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};
	return IN(point, spaces);
}

bool unicode_is_number(uint32_t point)
{
	utf8proc_category_t is = category(point);
	return is == UTF8PROC_CATEGORY_ND || is == UTF8PROC_CATEGORY_NL || is == UTF8PROC_CATEGORY_NO;
}

bool unicode_is_punctuation(uint32_t point)
{
	if (point < 0x80) /* those of ASCII: all that is neither letter, digit, space nor control */
		return (point > 0x20 && point < 0x30) || (point > 0x39 && point < 0x41) ||
		       (point > 0x5A && point < 0x61) || (point > 0x7A && point < 0x7F);
	if (point == 0x166D || point == 0x111C9) /* until Unicode 8 */
		return true;
	utf8proc_category_t is = category(point);
	return is >= UTF8PROC_CATEGORY_PC && is <= UTF8PROC_CATEGORY_PO && !IN(point, late);
}

bool unicode_is_control(uint32_t point)
{
	utf8proc_category_t is = category(point);
	return is == UTF8PROC_CATEGORY_CC || is == UTF8PROC_CATEGORY_CO ||
	       (is == UTF8PROC_CATEGORY_CF && !IN(point, late));
}

bool unicode_is_mark(uint32_t point)
{
	utf8proc_category_t is = category(point);
	return is == UTF8PROC_CATEGORY_MN || is == UTF8PROC_CATEGORY_MC || is == UTF8PROC_CATEGORY_ME;
}

bool unicode_is_nonspacing(uint32_t point)
{
	if (point == 0x1734) /* until Unicode 8 */
		return true;
	return category(point) == UTF8PROC_CATEGORY_MN && !IN(point, late);
}

bool unicode_is_ideograph(uint32_t point)
{
	static const struct range blocks[] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},
	                                      {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F},
	                                      {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F}};
	return IN(point, blocks);
}

bool unicode_is_word(uint32_t point)
{
	/* Joiners, and letters in circles and squares, which are alphabetic symbols. */
	static const struct range others[] = {
	    {0x200C, 0x200D}, {0x24B6, 0x24E9}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};
	utf8proc_category_t is = category(point);
	return (is >= UTF8PROC_CATEGORY_LU && is <= UTF8PROC_CATEGORY_NL) || is == UTF8PROC_CATEGORY_PC ||
	       IN(point, others);
}

size_t unicode_lower(uint32_t point, uint32_t out[2])
{
	if (point == 0x130) { /* the one point whose lower case takes two: i and a dot above */
		out[0] = 'i';
		out[1] = 0x307;
		return 2;
	}
	out[0] = (uint32_t)utf8proc_tolower((utf8proc_int32_t)point);
	return 1;
}

/* ---- normal forms */

size_t unicode_decompose(uint32_t point, bool compatible, uint32_t out[UNICODE_DECOMPOSED_MAX])
{
	utf8proc_int32_t points[UNICODE_DECOMPOSED_MAX];
	int boundary = 0;
	utf8proc_option_t options = UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0);
	utf8proc_ssize_t count = utf8proc_decompose_char((utf8proc_int32_t)point, points,
	                                                 UNICODE_DECOMPOSED_MAX, options, &boundary);
	for (utf8proc_ssize_t i = 0; i < count; i++)
		out[i] = (uint32_t)points[i];
	return (size_t)count;
}

uint8_t unicode_combining_class(uint32_t point)
{
	return (uint8_t)utf8proc_get_property((utf8proc_int32_t)point)->combining_class;
}

uint32_t unicode_compose(uint32_t first, uint32_t second)
{
	if (second < 0x300) /* nothing below composes with what stands before it */
		return 0;
	utf8proc_int32_t pair[3] = {(utf8proc_int32_t)first, (utf8proc_int32_t)second, 0};
	utf8proc_option_t options = UTF8PROC_COMPOSE | UTF8PROC_STABLE;
	return utf8proc_normalize_utf32(pair, 2, options) == 1 ? (uint32_t)pair[0] : 0;
}
