/*
 * Any bytes as a compressed body: read in steps of any size they give the same bytes and the same end as read
 * at once, never more than there is room for. The first byte chooses the coding, the second the step.
 */
#include "codec/inflate.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MOST ((size_t)1 << 18)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool holds)
{
	if (!holds)
		abort();
}

/* Reads up to MOST bytes in steps; their number in *length. */
static enum inflate_result read_in_steps(enum coding coding, const uint8_t *data, size_t size, size_t step,
                                         char *out, size_t *length)
{
	struct inflater *inflater = inflater_new(coding, data, size);
	expect(inflater != NULL);
	enum inflate_result result = INFLATE_MORE;
	*length = 0;
	while (result == INFLATE_MORE && *length < MOST) {
		size_t written, left = MOST - *length, room = step < left ? step : left;
		result = inflater_read(inflater, out + *length, room, &written);
		expect(written <= room && (result != INFLATE_MORE || written == room));
		*length += written;
	}
	inflater_free(inflater);
	return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	enum coding coding = data[0] & 1 ? CODING_DEFLATE : CODING_GZIP;
	size_t step = (size_t)data[1] * data[1] + 1, length, again;
	char *whole = malloc(MOST), *pieces = malloc(MOST);
	expect(whole != NULL && pieces != NULL);
	enum inflate_result at_once = read_in_steps(coding, data + 2, size - 2, MOST, whole, &length);
	enum inflate_result stepped = read_in_steps(coding, data + 2, size - 2, step, pieces, &again);
	expect(at_once == stepped && length == again && memcmp(whole, pieces, length) == 0);
	free(whole);
	free(pieces);
	return 0;
}
