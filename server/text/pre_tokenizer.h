/*
 * pre_tokenizer.h - how a tokenizer cuts normalized text into words.
 *
 * Read from the "pre_tokenizer" of tokenizer.json. Immutable once made: any thread.
 */
#ifndef ATTND_TEXT_PRE_TOKENIZER_H
#define ATTND_TEXT_PRE_TOKENIZER_H

#include "attn.h"
#include "text/pieces.h"

#include <jansson.h>

struct pre_tokenizer;

/* Types: BertPreTokenizer, ByteLevel, Split, Digits, Punctuation, Whitespace, WhitespaceSplit, Metaspace and
 * Sequence; any other is an error that names it. config NULL or null: one that does nothing. */
attn_status pre_tokenizer_new(const json_t *config, struct pre_tokenizer **out, attn_error *err);
void pre_tokenizer_free(struct pre_tokenizer *pre_tokenizer); /* NULL is allowed */

/* Cuts (and for some types rewrites) the pieces of text; scratch is overwritten. */
void pre_tokenizer_run(const struct pre_tokenizer *pre_tokenizer, struct pieces *pieces,
                       struct pieces *scratch);

#endif
