#include "codec/text_reader.h"

#include <stdlib.h>

void text_tokens_clear(struct text_tokens *tokens)
{
	free(tokens->ids);
	free(tokens->ranges);
	*tokens = (struct text_tokens){.ids = NULL};
}
