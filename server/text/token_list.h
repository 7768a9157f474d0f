/*
 * token_list.h - tokens as they come: id and the bytes of the word each stands for. Owned by one call.
 *
 * Errors stick, as in pieces.h.
 */
#ifndef ATTND_TEXT_TOKEN_LIST_H
#define ATTND_TEXT_TOKEN_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct listed_token {
	uint32_t id;
	uint32_t begin, end; /* bytes of the word */
};

struct token_list {
	struct listed_token *tokens;
	size_t count, room;
	bool memory; /* was refused */
};

void token_list_add(struct token_list *list, uint32_t id, size_t begin, size_t end);
void token_list_clear(struct token_list *list);

#endif
