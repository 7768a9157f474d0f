/*
 * Any bytes as a text, for each of the small tokenizers of tests/text/data. From the project's root.
 */
#include "tokenizer_checks.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {"bert",      "bert_cased", "clip",  "gpt2",           "llama2", "llama3",
                                    "metaspace", "pieces",     "qwen2", "roberta_prefix", "words"};
#define NAMES (sizeof names / sizeof names[0])

/* There until the program ends. */
static struct tokenizer *tokenizers[NAMES];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < NAMES; i++) {
		char folder[64];
		snprintf(folder, sizeof folder, "tests/text/data/%s", names[i]);
		if (tokenizers[i] == NULL &&
		    tokenizer_open(folder, &tokenizers[i], &(attn_error){.status = ATTN_OK}) != ATTN_OK)
			abort();
		check_tokenizer(tokenizers[i], (const char *)data, size);
	}
	return 0;
}
