/*
 * tokenizer_files.h - the tokenizer files of a model directory as one tokenizer.json.
 *
 * The older forms say less; what they leave to the class of the tokenizer (tokenizer_config.json's
 * tokenizer_class, else config.json's model_type) is written out here, as Hugging Face's converters do.
 */
#ifndef ATTND_TEXT_TOKENIZER_FILES_H
#define ATTND_TEXT_TOKENIZER_FILES_H

#include "attn.h"

#include <jansson.h>

/* *out: what tokenizer.json holds or would hold, the caller's; NULL when there are no tokenizer files. For a
 * SentencePiece model, whose file is not read, it has a model of type Unigram, with the vocabulary of
 * vocab.json if that lies beside it. */
attn_status tokenizer_files_read(const char *directory, json_t **out, attn_error *err);

#endif
