/*
 * word_model.h - from a word to tokens of the vocabulary: BPE, WordPiece and WordLevel.
 *
 * Read from the "model" of tokenizer.json. Immutable once made: any thread.
 */
#ifndef ATTND_TEXT_WORD_MODEL_H
#define ATTND_TEXT_WORD_MODEL_H

#include "attn.h"
#include "text/merges.h"
#include "text/token_list.h"
#include "text/vocabulary.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct word_model;

/* Types: BPE, WordPiece, WordLevel, and Unigram, which only has a vocabulary; any other is an error that
 * names it, and so is what of these is not supported (dropout). */
attn_status word_model_new(const json_t *config, struct word_model **out, attn_error *err);
void word_model_free(struct word_model *model); /* NULL is allowed */

const struct vocabulary *word_model_vocabulary(const struct word_model *model);
/* Whether it makes tokens of words at all: not for Unigram. */
bool word_model_reads(const struct word_model *model);

/* Adds the tokens of a word of well-formed UTF-8 to the list; scratch is kept from word to word. false when
 * the word has no token and the model no token for what is unknown; memory refused is noted in list and
 * scratch. */
bool word_model_encode(const struct word_model *model, const char *word, size_t length,
                       struct merging *scratch, struct token_list *list);

#endif
