#include "codec/binary.h"

#include "codec/large.h"

#include <endian.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool binary_is_number(attn_dtype dtype)
{
	return dtype == ATTN_FLOAT32 || dtype == ATTN_FLOAT16 || dtype == ATTN_BFLOAT16 ||
	       dtype == ATTN_FLOAT64;
}

/* The first float64 that is finite and, in float32, is not. */
static size_t find_beyond(const void *bytes, const float *floats, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t bits;
		double number;
		if (!isinf(floats[i]))
			continue;
		memcpy(&bits, (const char *)bytes + i * sizeof(bits), sizeof(bits));
		bits = le64toh(bits);
		memcpy(&number, &bits, sizeof(number));
		if (isfinite(number))
			return i;
	}
	return count;
}

float *binary_floats(attn_dtype dtype, const void *bytes, size_t count, const char *pointer,
                     struct problem *problem)
{
	float *floats = large_block(malloc(count * sizeof(*floats) + 1), count * sizeof(*floats));
	if (floats == NULL) {
		problem_note(problem, PROBLEM_MEMORY, "", "the system refused memory for %zu numbers", count);
		return NULL;
	}
	attn_to_float32(dtype, bytes, count, floats);
	size_t beyond = dtype == ATTN_FLOAT64 ? find_beyond(bytes, floats, count) : count;
	if (beyond == count)
		return floats;
	problem_note(problem, PROBLEM_BEYOND_FLOAT32, pointer,
	             "number %zu is beyond float32 (at most 3.4028235e38)", beyond);
	free(floats);
	return NULL;
}

bool binary_check_booleans(const uint8_t *bytes, size_t count, const char *pointer, struct problem *problem)
{
	for (size_t i = 0; i < count; i++) {
		if (bytes[i] > 1)
			return problem_note(problem, PROBLEM_BAD_VALUE, pointer,
			                    "boolean %zu is the byte %u, 0 or 1 is expected", i, bytes[i]);
	}
	return true;
}
