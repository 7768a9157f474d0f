#include "codec/json_survey.h"

#include "codec/numbers_rows.h"

#include <stdint.h>
#include <string.h>

#define BLOCKS 64 /* marked at once */

struct surveyor {
	struct json_survey *out;
	size_t part_bytes;
	size_t depth;                       /* brackets open */
	size_t elements;                    /* commas so far: every comma has an element on either side */
	size_t opened[TENSOR_MAX_RANK + 1]; /* by depth: the first element of the array open there */
	size_t
	    size[TENSOR_MAX_RANK + 1]; /* by depth: elements of each array, 0 before the first has closed */
};

static bool open_array(struct surveyor *surveyor)
{
	size_t most = surveyor->out->rank > 0 ? surveyor->out->rank : TENSOR_MAX_RANK;
	if (surveyor->depth == most)
		return false;
	surveyor->opened[++surveyor->depth] = surveyor->elements;
	return true;
}

/* The first array that closes is an innermost one. */
static bool close_array(struct surveyor *surveyor)
{
	struct json_survey *out = surveyor->out;
	size_t depth = surveyor->depth--;
	size_t size = surveyor->elements + 1 - surveyor->opened[depth];
	if (out->rank == 0)
		out->rank = depth;
	if (surveyor->size[depth] == 0)
		surveyor->size[depth] = size;
	return surveyor->size[depth] == size;
}

/* The whole array has closed. */
static bool take_shape(const struct surveyor *surveyor, const char *end)
{
	struct json_survey *out = surveyor->out;
	const size_t *size = surveyor->size;
	out->count = size[1];
	for (size_t i = 0; i < out->rank; i++) {
		size_t inner = i + 1 < out->rank ? size[i + 2] : 1;
		if (size[i + 1] % inner != 0)
			return false;
		out->dims[i] = size[i + 1] / inner;
	}
	out->parts[out->part_count] = (struct json_part){end, out->count};
	return true;
}

static unsigned count_bits(uint64_t bits)
{
	unsigned count = 0;
	for (; bits != 0; bits &= bits - 1)
		count++;
	return count;
}

/* The brackets of a block, one after the other; false at the array's end, *whole then, and where it turns out
 * to be no tensor. */
static bool survey_brackets(struct surveyor *surveyor, const char *block, const struct numbers_marks *marks,
                            bool *whole)
{
	size_t before = surveyor->elements;
	for (uint64_t left = marks->brackets; left != 0; left &= left - 1) {
		uint64_t bit = left & -left;
		const char *at = block + __builtin_ctzll(left);
		surveyor->elements = before + count_bits(marks->commas & (bit - 1));
		if (*at == '[' ? !open_array(surveyor) : *at != ']' || !close_array(surveyor))
			return false;
		if (surveyor->depth == 0) {
			*whole = take_shape(surveyor, at + 1);
			return false;
		}
	}
	surveyor->elements = before;
	return true;
}

/* Begins a part behind the block's first comma. */
static void begin_part(struct surveyor *surveyor, const char *block, const struct numbers_marks *marks)
{
	struct json_survey *out = surveyor->out;
	const char *at = block + __builtin_ctzll(marks->commas) + 1;
	out->parts[out->part_count++] = (struct json_part){at, surveyor->elements + 1};
}

static bool survey_block(struct surveyor *surveyor, const char *block, const struct numbers_marks *marks,
                         bool *whole)
{
	struct json_survey *out = surveyor->out;
	if (marks->brackets != 0 && !survey_brackets(surveyor, block, marks, whole))
		return false;
	size_t since = (size_t)(block - out->parts[out->part_count - 1].at);
	if (marks->commas != 0 && since >= surveyor->part_bytes)
		begin_part(surveyor, block, marks);
	surveyor->elements += marks->comma_count;
	return true;
}

/* Blocks of 64 bytes from text on; the last one may be shorter and is padded. */
static bool survey_text(struct surveyor *surveyor, const char *text, const char *end)
{
	struct numbers_marks marks[BLOCKS];
	bool whole = false;
	while (text < end) {
		size_t left = (size_t)(end - text), blocks = left / NUMBERS_BLOCK;
		char padded[NUMBERS_BLOCK] = {0};
		if (blocks == 0)
			memcpy(padded, text, left);
		const char *source = blocks == 0 ? padded : text;
		blocks = blocks == 0 ? 1 : blocks < BLOCKS ? blocks : BLOCKS;
		numbers_mark(source, blocks, marks);
		for (size_t i = 0; i < blocks; i++) {
			if (!survey_block(surveyor, text + i * NUMBERS_BLOCK, &marks[i], &whole))
				return whole;
		}
		text += left < NUMBERS_BLOCK ? left : blocks * NUMBERS_BLOCK;
	}
	return false;
}

bool json_survey_array(const char *text, const char *end, struct json_survey *out)
{
	size_t share = (size_t)(end - text) / (JSON_PARTS_MAX - 1);
	struct surveyor surveyor = {.out = out,
	                            .part_bytes = share > JSON_PART_BYTES ? share : JSON_PART_BYTES};
	out->rank = 0;
	out->part_count = 1;
	out->parts[0] = (struct json_part){text, 0};
	return survey_text(&surveyor, text, end);
}
