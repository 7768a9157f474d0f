#include "codec/deflate.h"
#include "suite.h"

#include <string.h>
#include <zlib.h>

#define MOST (5 << 20)

static unsigned char data[MOST], back[MOST + 1];
static char out[2 * MOST];

static void fill(size_t size, unsigned values)
{
	unsigned seed = 7;
	for (size_t i = 0; i < size; i++)
		data[i] = (unsigned char)((unsigned)rand_r(&seed) % values);
}

/* Length of what zlib makes of a whole stream, put to back. */
static size_t inflated(int window, const char *stream, size_t size)
{
	z_stream z = {.next_in = (unsigned char *)stream,
	              .avail_in = (uInt)size,
	              .next_out = back,
	              .avail_out = sizeof back};
	ck_assert_int_eq(inflateInit2(&z, window), Z_OK);
	ck_assert_int_eq(inflate(&z, Z_FINISH), Z_STREAM_END);
	ck_assert_uint_eq(z.avail_in, 0);
	size_t length = z.total_out;
	inflateEnd(&z);
	return length;
}

START_TEST(zlib_reads_back_what_was_compressed_and_the_room_always_suffices)
{
	static const size_t sizes[] = {0, 1, 1000, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, MOST};
	static const unsigned values[] = {1, 10, 256};
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		for (size_t j = 0; j < sizeof values / sizeof values[0]; j++) {
			size_t room = deflate_room(sizes[i]), length;
			ck_assert_uint_le(room, sizeof out);
			fill(sizes[i], values[j]);
			ck_assert(deflate_whole(CODING_GZIP, data, sizes[i], out, room, &length, NULL));
			ck_assert_uint_eq(inflated(MAX_WBITS + 16, out, length), sizes[i]);
			ck_assert_mem_eq(back, data, sizes[i]);
			ck_assert(deflate_whole(CODING_DEFLATE, data, sizes[i], out, room, &length, NULL));
			ck_assert_uint_eq(inflated(MAX_WBITS, out, length), sizes[i]);
			ck_assert_mem_eq(back, data, sizes[i]);
		}
	}
}
END_TEST

START_TEST(what_does_not_fit_is_not_made)
{
	size_t length;
	fill(5000, 256);
	ck_assert(!deflate_whole(CODING_GZIP, data, 5000, out, 4000, &length, NULL));
	ck_assert(!deflate_whole(CODING_GZIP, data, 5000, out, 0, &length, NULL));
	ck_assert(!deflate_whole(CODING_GZIP, data, 0, out, 0, &length, NULL));
}
END_TEST

START_TEST(nothing_is_made_for_somebody_who_has_gone)
{
	size_t length;
	atomic_bool stop = true;
	fill(5000, 10);
	ck_assert(!deflate_whole(CODING_GZIP, data, 5000, out, sizeof out, &length, &stop));
	atomic_store(&stop, false);
	ck_assert(deflate_whole(CODING_GZIP, data, 5000, out, sizeof out, &length, &stop));
}
END_TEST

SUITE_MAIN("deflate", zlib_reads_back_what_was_compressed_and_the_room_always_suffices,
           what_does_not_fit_is_not_made, nothing_is_made_for_somebody_who_has_gone)
