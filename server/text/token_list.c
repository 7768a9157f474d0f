#include "text/token_list.h"

#include <stdlib.h>

void token_list_add(struct token_list *list, uint32_t id, size_t begin, size_t end)
{
	if (list->count == list->room) {
		size_t room = list->room * 2 + 16;
		struct listed_token *tokens = realloc(list->tokens, room * sizeof *tokens);
		if (tokens == NULL) {
			list->memory = true;
			return;
		}
		list->tokens = tokens;
		list->room = room;
	}
	list->tokens[list->count++] = (struct listed_token){id, (uint32_t)begin, (uint32_t)end};
}

void token_list_clear(struct token_list *list)
{
	free(list->tokens);
	*list = (struct token_list){.tokens = NULL};
}
