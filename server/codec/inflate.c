#include "codec/inflate.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <zlib.h>

#define WINDOW_GZIP (MAX_WBITS + 16)
#define WINDOW_ZLIB MAX_WBITS
#define WINDOW_RAW (-MAX_WBITS)
/* zlib counts in unsigned int. */
#define PIECE ((size_t)1 << 30)

struct inflater {
	z_stream stream;
	enum coding coding;
	const unsigned char *rest; /* input that zlib was not given yet */
	size_t left;
};

/* The two bytes that begin every zlib stream (RFC 1950 section 2.2). A bare one begins so only if its encoder
 * filled the padding of a stored block with ones. */
static bool is_zlib(const unsigned char *data, size_t size)
{
	return size >= 2 && (data[0] & 0x0F) == Z_DEFLATED && data[0] >> 4 <= MAX_WBITS - 8 &&
	       (data[0] * 256 + data[1]) % 31 == 0;
}

struct inflater *inflater_new(enum coding coding, const void *data, size_t size)
{
	assert(coding != CODING_IDENTITY);
	struct inflater *inflater = calloc(1, sizeof(*inflater));
	if (inflater == NULL)
		return NULL;
	inflater->coding = coding;
	inflater->rest = data;
	inflater->left = size;
	int window = coding == CODING_GZIP ? WINDOW_GZIP : is_zlib(data, size) ? WINDOW_ZLIB : WINDOW_RAW;
	if (inflateInit2(&inflater->stream, window) == Z_OK)
		return inflater;
	free(inflater);
	return NULL;
}

void inflater_free(struct inflater *inflater)
{
	if (inflater == NULL)
		return;
	inflateEnd(&inflater->stream);
	free(inflater);
}

static void feed(struct inflater *inflater)
{
	z_stream *stream = &inflater->stream;
	if (stream->avail_in > 0)
		return;
	size_t piece = inflater->left < PIECE ? inflater->left : PIECE;
	stream->next_in = (unsigned char *)inflater->rest;
	stream->avail_in = (uInt)piece;
	inflater->rest += piece;
	inflater->left -= piece;
}

static bool input_left(const struct inflater *inflater)
{
	return inflater->stream.avail_in > 0 || inflater->left > 0;
}

/* A stream has ended: MORE when the input may hold another. */
static enum inflate_result at_end(struct inflater *inflater)
{
	if (!input_left(inflater))
		return INFLATE_END;
	feed(inflater);
	/* The first byte of another member; what follows it is zlib's to judge. */
	if (inflater->coding != CODING_GZIP || *inflater->stream.next_in != 0x1F)
		return INFLATE_TRAILING;
	inflateReset(&inflater->stream);
	return INFLATE_MORE;
}

static enum inflate_result step(struct inflater *inflater)
{
	feed(inflater);
	switch (inflate(&inflater->stream, Z_NO_FLUSH)) {
	case Z_OK:
		return INFLATE_MORE;
	case Z_STREAM_END:
		return at_end(inflater);
	case Z_BUF_ERROR:
		return input_left(inflater) ? INFLATE_MORE : INFLATE_CUT_SHORT;
	case Z_MEM_ERROR:
		return INFLATE_MEMORY;
	default:
		return INFLATE_BROKEN;
	}
}

enum inflate_result inflater_read(struct inflater *inflater, char *out, size_t room, size_t *written)
{
	assert(room > 0);
	z_stream *stream = &inflater->stream;
	size_t piece = room < PIECE ? room : PIECE;
	enum inflate_result result = INFLATE_MORE;
	stream->next_out = (unsigned char *)out;
	stream->avail_out = (uInt)piece;
	while (result == INFLATE_MORE && stream->avail_out > 0)
		result = step(inflater);
	*written = piece - stream->avail_out;
	return result;
}
