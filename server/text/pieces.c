#include "text/pieces.h"

#include "codec/utf8.h"
#include "text/unicode.h"

#include <stdlib.h>
#include <string.h>

void pieces_fail(struct pieces *pieces, enum pieces_state state)
{
	if (pieces->state == PIECES_GOOD)
		pieces->state = state;
}

void pieces_clear(struct pieces *pieces)
{
	free(pieces->bytes);
	free(pieces->spans);
	free(pieces->list);
	*pieces = (struct pieces){.limit = pieces->limit};
}

void pieces_empty(struct pieces *pieces)
{
	pieces->length = 0;
	pieces->count = 0;
}

/* Room for `more` bytes behind those there are; false when there is none, and that is noted. */
static bool reserve(struct pieces *pieces, size_t more)
{
	if (pieces->state != PIECES_GOOD)
		return false;
	if (more > pieces->limit - pieces->length) {
		pieces_fail(pieces, PIECES_TOO_LONG);
		return false;
	}
	if (more <= pieces->room - pieces->length)
		return true;
	size_t room = (pieces->length + more) + (pieces->length + more) / 2 + 64;
	char *bytes = realloc(pieces->bytes, room);
	pieces->bytes = bytes != NULL ? bytes : pieces->bytes;
	struct span *spans = realloc(pieces->spans, room * sizeof *spans);
	pieces->spans = spans != NULL ? spans : pieces->spans;
	if (bytes == NULL || spans == NULL) {
		pieces_fail(pieces, PIECES_MEMORY);
		return false;
	}
	pieces->room = room;
	return true;
}

static void put(struct pieces *pieces, const char *text, size_t length, struct span span)
{
	if (length == 0 || !reserve(pieces, length))
		return;
	memcpy(pieces->bytes + pieces->length, text, length);
	for (size_t i = 0; i < length; i++)
		pieces->spans[pieces->length + i] = span;
	pieces->length += length;
}

void pieces_put(struct pieces *pieces, uint32_t point, struct span span)
{
	char text[4];
	put(pieces, text, utf8_encode(point, text), span);
}

void pieces_put_text(struct pieces *pieces, const char *text, struct span span)
{
	put(pieces, text, strlen(text), span);
}

void pieces_copy(struct pieces *pieces, const struct pieces *source, size_t begin, size_t end)
{
	size_t length = end - begin;
	if (length == 0 || !reserve(pieces, length))
		return;
	memcpy(pieces->bytes + pieces->length, source->bytes + begin, length);
	memcpy(pieces->spans + pieces->length, source->spans + begin, length * sizeof(struct span));
	pieces->length += length;
}

static void add(struct pieces *pieces, struct piece piece)
{
	if (piece.begin == piece.end || pieces->state != PIECES_GOOD)
		return;
	if (pieces->count == pieces->list_room) {
		size_t room = pieces->list_room * 2 + 16;
		struct piece *list = realloc(pieces->list, room * sizeof *list);
		if (list == NULL) {
			pieces_fail(pieces, PIECES_MEMORY);
			return;
		}
		pieces->list = list;
		pieces->list_room = room;
	}
	pieces->list[pieces->count++] = piece;
}

void pieces_close(struct pieces *pieces, size_t begin, uint32_t from, int64_t token)
{
	add(pieces, (struct piece){.begin = begin, .end = pieces->length, .from = from, .token = token});
}

void pieces_cut(struct pieces *pieces, size_t begin, size_t end, int64_t token)
{
	if (begin < end)
		add(pieces, (struct piece){begin, end, pieces->spans[begin].start, token});
}

struct span pieces_origin(const struct pieces *pieces, size_t begin, size_t end)
{
	return (struct span){pieces->spans[begin].start, pieces->spans[end - 1].end};
}

void pieces_begin(struct pieces *pieces, const char *text, size_t length, size_t limit)
{
	*pieces = (struct pieces){.limit = limit};
	for (size_t at = 0, size; at < length; at += size) {
		unicode_read(text + at, &size);
		put(pieces, text + at, size, (struct span){(uint32_t)at, (uint32_t)(at + size)});
	}
	pieces_close(pieces, 0, 0, -1);
}

void pieces_rewrite_all(struct pieces *source, struct pieces *out, pieces_rewrite rewrite,
                        const void *context)
{
	pieces_empty(out);
	for (size_t i = 0; i < source->count && out->state == PIECES_GOOD; i++) {
		struct piece piece = source->list[i];
		size_t begin = out->length;
		if (piece.token >= 0)
			pieces_copy(out, source, piece.begin, piece.end);
		else
			rewrite(context, source, piece, out);
		pieces_close(out, begin, piece.from, piece.token);
	}
	struct pieces swap = *source;
	*source = *out;
	*out = swap;
	pieces_fail(source, out->state);
}

void pieces_cut_all(struct pieces *pieces, pieces_cutter cut, const void *context)
{
	struct piece *list = pieces->list;
	size_t count = pieces->count;
	pieces->list = NULL;
	pieces->count = 0;
	pieces->list_room = 0;
	for (size_t i = 0; i < count && pieces->state == PIECES_GOOD; i++) {
		if (list[i].token >= 0)
			add(pieces, list[i]);
		else
			cut(context, pieces, list[i]);
	}
	free(list);
}
