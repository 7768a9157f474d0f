#include "codec/deflate.h"

#include <assert.h>
#include <zlib.h>

#define LEVEL 1 /* numbers shrink by little more at the slower ones */
#define MEMORY_LEVEL 8
#define WINDOW_GZIP (MAX_WBITS + 16)
#define WINDOW_ZLIB MAX_WBITS
/* What is compressed between two looks at stop. */
#define PIECE ((size_t)1 << 20)
#define GZIP_FRAME 32 /* header and trailer, beyond those of zlib */

size_t deflate_room(size_t size)
{
	return compressBound(size) + GZIP_FRAME;
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

static bool stopped(const atomic_bool *stop)
{
	return stop != NULL && atomic_load_explicit(stop, memory_order_relaxed);
}

/* All of data through the stream, piece by piece; true when it ended well. */
static bool run(z_stream *stream, const unsigned char *data, size_t size, size_t room,
                const atomic_bool *stop)
{
	int status = Z_OK;
	while (status == Z_OK && !stopped(stop)) {
		size_t in = smaller(size, PIECE), out = smaller(room, PIECE);
		stream->next_in = (unsigned char *)data;
		stream->avail_in = (uInt)in;
		stream->avail_out = (uInt)out;
		status = deflate(stream, in == size ? Z_FINISH : Z_NO_FLUSH);
		size_t taken = in - stream->avail_in;
		data += taken;
		size -= taken;
		room -= out - stream->avail_out;
		if (room == 0 && status == Z_OK)
			return false;
	}
	return status == Z_STREAM_END;
}

bool deflate_whole(enum coding coding, const void *data, size_t size, char *out, size_t room, size_t *length,
                   const atomic_bool *stop)
{
	assert(coding != CODING_IDENTITY);
	z_stream stream = {.next_out = (unsigned char *)out};
	int window = coding == CODING_GZIP ? WINDOW_GZIP : WINDOW_ZLIB;
	if (deflateInit2(&stream, LEVEL, Z_DEFLATED, window, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
		return false;
	bool good = run(&stream, data, size, room, stop);
	*length = stream.total_out;
	deflateEnd(&stream);
	return good;
}
