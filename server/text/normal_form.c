#include "text/normal_form.h"

#include "text/unicode.h"

#include <stdlib.h>
#include <string.h>

/* A point of the new text; it stands for `takes` points of the old one (0: for part of the one before). */
struct item {
	uint32_t point;
	int32_t takes;
	uint8_t class; /* canonical combining class */
};

/* A starter and the marks behind it, in canonical order once sorted. */
struct block {
	struct item *items;
	struct item *sorted; /* of the same room */
	size_t count, room;
};

struct writing {
	const struct normal_form *form;
	const struct pieces *source;
	struct piece piece;
	size_t at; /* where in source the next item's origin is */
	struct pieces *out;
	struct item starter; /* when composing: what marks are tried on */
	bool has_starter;
};

/* ---- output */

static void write_item(struct writing *writing, struct item item)
{
	const struct pieces *source = writing->source;
	struct span span = {writing->piece.from, writing->piece.from};
	if (item.takes > 0 && writing->at < writing->piece.end)
		span = source->spans[writing->at];
	else if (writing->at > writing->piece.begin)
		span = source->spans[writing->at - 1];
	pieces_put(writing->out, item.point, span);
	for (int32_t i = 0; i < item.takes && writing->at < writing->piece.end; i++) {
		size_t size;
		unicode_read(source->bytes + writing->at, &size);
		writing->at += size;
	}
}

/* ---- blocks */

static bool reserve(struct block *block)
{
	if (block->count < block->room)
		return true;
	size_t room = block->room * 2 + 32;
	struct item *items = realloc(block->items, room * sizeof *items);
	block->items = items != NULL ? items : block->items;
	struct item *sorted = realloc(block->sorted, room * sizeof *sorted);
	block->sorted = sorted != NULL ? sorted : block->sorted;
	if (items == NULL || sorted == NULL)
		return false;
	block->room = room;
	return true;
}

/* Marks by class, those of one class as they came: counting, since a hostile text may have a million. */
static void sort_block(struct block *block)
{
	size_t places[257] = {0};
	if (block->count < 2)
		return;
	for (size_t i = 0; i < block->count; i++)
		places[block->items[i].class + 1]++;
	for (size_t i = 1; i < 257; i++)
		places[i] += places[i - 1];
	for (size_t i = 0; i < block->count; i++)
		block->sorted[places[block->items[i].class]++] = block->items[i];
	memcpy(block->items, block->sorted, block->count * sizeof *block->items);
}

static void write_starter(struct writing *writing)
{
	if (writing->has_starter)
		write_item(writing, writing->starter);
	writing->has_starter = false;
}

/* Composes the sorted block with the starter before it (UAX 15, D117) and writes what is known to be final.
 */
static void compose_block(struct writing *writing, struct block *block)
{
	size_t kept = 0;
	int last = -1; /* class of the last mark that was kept behind the starter */
	for (size_t i = 0; i < block->count; i++) {
		struct item item = block->items[i];
		bool blocked = last >= item.class;
		uint32_t composed = 0;
		if (writing->has_starter && !blocked)
			composed = unicode_compose(writing->starter.point, item.point);
		if (composed != 0) {
			writing->starter.point = composed;
			writing->starter.takes += item.takes;
			continue;
		}
		if (item.class == 0) {
			write_starter(writing);
			writing->starter = item;
			writing->has_starter = true;
			continue;
		}
		if (!writing->has_starter) {
			write_item(writing, item);
			continue;
		}
		last = item.class;
		block->items[kept++] = item;
	}
	if (kept > 0)
		write_starter(writing);
	for (size_t i = 0; i < kept; i++)
		write_item(writing, block->items[i]);
}

static void finish_block(struct writing *writing, struct block *block)
{
	sort_block(block);
	if (writing->form->composed) {
		compose_block(writing, block);
	} else {
		for (size_t i = 0; i < block->count; i++)
			write_item(writing, block->items[i]);
	}
	block->count = 0;
}

/* One point of the decomposition; a starter ends the block before it. */
static void take_point(struct writing *writing, struct block *block, uint32_t point, bool first)
{
	struct item item = {point, first, unicode_combining_class(point)};
	if (item.class == 0)
		finish_block(writing, block);
	if (!reserve(block)) {
		pieces_fail(writing->out, PIECES_MEMORY);
		return;
	}
	block->items[block->count++] = item;
}

void normal_form_rewrite(const void *context, const struct pieces *source, struct piece piece,
                         struct pieces *out)
{
	struct writing writing = {
	    .form = context, .source = source, .piece = piece, .at = piece.begin, .out = out};
	struct block block = {.count = 0};
	for (size_t at = piece.begin, size; at < piece.end && out->state == PIECES_GOOD; at += size) {
		uint32_t points[UNICODE_DECOMPOSED_MAX];
		uint32_t point = unicode_read(source->bytes + at, &size);
		size_t count = unicode_decompose(point, writing.form->compatible, points);
		for (size_t i = 0; i < count; i++)
			take_point(&writing, &block, points[i], i == 0);
	}
	finish_block(&writing, &block);
	write_starter(&writing);
	free(block.items);
	free(block.sorted);
}
