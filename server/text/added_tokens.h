/*
 * added_tokens.h - tokens that are found in the text itself, before it is cut into words: <s>, [MASK].
 *
 * Read from "added_tokens" of tokenizer.json. Immutable once made: any thread.
 */
#ifndef ATTND_TEXT_ADDED_TOKENS_H
#define ATTND_TEXT_ADDED_TOKENS_H

#include "attn.h"
#include "text/normalizer.h"
#include "text/pieces.h"
#include "text/vocabulary.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct added_tokens;

/* list NULL or null: none. Each token has the id that the vocabulary gives its text or, when it is not in
 * there, the next one: a file that says otherwise is refused. Tokens that are "normalized" are looked for as
 * the normalizer leaves them. */
attn_status added_tokens_new(const json_t *list, const struct vocabulary *vocabulary,
                             const struct normalizer *normalizer, struct added_tokens **out, attn_error *err);
void added_tokens_free(struct added_tokens *added); /* NULL is allowed */

/* 1 + the largest id; 0 without tokens. */
size_t added_tokens_size(const struct added_tokens *added);
/* The text of an id, as it is looked for; NULL where it is not of an added token. *special: it says nothing
 * itself. */
const char *added_tokens_text(const struct added_tokens *added, uint32_t id, bool *special);

/* Cuts the tokens out of the pieces of text: those looked for in text as it came (normalized false), or in
 * normalized text. Leftmost first, of those the longest. */
void added_tokens_cut(const struct added_tokens *added, bool normalized, struct pieces *pieces);

#endif
