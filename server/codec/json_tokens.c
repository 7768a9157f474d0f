#include "codec/json_walk.h"

#include <stdlib.h>

/* Numbers and rows that a new list has room for. */
#define FIRST_ROOM 64
/* Digits that any int64 has room for. */
#define DIGITS_MAX 18

/* What is read: past a limit numbers and rows are counted and no more stored. */
struct tokens {
	struct json_walk *walk;
	struct json_array *out;
	size_t room, row_room;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* An integer without sign, fraction and exponent; false leaves nothing to go on from. */
static bool take_integer(struct json_cursor *cursor, int64_t *out)
{
	const char *begin = cursor->at;
	int64_t number = 0;
	while (is_digit(json_peek(cursor)) && cursor->at - begin < DIGITS_MAX)
		number = 10 * number + (*cursor->at++ - '0');
	*out = number;
	char after = json_peek(cursor);
	bool leading_zero = cursor->at - begin > 1 && *begin == '0';
	return cursor->at > begin && !leading_zero && !is_digit(after) && after != '.' && (after | 32) != 'e';
}

/* A list grown to twice its size where it is full; false: no memory. */
static bool grow(void **list, size_t count, size_t *room, size_t size)
{
	if (count < *room)
		return true;
	size_t wanted = *room > 0 ? 2 * *room : FIRST_ROOM;
	void *grown = realloc(*list, wanted * size);
	if (grown == NULL)
		return false;
	*list = grown;
	*room = wanted;
	return true;
}

static bool store(struct tokens *tokens, int64_t number)
{
	struct json_array *out = tokens->out;
	if (out->count < tokens->walk->limits->elements) {
		if (!grow(&out->data, out->count, &tokens->room, sizeof(number)))
			return json_walk_memory(tokens->walk);
		((int64_t *)out->data)[out->count] = number;
	}
	out->count++;
	return true;
}

static bool store_row(struct tokens *tokens, size_t length)
{
	struct json_array *out = tokens->out;
	if (out->rows < JSON_ROWS_MAX) {
		void *lengths = out->lengths;
		bool grown = grow(&lengths, out->rows, &tokens->row_room, sizeof(*out->lengths));
		out->lengths = lengths;
		if (!grown)
			return json_walk_memory(tokens->walk);
		out->lengths[out->rows] = length;
	}
	out->rows++;
	return true;
}

/* Behind an element: past a comma, *more, or the bracket; false at anything else. */
static bool take_next(struct json_cursor *cursor, bool *more)
{
	json_skip_space(cursor);
	char c = json_peek(cursor);
	*more = c == ',';
	cursor->at += c == ',' || c == ']';
	json_skip_space(cursor);
	return c == ',' || c == ']';
}

/* Past the bracket; *more: something stands in it. */
static void open_list(struct json_cursor *cursor, bool *more)
{
	cursor->at++;
	json_skip_space(cursor);
	*more = json_peek(cursor) != ']';
	cursor->at += !*more;
}

/* One row, the cursor at its bracket. *plain: it is one. */
static bool take_row(struct tokens *tokens, bool *plain)
{
	struct json_cursor *cursor = &tokens->walk->cursor;
	size_t before = tokens->out->count;
	bool more;
	open_list(cursor, &more);
	while (more) {
		int64_t number;
		*plain = take_integer(cursor, &number);
		if (!*plain)
			return true;
		if (!store(tokens, number))
			return false;
		*plain = take_next(cursor, &more);
		if (!*plain)
			return true;
	}
	return store_row(tokens, tokens->out->count - before);
}

static bool take_rows(struct tokens *tokens, bool *plain)
{
	struct json_cursor *cursor = &tokens->walk->cursor;
	bool more;
	open_list(cursor, &more);
	while (more && *plain) {
		*plain = json_peek(cursor) == '[';
		if (!json_walk_wanted(tokens->walk) || (*plain && !take_row(tokens, plain)))
			return false;
		*plain = *plain && take_next(cursor, &more);
	}
	return true;
}

/* Notes what is over its limit; the walk stands at the whole. */
static void note_limits(struct tokens *tokens)
{
	tokens->walk->elements += tokens->out->count;
	if (tokens->out->rows > JSON_ROWS_MAX)
		json_walk_note(tokens->walk, PROBLEM_TOO_MANY_ELEMENTS,
		               "a batch has at most 1048576 sequences");
}

bool json_walk_tokens(struct json_walk *walk, struct json_array *out, bool *taken)
{
	struct tokens tokens = {.walk = walk, .out = out};
	const char *begin = walk->cursor.at;
	struct json_cursor ahead = walk->cursor;
	bool plain = true, more;
	open_list(&ahead, &more);
	bool batched = json_peek(&ahead) == '[';
	plain = more;
	bool whole = !plain || (batched ? take_rows(&tokens, &plain) : take_row(&tokens, &plain));
	*taken = whole && plain;
	if (*taken) {
		out->present = true;
		out->form = JSON_FORM_NESTED;
		out->rank = batched ? 2 : 1;
		note_limits(&tokens);
		return true;
	}
	free(out->data);
	free(out->lengths);
	*out = (struct json_array){0};
	walk->cursor.at = begin;
	return whole;
}
