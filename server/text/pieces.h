/*
 * pieces.h - a text on its way to tokens: its present bytes, where each came from, and the pieces it is cut
 * into.
 *
 * A step of a tokenizer either cuts pieces (the list changes, the bytes do not) or rewrites them: it walks
 * the pieces of one such text and puts what becomes of them into another. Owned by one call on one thread.
 * Errors stick: once memory is refused or the limit is met, what is put is dropped and `state` says so, so
 * that steps need not look.
 */
#ifndef ATTND_TEXT_PIECES_H
#define ATTND_TEXT_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes start up to end of the text that was given. */
struct span {
	uint32_t start, end;
};

struct piece {
	size_t begin, end; /* of bytes; begin < end */
	uint32_t from;     /* where its original begins */
	int64_t token;     /* an added token's id, which no later step touches; -1: text */
};

enum pieces_state { PIECES_GOOD, PIECES_MEMORY, PIECES_TOO_LONG, PIECES_TOO_HARD };

struct pieces {
	char *bytes;        /* well-formed UTF-8 */
	struct span *spans; /* [length], all bytes of a character have the same */
	size_t length, room;
	struct piece *list; /* in the order of bytes */
	size_t count, list_room;
	size_t limit; /* bytes at most */
	enum pieces_state state;
};

/* One piece with the whole text (none when it is empty), which must be well-formed. */
void pieces_begin(struct pieces *pieces, const char *text, size_t length, size_t limit);
void pieces_clear(struct pieces *pieces);
/* No bytes and no pieces, memory kept. */
void pieces_empty(struct pieces *pieces);
void pieces_fail(struct pieces *pieces, enum pieces_state state);

/* Adds a point, or bytes begin up to end of another text, behind the bytes. */
void pieces_put(struct pieces *pieces, uint32_t point, struct span span);
void pieces_put_text(struct pieces *pieces, const char *text, struct span span);
void pieces_copy(struct pieces *pieces, const struct pieces *source, size_t begin, size_t end);
/* Adds a piece from `begin` up to the last byte put; none when nothing was. */
void pieces_close(struct pieces *pieces, size_t begin, uint32_t from, int64_t token);
/* Adds bytes begin up to end, which are there, as a piece; none when that is empty. */
void pieces_cut(struct pieces *pieces, size_t begin, size_t end, int64_t token);

/* Rewrites each piece of text of `source` into `out`, which is emptied first: rewrite puts what becomes of
 * piece into out. Pieces that are tokens are copied. Then the two change places. */
typedef void (*pieces_rewrite)(const void *context, const struct pieces *source, struct piece piece,
                               struct pieces *out);
void pieces_rewrite_all(struct pieces *source, struct pieces *out, pieces_rewrite rewrite,
                        const void *context);

/* Cuts each piece of text: cut adds to `pieces`, by pieces_cut, what becomes of `piece`. */
typedef void (*pieces_cutter)(const void *context, struct pieces *pieces, struct piece piece);
void pieces_cut_all(struct pieces *pieces, pieces_cutter cut, const void *context);

/* Which part of the original the bytes begin up to end came from; begin < end <= length. */
struct span pieces_origin(const struct pieces *pieces, size_t begin, size_t end);

#endif
