#include "packed.h"

#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#include "kernels.h"
#include "rounding.h"

struct attn_packed {
	size_t in, out, strip;
	alignas(64) float numbers[]; /* [strips, in, strip] */
};

size_t attn_packed_bytes(const attn_kernels *kernels, size_t in, size_t out)
{
	const size_t strip = kernels->strip;
	size_t columns = 0, bytes = 0;
	if (strip == 0)
		return 0;
	if (!attn_size_add(out, strip - 1, &columns))
		return SIZE_MAX;
	const size_t dims[] = {columns / strip * strip, in, sizeof(float)};
	if (!attn_size_product(dims, 3, &bytes) || !attn_size_add(bytes, sizeof(attn_packed), &bytes))
		return SIZE_MAX;
	return bytes;
}

attn_packed *attn_packed_init(void *memory, const attn_kernels *kernels, size_t in, size_t out)
{
	attn_packed *packed = memory;
	memset(packed, 0, attn_packed_bytes(kernels, in, out));
	packed->in = in;
	packed->out = out;
	packed->strip = kernels->strip;
	return packed;
}

/* Where element [0, column] is. */
static size_t column_start(const attn_packed *packed, size_t column)
{
	return column / packed->strip * packed->strip * packed->in + column % packed->strip;
}

void attn_packed_put(attn_packed *packed, size_t first, size_t columns, const float *weight, size_t stride,
                     attn_layout layout)
{
	const size_t strip = packed->strip, along = layout == ATTN_OUT_IN ? 1 : stride,
	             across = layout == ATTN_OUT_IN ? stride : 1;
	for (size_t done = 0; done < columns;) {
		const size_t column = first + done;
		const size_t part = attn_smaller(columns - done, strip - column % strip);
		float *to = packed->numbers + column_start(packed, column);
		const float *from = weight + done * across;
		for (size_t p = 0; p < packed->in; p++)
			for (size_t j = 0; j < part; j++)
				to[p * strip + j] = from[p * along + j * across];
		done += part;
	}
}

void attn_packed_column(const attn_packed *packed, size_t column, float *out)
{
	const float *from = packed->numbers + column_start(packed, column);
	for (size_t p = 0; p < packed->in; p++)
		out[p] = from[p * packed->strip];
}

void attn_packed_row(const attn_packed *packed, size_t row, size_t first, size_t columns, float *out)
{
	for (size_t j = 0; j < columns; j++)
		out[j] = packed->numbers[column_start(packed, first + j) + row * packed->strip];
}

size_t attn_packed_in(const attn_packed *packed)
{
	return packed->in;
}

size_t attn_packed_out(const attn_packed *packed)
{
	return packed->out;
}

size_t attn_packed_strip(const attn_packed *packed)
{
	return packed->strip;
}

const float *attn_packed_at(const attn_packed *packed, size_t index)
{
	return packed->numbers + index * packed->strip * packed->in;
}
