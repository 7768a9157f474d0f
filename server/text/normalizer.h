/*
 * normalizer.h - what a tokenizer does to text before it is cut: forms, case, accents, replacements.
 *
 * Read from the "normalizer" of tokenizer.json. Immutable once made: any thread.
 */
#ifndef ATTND_TEXT_NORMALIZER_H
#define ATTND_TEXT_NORMALIZER_H

#include "attn.h"
#include "text/pieces.h"

#include <jansson.h>

struct normalizer;

/* Types: BertNormalizer, NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Replace, Prepend, ByteLevel
 * and Sequence; any other is an error that names it. config NULL or null: one that does nothing. */
attn_status normalizer_new(const json_t *config, struct normalizer **out, attn_error *err);
void normalizer_free(struct normalizer *normalizer); /* NULL is allowed */

/* Rewrites the pieces of text; scratch is overwritten. */
void normalizer_run(const struct normalizer *normalizer, struct pieces *pieces, struct pieces *scratch);

#endif
