#include "codec/json_writer.h"

#include "codec/numbers.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

bool json_writer_open(struct json_writer *writer, size_t room, int precision)
{
	*writer = (struct json_writer){.text = malloc(room), .room = room, .precision = precision};
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

/* A row of numbers with commas; false with *index at the one that is not finite. */
static bool write_row(struct json_writer *writer, const float *data, size_t count, size_t *index)
{
	assert(writer->room - writer->length >= count * NUMBER_TEXT_MAX);
	for (size_t i = 0; i < count; i++) {
		char *out = writer->text + writer->length;
		*index = i;
		if (!isfinite(data[i]))
			return false;
		writer->length += writer->precision == 0
		                      ? number_print_shortest(data[i], out)
		                      : number_print_digits(data[i], writer->precision, out);
		put(writer, ',');
	}
	writer->length -= count > 0 ? 1 : 0;
	return true;
}

static size_t elements(const size_t *dims, size_t rank)
{
	size_t count = 1;
	for (size_t i = 0; i < rank; i++)
		count *= dims[i];
	return count;
}

bool json_writer_tensor(struct json_writer *writer, const float *data, const size_t *dims, size_t rank,
                        size_t *index)
{
	assert(rank > 0 && writer->room - writer->length >= 2);
	put(writer, '[');
	if (rank == 1 && !write_row(writer, data, dims[0], index))
		return false;
	size_t stride = rank > 1 ? elements(dims + 1, rank - 1) : 0;
	for (size_t i = 0; rank > 1 && i < dims[0]; i++) {
		*index = i;
		if (!json_writer_tensor(writer, data + i * stride, dims + 1, rank - 1, index + 1))
			return false;
		if (i + 1 < dims[0])
			put(writer, ',');
	}
	put(writer, ']');
	return true;
}
