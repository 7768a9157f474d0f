#include "codec/base64.h"

#include "suite.h"

#include <string.h>

static bool decode(const char *text, uint8_t *out, size_t *count, size_t *bad)
{
	return base64_decode(text, strlen(text), out, count, bad);
}

static void decodes(const char *text, const char *expected)
{
	uint8_t out[64];
	size_t count, bad;
	ck_assert_msg(decode(text, out, &count, &bad), "%s: bad at %zu", text, bad);
	ck_assert_uint_eq(count, strlen(expected));
	ck_assert_uint_le(count, base64_room(strlen(text)));
	ck_assert_mem_eq(out, expected, count);
}

static void refuses(const char *text, size_t where)
{
	uint8_t out[64];
	size_t count, bad = 999;
	ck_assert_msg(!decode(text, out, &count, &bad), "%s: accepted", text);
	ck_assert_msg(bad == where, "%s: bad at %zu", text, bad);
}

/* RFC 4648 section 10. */
START_TEST(the_vectors_of_the_standard_decode)
{
	decodes("", "");
	decodes("Zg==", "f");
	decodes("Zm8=", "fo");
	decodes("Zm9v", "foo");
	decodes("Zm9vYg==", "foob");
	decodes("Zm9vYmE=", "fooba");
	decodes("Zm9vYmFy", "foobar");
}
END_TEST

/* Every value of every byte in each of the three places, against bits put together by hand. */
START_TEST(every_byte_in_every_place_decodes)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	for (unsigned place = 0; place < 3; place++) {
		for (unsigned byte = 0; byte < 256; byte++) {
			unsigned bits = byte << (16 - 8 * place);
			char text[5] = {alphabet[bits >> 18], alphabet[bits >> 12 & 63],
			                alphabet[bits >> 6 & 63], alphabet[bits & 63], '\0'};
			uint8_t out[3];
			size_t count, bad;
			ck_assert(decode(text, out, &count, &bad));
			ck_assert_uint_eq(count, 3);
			for (unsigned i = 0; i < 3; i++)
				ck_assert_uint_eq(out[i], i == place ? byte : 0);
		}
	}
}
END_TEST

START_TEST(what_is_not_of_the_alphabet_is_named_by_its_place)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	for (int c = 1; c < 256; c++) {
		char text[] = "AAAAAAAAAAAA";
		text[6] = (char)c;
		if (strchr(alphabet, c) == NULL)
			refuses(text, 6);
	}
	refuses("-AAA", 0);
	refuses("A_AA", 1);
	refuses("AA\nA", 2);
	refuses("AAA ", 3);
	refuses("AAAA*A==", 4);
	refuses("AAAAA*A=", 5);
}
END_TEST

START_TEST(padding_is_whole_and_at_the_end_alone)
{
	refuses("Z", 1);
	refuses("Zg", 2);
	refuses("Zg=", 3);
	refuses("Zm9vY", 5);
	refuses("Zg==Zg==", 2);
	refuses("====", 0);
	refuses("A===", 1);
	refuses("AA=A", 2);
	refuses("=AAA", 0);
}
END_TEST

START_TEST(bits_that_stand_for_nothing_must_be_0)
{
	refuses("Zh==", 1);
	refuses("Zm9vZ/==", 5);
	refuses("Zm9=", 2);
	decodes("Zg==", "f");
}
END_TEST

SUITE_MAIN("base64", the_vectors_of_the_standard_decode, every_byte_in_every_place_decodes,
           what_is_not_of_the_alphabet_is_named_by_its_place, padding_is_whole_and_at_the_end_alone,
           bits_that_stand_for_nothing_must_be_0)
