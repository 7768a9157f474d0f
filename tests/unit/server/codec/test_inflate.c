#include "codec/inflate.h"
#include "suite.h"

#include <string.h>
#include <zlib.h>

#define ROOM 400000

/* "hello, hello" and a line end, by Python's gzip and zlib. */
static const char hello[] = "hello, hello\n";
static const unsigned char hello_gzip[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03,
                                           0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0xd7, 0x51, 0xc8, 0x00, 0x51,
                                           0x5c, 0x00, 0xdb, 0x25, 0x26, 0x1f, 0x0d, 0x00, 0x00, 0x00};
static const unsigned char hello_zlib[] = {0x78, 0xda, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0xd7, 0x51,
                                           0xc8, 0x00, 0x51, 0x5c, 0x00, 0x21, 0x59, 0x04, 0x7f};
static const unsigned char hello_bare[] = {0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0xd7,
                                           0x51, 0xc8, 0x00, 0x51, 0x5c, 0x00};

struct reading {
	enum inflate_result result;
	size_t length;
	char text[ROOM];
};

static struct reading reading;

/* Reads all of a stream, `step` bytes at a time. */
static enum inflate_result read_all(enum coding coding, const void *data, size_t size, size_t step)
{
	struct inflater *inflater = inflater_new(coding, data, size);
	ck_assert_ptr_nonnull(inflater);
	reading.length = 0;
	do {
		size_t written, room = ROOM - reading.length < step ? ROOM - reading.length : step;
		ck_assert_uint_gt(room, 0);
		reading.result = inflater_read(inflater, reading.text + reading.length, room, &written);
		ck_assert_uint_le(written, room);
		ck_assert(reading.result != INFLATE_MORE || written == room);
		reading.length += written;
	} while (reading.result == INFLATE_MORE);
	inflater_free(inflater);
	return reading.result;
}

static void expect_hello(enum coding coding, const unsigned char *data, size_t size)
{
	static const size_t steps[] = {1, 2, 5, 12, 13, 14, 100000};
	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		ck_assert_int_eq(read_all(coding, data, size, steps[i]), INFLATE_END);
		ck_assert_uint_eq(reading.length, strlen(hello));
		ck_assert_mem_eq(reading.text, hello, reading.length);
	}
}

START_TEST(what_other_programs_compressed_is_read_in_steps_of_any_size)
{
	expect_hello(CODING_GZIP, hello_gzip, sizeof hello_gzip);
	expect_hello(CODING_DEFLATE, hello_zlib, sizeof hello_zlib);
	expect_hello(CODING_DEFLATE, hello_bare, sizeof hello_bare);
}
END_TEST

START_TEST(gzip_members_on_end_are_one_text)
{
	unsigned char twice[2 * sizeof hello_gzip];
	memcpy(twice, hello_gzip, sizeof hello_gzip);
	memcpy(twice + sizeof hello_gzip, hello_gzip, sizeof hello_gzip);
	ck_assert_int_eq(read_all(CODING_GZIP, twice, sizeof twice, 3), INFLATE_END);
	ck_assert_uint_eq(reading.length, 2 * strlen(hello));
	ck_assert_mem_eq(reading.text + strlen(hello), hello, strlen(hello));
}
END_TEST

START_TEST(a_stream_cut_anywhere_is_cut_short)
{
	for (size_t size = 0; size < sizeof hello_gzip; size++)
		ck_assert_int_eq(read_all(CODING_GZIP, hello_gzip, size, 100), INFLATE_CUT_SHORT);
	for (size_t size = 2; size < sizeof hello_zlib; size++)
		ck_assert_int_eq(read_all(CODING_DEFLATE, hello_zlib, size, 100), INFLATE_CUT_SHORT);
	for (size_t size = 0; size < sizeof hello_bare; size++)
		ck_assert_int_eq(read_all(CODING_DEFLATE, hello_bare, size, 100), INFLATE_CUT_SHORT);
}
END_TEST

START_TEST(bytes_behind_the_end_are_told)
{
	static const struct {
		const unsigned char *data;
		size_t size;
		enum coding coding;
	} cases[] = {{hello_gzip, sizeof hello_gzip, CODING_GZIP},
	             {hello_zlib, sizeof hello_zlib, CODING_DEFLATE},
	             {hello_bare, sizeof hello_bare, CODING_DEFLATE}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		unsigned char longer[64] = {0};
		memcpy(longer, cases[i].data, cases[i].size);
		ck_assert_int_eq(read_all(cases[i].coding, longer, cases[i].size + 1, 100), INFLATE_TRAILING);
		ck_assert_uint_eq(reading.length, strlen(hello));
	}
}
END_TEST

START_TEST(a_changed_bit_is_never_read_as_another_text)
{
	for (size_t bit = 0; bit < 8 * sizeof hello_gzip; bit++) {
		unsigned char changed[sizeof hello_gzip];
		memcpy(changed, hello_gzip, sizeof changed);
		changed[bit / 8] ^= (unsigned char)(1 << bit % 8);
		/* Some bits are hints, or padding. */
		if (read_all(CODING_GZIP, changed, sizeof changed, 100) != INFLATE_END)
			continue;
		ck_assert_uint_eq(reading.length, strlen(hello));
		ck_assert_mem_eq(reading.text, hello, reading.length);
	}
}
END_TEST

START_TEST(what_is_no_stream_is_broken)
{
	ck_assert_int_eq(read_all(CODING_GZIP, "{\"query\":[[1]]}", 15, 100), INFLATE_BROKEN);
	ck_assert_int_eq(read_all(CODING_GZIP, hello_zlib, sizeof hello_zlib, 100), INFLATE_BROKEN);
	ck_assert_int_eq(read_all(CODING_DEFLATE, "\x07\xff\xff\xff", 4, 100), INFLATE_BROKEN);
	/* A zlib stream that wants a dictionary we do not have. */
	ck_assert_int_eq(read_all(CODING_DEFLATE, "\x78\x20\x00\x00\x00\x01\x03\x00", 8, 100),
	                 INFLATE_BROKEN);
}
END_TEST

START_TEST(a_bomb_gives_no_more_than_the_room)
{
	enum { TEXT = 1 << 20 };
	static unsigned char zeros[TEXT], packed[TEXT];
	uLongf size = sizeof packed;
	ck_assert_int_eq(compress(packed, &size, zeros, TEXT), Z_OK);
	ck_assert_uint_lt(size, 2000);
	struct inflater *inflater = inflater_new(CODING_DEFLATE, packed, size);
	size_t written, total = 0;
	char out[1000];
	while (inflater_read(inflater, out, sizeof out, &written) == INFLATE_MORE) {
		ck_assert_uint_eq(written, sizeof out);
		total += written;
	}
	ck_assert_uint_eq(total + written, TEXT);
	inflater_free(inflater);
}
END_TEST

SUITE_MAIN("inflate", what_other_programs_compressed_is_read_in_steps_of_any_size,
           gzip_members_on_end_are_one_text, a_stream_cut_anywhere_is_cut_short,
           bytes_behind_the_end_are_told, a_changed_bit_is_never_read_as_another_text,
           what_is_no_stream_is_broken, a_bomb_gives_no_more_than_the_room)
