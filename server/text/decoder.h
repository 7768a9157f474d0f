/*
 * decoder.h - from the texts of tokens back to one text.
 *
 * Read from the "decoder" of tokenizer.json. Immutable once made: any thread.
 */
#ifndef ATTND_TEXT_DECODER_H
#define ATTND_TEXT_DECODER_H

#include "attn.h"
#include "text/strings.h"

#include <jansson.h>

struct decoder;

/* Types: ByteLevel, WordPiece, BPEDecoder, Metaspace, Replace, ByteFallback, Fuse, Strip and Sequence; any
 * other is an error that names it. config NULL or null: tokens with a blank between them. */
attn_status decoder_new(const json_t *config, struct decoder **out, attn_error *err);
void decoder_free(struct decoder *decoder); /* NULL is allowed */

/* Changes the texts, which in the end are read one after the other; scratch is overwritten. Memory refused
 * is noted in both. The result is well-formed UTF-8 if the texts are. */
void decoder_run(const struct decoder *decoder, struct strings *texts, struct strings *scratch);

#endif
