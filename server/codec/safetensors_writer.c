#include "codec/safetensors_writer.h"

#include "codec/large.h"

#include <assert.h>
#include <endian.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH_BYTES sizeof(uint64_t)

bool safetensors_writer_open(struct safetensors_writer *writer, size_t room)
{
	*writer = (struct safetensors_writer){.room = room};
	assert(room >= SAFETENSORS_FRAME_MAX);
	writer->bytes = large_block(malloc(room), room);
	if (writer->bytes == NULL)
		return false;
	writer->length = LENGTH_BYTES;
	writer->bytes[writer->length++] = '{';
	return true;
}

static void __attribute__((format(printf, 2, 3)))
put(struct safetensors_writer *writer, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	size_t left = writer->room - writer->length;
	int length = vsnprintf(writer->bytes + writer->length, left, format, args);
	va_end(args);
	assert(length >= 0 && (size_t)length < left);
	writer->length += (size_t)length;
}

static void put_byte(struct safetensors_writer *writer, char byte)
{
	assert(writer->length < writer->room);
	writer->bytes[writer->length++] = byte;
}

static void end_metadata(struct safetensors_writer *writer)
{
	if (writer->metadata)
		put(writer, "}");
	writer->metadata = false;
}

/* A comma where something stands before. */
static void begin_member(struct safetensors_writer *writer, const char *name)
{
	end_metadata(writer);
	put(writer, "%s\"%s\":{", writer->members ? "," : "", name);
	writer->members = true;
}

void safetensors_writer_metadata(struct safetensors_writer *writer, const char *key, const char *text)
{
	if (writer->metadata)
		put(writer, ",");
	else
		begin_member(writer, "__metadata__");
	writer->metadata = true;
	put(writer, "\"%s\":\"", key);
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			put_byte(writer, '\\');
		put_byte(writer, *text);
	}
	put(writer, "\"");
}

void safetensors_writer_entry(struct safetensors_writer *writer, const char *name, attn_dtype dtype,
                              const size_t *dims, size_t rank)
{
	size_t bytes = attn_dtype_size(dtype), begin = writer->data;
	assert(rank <= ATTN_MAX_RANK);
	begin_member(writer, name);
	put(writer, "\"dtype\":\"%s\",\"shape\":[", attn_dtype_name(dtype));
	for (size_t i = 0; i < rank; i++) {
		put(writer, "%s%zu", i > 0 ? "," : "", dims[i]);
		bytes *= dims[i];
	}
	writer->data += bytes;
	put(writer, "],\"data_offsets\":[%zu,%zu]}", begin, writer->data);
}

void safetensors_writer_end_header(struct safetensors_writer *writer)
{
	end_metadata(writer);
	put(writer, "}");
	while (writer->length % LENGTH_BYTES != 0)
		put_byte(writer, ' ');
	uint64_t length = htole64(writer->length - LENGTH_BYTES);
	memcpy(writer->bytes, &length, sizeof(length));
}

void safetensors_writer_floats(struct safetensors_writer *writer, attn_dtype dtype, const float *data,
                               size_t count)
{
	size_t bytes = count * attn_dtype_size(dtype);
	assert(bytes <= writer->room - writer->length);
	attn_from_float32(dtype, data, count, writer->bytes + writer->length);
	writer->length += bytes;
}

void safetensors_writer_integers(struct safetensors_writer *writer, const int64_t *data, size_t count)
{
	assert(count * sizeof(*data) <= writer->room - writer->length);
	for (size_t i = 0; i < count; i++) {
		uint64_t bits = htole64((uint64_t)data[i]);
		memcpy(writer->bytes + writer->length, &bits, sizeof(bits));
		writer->length += sizeof(bits);
	}
}
