#include "codec/json_writer.h"

#include "codec/numbers.h"
#include "codec/tensor.h"

#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool json_writer_open(struct json_writer *writer, size_t room, int precision, attn_executor *executor)
{
	*writer = (struct json_writer){
	    .text = malloc(room), .room = room, .precision = precision, .executor = executor};
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

static void put(struct json_writer *writer, char c)
{
	writer->text[writer->length++] = c;
}

/* ---- rows: values with a comma after each; false with *index at one that cannot be written */

typedef bool write_row(struct json_writer *writer, const void *row, size_t count, size_t *index);

static bool write_floats(struct json_writer *writer, const void *row, size_t count, size_t *index)
{
	const float *data = row;
	for (size_t i = 0; i < count; i++) {
		char *out = writer->text + writer->length;
		bool lowest = writer->lowest && data[i] == -INFINITY;
		*index = i;
		if (!lowest && !isfinite(data[i]))
			return false;
		if (lowest) /* whatever the precision: rounded up it would be beyond float32 */
			writer->length += number_print_shortest(-FLT_MAX, out);
		else if (writer->precision == 0)
			writer->length += number_print_shortest(data[i], out);
		else
			writer->length += number_print_digits(data[i], writer->precision, out);
		put(writer, ',');
	}
	return true;
}

static bool write_integers(struct json_writer *writer, const void *row, size_t count, size_t *index)
{
	const int64_t *data = row;
	for (*index = 0; *index < count; ++*index) {
		char text[24];
		size_t length = (size_t)snprintf(text, sizeof(text), "%" PRId64 ",", data[*index]);
		memcpy(writer->text + writer->length, text, length);
		writer->length += length;
	}
	return true;
}

/* ---- nested arrays */

/* What is written of a tensor, level by level. */
struct nesting {
	write_row *row;
	size_t size; /* bytes of an element */
};

static size_t elements(const size_t *dims, size_t rank)
{
	size_t count = 1;
	for (size_t i = 0; i < rank; i++)
		count *= dims[i];
	return count;
}

static bool write_level(struct json_writer *writer, const struct nesting *nesting, const char *data,
                        const size_t *dims, size_t rank, size_t *index)
{
	assert(rank > 0 && writer->room - writer->length >= 2);
	put(writer, '[');
	if (rank == 1) {
		assert(writer->room - writer->length >= dims[0] * NUMBER_TEXT_MAX);
		if (!nesting->row(writer, data, dims[0], index))
			return false;
		writer->length -= dims[0] > 0 ? 1 : 0;
	}
	size_t stride = rank > 1 ? elements(dims + 1, rank - 1) * nesting->size : 0;
	for (size_t i = 0; rank > 1 && i < dims[0]; i++) {
		*index = i;
		if (!write_level(writer, nesting, data + i * stride, dims + 1, rank - 1, index + 1))
			return false;
		if (i + 1 < dims[0])
			put(writer, ',');
	}
	put(writer, ']');
	return true;
}

enum json_written json_writer_tensor(struct json_writer *writer, const float *data, const size_t *dims,
                                     size_t rank, size_t *index)
{
	const struct nesting nesting = {write_floats, sizeof(*data)};
	return write_level(writer, &nesting, (const char *)data, dims, rank, index) ? JSON_WRITTEN
	                                                                            : JSON_NOT_FINITE;
}

enum json_written json_writer_indices(struct json_writer *writer, const int64_t *data, const size_t *dims,
                                      size_t rank)
{
	const struct nesting nesting = {write_integers, sizeof(*data)};
	size_t index[TENSOR_MAX_RANK];
	assert(rank <= TENSOR_MAX_RANK);
	write_level(writer, &nesting, (const char *)data, dims, rank, index);
	return JSON_WRITTEN;
}
