#include "codec/json_walk.h"

#include "codec/numbers.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Elements that a new array has room for. */
#define FIRST_ROOM 64

#define UNKNOWN SIZE_MAX

/* One array being read. Level 0 is the outermost. */
struct reader {
	struct json_walk *walk;
	struct json_array *array;
	enum json_kind kind;
	bool store;                  /* false: read on, but keep nothing more */
	size_t room;                 /* elements allocated */
	size_t leaf;                 /* level whose elements are numbers, UNKNOWN before the first */
	size_t dims[JSON_MAX_DEPTH]; /* by level, UNKNOWN before the first array of the level is closed */
};

static size_t element_size(const struct reader *reader)
{
	return reader->kind == JSON_FLOATS ? sizeof(float) : sizeof(uint8_t);
}

/* Room for one more; past the limit nothing more is stored. */
static bool reader_grow(struct reader *reader)
{
	struct json_walk *walk = reader->walk;
	if (walk->elements > walk->limits->elements) {
		reader->store = false;
		return true;
	}
	if (reader->array->count < reader->room)
		return true;
	size_t most = reader->array->count + (walk->limits->elements - walk->elements) + 1;
	size_t room = reader->room < FIRST_ROOM ? FIRST_ROOM : reader->room * 2;
	room = room > most ? most : room;
	void *data = realloc(reader->array->data, room * element_size(reader));
	if (data == NULL)
		return json_walk_memory(walk);
	reader->array->data = data;
	reader->room = room;
	return true;
}

static bool reader_store(struct reader *reader, float number, uint8_t boolean)
{
	reader->walk->elements++;
	if (reader->store && !reader_grow(reader))
		return false;
	if (reader->store && reader->kind == JSON_FLOATS)
		((float *)reader->array->data)[reader->array->count] = number;
	else if (reader->store)
		((uint8_t *)reader->array->data)[reader->array->count] = boolean;
	reader->array->count++;
	return true;
}

static bool starts_number(char c)
{
	return c == '-' || (c >= '0' && c <= '9');
}

static bool read_number(struct reader *reader)
{
	struct json_walk *walk = reader->walk;
	float value = 0;
	const char *after;
	switch (number_scan(walk->cursor.at, walk->cursor.end, &value, &after)) {
	case NUMBER_SYNTAX:
		walk->cursor.at = after;
		return json_walk_syntax(walk, "a number");
	case NUMBER_BEYOND_FLOAT32:
		json_walk_note(walk, PROBLEM_BEYOND_FLOAT32,
		               "the number is beyond float32 (at most 3.4028235e38)");
		break;
	case NUMBER_OK:
		break;
	}
	walk->cursor.at = after;
	return reader_store(reader, value, 0);
}

/* An element that is of another type than the tensor's. */
static bool read_stranger(struct reader *reader)
{
	struct json_walk *walk = reader->walk;
	char c = json_peek(&walk->cursor);
	if (reader->kind == JSON_BOOLEANS && starts_number(c))
		json_walk_note(walk, PROBLEM_WRONG_TYPE,
		               "a mask holds true and false only; numbers to add to the scores go in `bias`");
	else if (strchr("\"{tfn", c) != NULL)
		json_walk_note(walk, PROBLEM_WRONG_TYPE,
		               reader->kind == JSON_FLOATS ? "a tensor holds numbers only"
		                                           : "a mask holds true and false only");
	return json_walk_value(walk);
}

static bool read_leaf(struct reader *reader)
{
	struct json_cursor *cursor = &reader->walk->cursor;
	if (reader->kind == JSON_BOOLEANS) {
		if (json_take_word(cursor, "true"))
			return reader_store(reader, 0, 1);
		if (json_take_word(cursor, "false"))
			return reader_store(reader, 0, 0);
	} else if (json_take_not_finite(cursor)) {
		json_walk_note(reader->walk, PROBLEM_NOT_FINITE, "JSON has no NaN and no infinity");
		return reader_store(reader, 0, 0);
	} else if (starts_number(json_peek(cursor))) {
		return read_number(reader);
	}
	return read_stranger(reader);
}

/* Elements of one level are all arrays, or none is. */
static void check_level(struct reader *reader, size_t level, bool is_array)
{
	if (reader->leaf == UNKNOWN && !is_array)
		reader->leaf = level;
	if (reader->leaf == UNKNOWN)
		return;
	if (is_array && level >= reader->leaf)
		json_walk_note(reader->walk, PROBLEM_RAGGED,
		               "an array stands where its neighbours are single values");
	else if (!is_array && level != reader->leaf)
		json_walk_note(reader->walk, PROBLEM_RAGGED,
		               "a single value stands where its neighbours are arrays");
}

/* An array of `level` has closed with count elements; its place is where the walk stands. */
static void check_length(struct reader *reader, size_t level, size_t count)
{
	char detail[160];
	if (reader->dims[level] == UNKNOWN) {
		reader->dims[level] = count;
		if (count == 0 && reader->array->form == JSON_FORM_NESTED)
			json_walk_note(reader->walk, PROBLEM_BAD_VALUE,
			               "a bare [] has no shape; write an empty tensor as {\"shape\": [..], "
			               "\"data\": []}");
	} else if (reader->dims[level] != count && problem_tells(reader->walk->problem, PROBLEM_RAGGED)) {
		snprintf(detail, sizeof(detail),
		         "this array has length %zu where the first of its level has %zu", count,
		         reader->dims[level]);
		json_walk_note(reader->walk, PROBLEM_RAGGED, detail);
	}
}

static bool read_level(struct reader *reader, size_t level);

static bool read_element(struct reader *reader, size_t level)
{
	bool is_array = json_peek(&reader->walk->cursor) == '[';
	if (is_array || level != reader->leaf)
		check_level(reader, level, is_array);
	return is_array ? read_level(reader, level + 1) : read_leaf(reader);
}

/* One array with all in it. */
static bool read_level(struct reader *reader, size_t level)
{
	struct json_walk *walk = reader->walk;
	if (!json_walk_open(walk, false))
		return false;
	size_t count = 0;
	bool more = json_peek(&walk->cursor) != ']';
	if (!more)
		walk->cursor.at++;
	while (more) {
		struct json_step *step = json_path_last(&walk->path);
		step->begun = true;
		step->index = count++;
		if (!read_element(reader, level) || !json_walk_next(walk, ']', &more))
			return false;
	}
	json_path_close(&walk->path);
	check_length(reader, level, count);
	return true;
}

/* Rank and dims of what was read; the walk stands at the whole. */
static void take_shape(struct reader *reader)
{
	size_t rank = 0;
	while (rank < JSON_MAX_DEPTH && reader->dims[rank] != UNKNOWN)
		rank++;
	if (rank > TENSOR_MAX_RANK) {
		json_walk_note(reader->walk, PROBLEM_SHAPE_MISMATCH, "a tensor has at most 4 dimensions");
		return;
	}
	reader->array->rank = rank;
	memcpy(reader->array->dims, reader->dims, rank * sizeof(reader->dims[0]));
}

/* Gives back what growing took too much; data is not NULL after, however empty. */
static bool trim(struct reader *reader)
{
	size_t bytes = reader->array->count * element_size(reader);
	void *data = realloc(reader->array->data, bytes > 0 ? bytes : 1);
	if (data == NULL)
		return json_walk_memory(reader->walk);
	reader->array->data = data;
	return true;
}

bool json_walk_array(struct json_walk *walk, size_t rule, enum json_form form)
{
	struct json_array *place = &walk->out->arrays[rule];
	struct json_array again = {0};
	struct reader reader = {.walk = walk,
	                        .array = place->present ? &again : place,
	                        .kind = walk->rules[rule].kind,
	                        .store = !place->present,
	                        .leaf = UNKNOWN};
	if (place->present)
		json_walk_note_again(walk, place, form);
	reader.array->present = true;
	reader.array->form = form;
	bool taken = false;
	if (reader.store && !json_walk_plain(walk, reader.kind, place, &taken))
		return false;
	if (taken)
		return true;
	for (size_t i = 0; i < JSON_MAX_DEPTH; i++)
		reader.dims[i] = UNKNOWN;
	bool was_quiet = walk->quiet;
	walk->quiet = true;
	bool whole = read_level(&reader, 0);
	walk->quiet = was_quiet;
	if (!whole)
		return false;
	take_shape(&reader);
	return !reader.store || trim(&reader);
}
