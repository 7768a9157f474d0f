/*
 * tokenizer.h - from text to the tokens of a model and back.
 *
 * Does what the tokenizer files of a model directory ask, in the order of the Hugging Face tokenizers: added
 * tokens, normalizer, pre-tokenizer, model, post-processor. Ids and ranges are those of that implementation;
 * what a file asks that is not done here is an error when it is opened. Immutable once open: any thread.
 */
#ifndef ATTND_TEXT_TOKENIZER_H
#define ATTND_TEXT_TOKENIZER_H

#include "attn.h"
#include "codec/problem.h"
#include "codec/text_reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tokenizer;

/* The tokenizer for code that does not know it; tokenizer NULL is allowed. */
struct text_reader tokenizer_reader(const struct tokenizer *tokenizer);

/* Bytes of one text at most. */
#define TOKENIZER_TEXT_MAX ((size_t)1 << 20)

/* Reads the first there is of tokenizer.json; vocab.txt; vocab.json with merges.txt; vocab.json alone, whose
 * tokens are single characters; a SentencePiece model (see tokenizer_files.h). *out NULL with ATTN_OK when
 * there is none. err->message names file and key. */
attn_status tokenizer_open(const char *directory, struct tokenizer **out, attn_error *err);
/* The same of the text of a tokenizer.json. */
attn_status tokenizer_parse(const char *text, size_t length, struct tokenizer **out, attn_error *err);
void tokenizer_free(struct tokenizer *tokenizer); /* NULL is allowed */

/* 1 + the largest id that has a text; 0 when none has. */
size_t tokenizer_size(const struct tokenizer *tokenizer);
/* The text of an id as the vocabulary has it, which lives as long as the tokenizer; NULL where there is none.
 */
const char *tokenizer_token(const struct tokenizer *tokenizer, int64_t id);
/* Why text is not accepted, only tokens: SentencePiece. NULL: it is. */
const char *tokenizer_refusal(const struct tokenizer *tokenizer);

/* Tokens of a text, which may be empty; special: with those that the post-processor puts around it. false
 * with the problem set at `pointer`: BAD_ENCODING for what is not UTF-8, BAD_VALUE for a character that has
 * no token, NO_TOKENIZER for a model that reads no text, TOO_MANY_ELEMENTS past TOKENIZER_TEXT_MAX or what
 * grows without bound, MEMORY. */
bool tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t length, bool special,
                      const char *pointer, struct text_tokens *out, struct problem *problem);
/* The text of tokens, malloc'd and terminated; ids without a text are left out, with skip_special so are
 * special tokens. MEMORY; NO_TOKENIZER as above. */
bool tokenizer_decode(const struct tokenizer *tokenizer, const int64_t *ids, size_t count, bool skip_special,
                      char **out, size_t *length, struct problem *problem);

#endif
