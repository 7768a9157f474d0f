#include "codec/json_writer.h"

#include "codec/json_shape.h"
#include "codec/large.h"
#include "codec/numbers.h"
#include "codec/numbers_rows.h"
#include "codec/tiles.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool json_writer_open(struct json_writer *writer, size_t room, int precision, attn_executor *executor)
{
	*writer = (struct json_writer){.text = large_block(malloc(room), room),
	                               .room = room,
	                               .precision = precision,
	                               .executor = executor};
	return writer->text != NULL;
}

void json_writer_text(struct json_writer *writer, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	size_t room = writer->room - writer->length;
	size_t length = (size_t)vsnprintf(writer->text + writer->length, room, format, args);
	va_end(args);
	assert(length < room);
	writer->length += length;
}

/* ---- rows: values with a comma after each, until one that cannot be written; how many were */

typedef size_t write_row(const struct json_writer *writer, const void *row, size_t count, char **at);

static size_t write_digits(const float *row, size_t count, int digits, char **at)
{
	size_t done = 0;
	for (; done < count && isfinite(row[done]); done++) {
		*at += number_print_digits(row[done], digits, *at);
		*(*at)++ = ',';
	}
	return done;
}

static bool is_lowest(const struct json_writer *writer, float value)
{
	return writer->lowest && value == -INFINITY;
}

static size_t write_floats(const struct json_writer *writer, const void *row, size_t count, char **at)
{
	const float *data = row;
	for (size_t done = 0;;) {
		done += writer->precision == 0
		            ? numbers_print_row(data + done, count - done, at)
		            : write_digits(data + done, count - done, writer->precision, at);
		if (done == count || !is_lowest(writer, data[done]))
			return done;
		*at += number_print_shortest(-FLT_MAX, *at); /* whatever the precision: rounded up it would be
		                                              * beyond float32 */
		*(*at)++ = ',';
		done++;
	}
}

static char *put_integer(char *out, int64_t value)
{
	char digits[24], *first = digits + sizeof(digits);
	uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;
	do {
		*--first = (char)('0' + left % 10);
		left /= 10;
	} while (left > 0);
	if (value < 0)
		*--first = '-';
	size_t length = (size_t)(digits + sizeof(digits) - first);
	memcpy(out, first, length);
	return out + length;
}

static size_t write_integers(const struct json_writer *writer, const void *row, size_t count, char **at)
{
	const int64_t *data = row;
	(void)writer;
	for (size_t i = 0; i < count; i++) {
		*at = put_integer(*at, data[i]);
		*(*at)++ = ',';
	}
	return count;
}

/* ---- tiles: ranges of a tensor's elements, with the brackets that stand before and behind them */

#define TILE_ELEMENTS ((size_t)16 << 10)
/* Tiles that are written at once. Each has room for the longest text; what it does not take is closed up
 * after them. */
#define WAVE_TILES ((size_t)64)

/* A tensor being written. A tile is written where it belongs if it is known where the one before it ended,
 * else where it belongs if all before it were as long as they can be; it is moved down then. */
struct wave {
	const struct json_writer *writer;
	write_row *row;
	const char *data;
	size_t size; /* bytes of an element */
	struct json_shape shape;

	size_t first_tile;
	char *begin;                        /* where its first tile belongs */
	char *text[WAVE_TILES];             /* of each tile */
	size_t length[WAVE_TILES];          /* likewise */
	_Atomic(char *) behind[WAVE_TILES]; /* the end of a tile that stands where it belongs, or NULL */
};

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

static char *repeat(char *out, char c, size_t count)
{
	memset(out, c, count);
	return out + count;
}

/* Bytes of the text before an element, at most. */
static size_t room_before(const struct json_shape *shape, size_t element)
{
	return NUMBER_TEXT_MAX * element + json_shape_begun(shape, element) +
	       2 * json_shape_ended(shape, element);
}

/* Elements [first, last) with their brackets; NULL at one that cannot be written. */
static char *write_elements(const struct wave *wave, size_t first, size_t last, char *out)
{
	const struct json_shape *shape = &wave->shape;
	while (first < last) {
		size_t count = json_shape_run(shape, first, last);
		out = repeat(out, '[', json_shape_edges(shape, first));
		if (wave->row(wave->writer, wave->data + first * wave->size, count, &out) < count)
			return NULL;
		first += count;
		size_t edges = json_shape_edges(shape, first);
		out = repeat(edges > 0 ? out - 1 : out, ']', edges);
		if (edges > 0 && first < json_shape_count(shape))
			*out++ = ',';
	}
	return out;
}

static attn_status write_tile(void *arg, size_t tile, attn_arena *scratch)
{
	struct wave *wave = arg;
	const struct json_shape *shape = &wave->shape;
	size_t first = (wave->first_tile + tile) * TILE_ELEMENTS;
	size_t last = smaller(first + TILE_ELEMENTS, json_shape_count(shape));
	size_t before = room_before(shape, first) - room_before(shape, wave->first_tile * TILE_ELEMENTS);
	char *here =
	    tile == 0 ? wave->begin : atomic_load_explicit(&wave->behind[tile - 1], memory_order_acquire);
	char *begin = here != NULL ? here : wave->begin + before;
	char *end = write_elements(wave, first, last, begin);
	(void)scratch;
	if (end == NULL)
		return ATTN_FORMAT;
	wave->text[tile] = begin;
	wave->length[tile] = (size_t)(end - begin);
	if (here != NULL)
		atomic_store_explicit(&wave->behind[tile], end, memory_order_release);
	return ATTN_OK;
}

/* Moves the tiles down to where they belong; the end of the text. */
static char *close_up(struct wave *wave, size_t tiles)
{
	char *end = wave->begin;
	for (size_t i = 0; i < tiles; i++) {
		if (wave->text[i] != end)
			memmove(end, wave->text[i], wave->length[i]);
		end += wave->length[i];
	}
	return end;
}

static attn_status write_waves(struct json_writer *writer, struct wave *wave)
{
	size_t count = json_shape_count(&wave->shape);
	size_t tiles = (count + TILE_ELEMENTS - 1) / TILE_ELEMENTS;
	assert(writer->room - writer->length >= room_before(&wave->shape, count));
	for (size_t done = 0; done < tiles; done += WAVE_TILES) {
		size_t now = smaller(tiles - done, WAVE_TILES);
		wave->first_tile = done;
		wave->begin = writer->text + writer->length;
		for (size_t i = 0; i < now; i++)
			atomic_init(&wave->behind[i], NULL);
		attn_status status = tiles_run(writer->executor, now, write_tile, wave);
		if (status != ATTN_OK)
			return status;
		writer->length = (size_t)(close_up(wave, now) - writer->text);
	}
	return ATTN_OK;
}

/* ---- tensors */

/* A tensor without elements: brackets only, 3 bytes an array at most. */
static char *put_empty(char *out, const size_t *dims, size_t rank)
{
	*out++ = '[';
	for (size_t i = 0; rank > 1 && i < dims[0]; i++) {
		out = put_empty(out, dims + 1, rank - 1);
		*out++ = ',';
	}
	out -= rank > 1 && dims[0] > 0 ? 1 : 0;
	*out++ = ']';
	return out;
}

static attn_status write_tensor(struct json_writer *writer, struct wave *wave, const size_t *dims,
                                size_t rank)
{
	assert(rank > 0 && rank <= TENSOR_MAX_RANK);
	wave->writer = writer;
	wave->shape = json_shape_of(dims, rank);
	if (json_shape_count(&wave->shape) > 0)
		return write_waves(writer, wave);
	writer->length = (size_t)(put_empty(writer->text + writer->length, dims, rank) - writer->text);
	assert(writer->length <= writer->room);
	return ATTN_OK;
}

/* The indices of the first number that cannot be written. */
static void find_not_finite(const struct json_writer *writer, const float *data,
                            const struct json_shape *shape, size_t *index)
{
	size_t at = 0;
	while (isfinite(data[at]) || is_lowest(writer, data[at]))
		at++;
	for (size_t level = 0; level < shape->rank; level++) {
		index[level] = at / shape->size[level + 1];
		at %= shape->size[level + 1];
	}
}

enum json_written json_writer_tensor(struct json_writer *writer, const float *data, const size_t *dims,
                                     size_t rank, size_t *index)
{
	struct wave wave = {.row = write_floats, .data = (const char *)data, .size = sizeof(*data)};
	attn_status status = write_tensor(writer, &wave, dims, rank);
	if (status == ATTN_OK)
		return JSON_WRITTEN;
	if (status != ATTN_FORMAT)
		return JSON_CANCELLED;
	find_not_finite(writer, data, &wave.shape, index);
	return JSON_NOT_FINITE;
}

enum json_written json_writer_indices(struct json_writer *writer, const int64_t *data, const size_t *dims,
                                      size_t rank)
{
	struct wave wave = {.row = write_integers, .data = (const char *)data, .size = sizeof(*data)};
	return write_tensor(writer, &wave, dims, rank) == ATTN_OK ? JSON_WRITTEN : JSON_CANCELLED;
}
