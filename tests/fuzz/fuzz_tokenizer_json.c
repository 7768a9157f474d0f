/*
 * Any bytes as a tokenizer.json: refused with a message, or a tokenizer that reads texts as one should.
 */
#include "tokenizer_checks.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const texts[] = {
    "",
    "ab a  b\tab\n",
    ("It's caf\xC3\xA9 e\xCC\x81\xCC\xA3 \xEF\xAC\x81 \xE4\xBD\xA0\xE5\xA5\xBD \xF0\x9F\x98\x80 12 <s>[MASK] "
     "\xE2\x96\x81x"),
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tokenizer *tokenizer = NULL;
	attn_error error = {.status = ATTN_OK};
	attn_status status = tokenizer_parse((const char *)data, size, &tokenizer, &error);
	if (status != ATTN_OK) {
		if (tokenizer != NULL || error.status != status || error.message[0] == '\0')
			abort();
		return 0;
	}
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		check_tokenizer(tokenizer, texts[i], strlen(texts[i]));
	tokenizer_free(tokenizer);
	return 0;
}
