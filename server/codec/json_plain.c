#include "codec/json_walk.h"

#include "codec/json_shape.h"
#include "codec/json_survey.h"
#include "codec/large.h"
#include "codec/numbers.h"
#include "codec/numbers_rows.h"
#include "codec/tiles.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A tensor that was surveyed. Parts are read at once, each by the shape: which brackets stand before and
 * behind an element is known from its number. */
struct plain {
	const char *begin, *end; /* of the whole text */
	enum json_kind kind;
	void *data;
	const struct json_survey *survey;
	struct json_shape shape;
};

/* Passes `count` of a byte, with white space before each. */
static bool pass(struct json_cursor *cursor, char byte, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		json_skip_space(cursor);
		if (json_peek(cursor) != byte)
			return false;
		cursor->at++;
	}
	return true;
}

/* Passes the comma between two elements of a row, and what white space stands about it. */
static bool pass_comma(struct json_cursor *cursor)
{
	if (json_peek(cursor) != ',' && !(json_skip_space(cursor), json_peek(cursor) == ','))
		return false;
	cursor->at++;
	json_skip_space(cursor);
	return true;
}

static bool read_numbers(const struct plain *plain, struct json_cursor *cursor, float *out, size_t count)
{
	size_t done = 0;
	while (done < count) {
		size_t before = (size_t)(cursor->at - plain->begin);
		size_t taken = numbers_scan_row(&cursor->at, before, plain->end, out + done, count - done);
		if (taken == 0) {
			if (number_scan(cursor->at, cursor->end, out + done, &cursor->at) != NUMBER_OK)
				return false;
			taken = 1;
		}
		done += taken;
		if (done < count && !pass_comma(cursor))
			return false;
	}
	return true;
}

static bool read_booleans(struct json_cursor *cursor, uint8_t *out, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (i > 0 && !pass_comma(cursor))
			return false;
		out[i] = json_take_word(cursor, "true");
		if (!out[i] && !json_take_word(cursor, "false"))
			return false;
	}
	return true;
}

/* Elements of one innermost array, or as many of them as the part holds. */
static bool read_row(const struct plain *plain, struct json_cursor *cursor, size_t first, size_t count)
{
	json_skip_space(cursor);
	if (plain->kind == JSON_FLOATS)
		return read_numbers(plain, cursor, (float *)plain->data + first, count);
	return read_booleans(cursor, (uint8_t *)plain->data + first, count);
}

static bool read_part(const struct plain *plain, const struct json_part *part, const struct json_part *next)
{
	struct json_cursor cursor = {part->at, next->at};
	const struct json_shape *shape = &plain->shape;
	for (size_t first = part->element; first < next->element;) {
		size_t count = json_shape_run(shape, first, next->element);
		if (!pass(&cursor, '[', json_shape_edges(shape, first)) ||
		    !read_row(plain, &cursor, first, count))
			return false;
		first += count;
		if (!pass(&cursor, ']', json_shape_edges(shape, first)))
			return false;
		if (first < json_shape_count(shape) && !pass(&cursor, ',', 1))
			return false;
	}
	return cursor.at == next->at;
}

static attn_status read_tile(void *arg, size_t tile, attn_arena *scratch)
{
	const struct plain *plain = arg;
	const struct json_part *part = &plain->survey->parts[tile];
	(void)scratch;
	return read_part(plain, part, part + 1) ? ATTN_OK : ATTN_FORMAT;
}

bool json_walk_plain(struct json_walk *walk, enum json_kind kind, struct json_array *out, bool *taken)
{
	struct json_survey survey;
	*taken = false;
	if (!json_survey_array(walk->cursor.at, walk->cursor.end, &survey) ||
	    walk->elements > walk->limits->elements || survey.count > walk->limits->elements - walk->elements)
		return true;
	size_t bytes = survey.count * (kind == JSON_FLOATS ? sizeof(float) : sizeof(uint8_t));
	struct plain plain = {.begin = walk->begin,
	                      .end = walk->cursor.end,
	                      .kind = kind,
	                      .data = large_block(malloc(bytes), bytes),
	                      .survey = &survey,
	                      .shape = json_shape_of(survey.dims, survey.rank)};
	if (plain.data == NULL)
		return json_walk_memory(walk);
	attn_status status = tiles_run(walk->executor, survey.part_count, read_tile, &plain);
	if (status != ATTN_OK) {
		free(plain.data);
		return status == ATTN_FORMAT || problem_set_status(walk->problem, status);
	}
	out->data = plain.data;
	out->count = survey.count;
	out->rank = survey.rank;
	memcpy(out->dims, survey.dims, sizeof(out->dims));
	walk->elements += survey.count;
	walk->cursor.at = survey.parts[survey.part_count].at;
	*taken = true;
	return true;
}
