/*
 * post_processor.h - special tokens around a sequence, and blanks taken off the ends of its tokens' ranges.
 *
 * Read from the "post_processor" of tokenizer.json. Immutable once made: any thread.
 */
#ifndef ATTND_TEXT_POST_PROCESSOR_H
#define ATTND_TEXT_POST_PROCESSOR_H

#include "attn.h"
#include "text/pieces.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POST_SPECIALS_MAX 16

struct post_processor {
	uint32_t before[POST_SPECIALS_MAX], after[POST_SPECIALS_MAX]; /* ids around a sequence */
	size_t before_count, after_count;
	bool specials;    /* whether one of the parts put them there */
	bool trims;       /* take blanks off ranges */
	bool keeps_blank; /* but leave the one that was put before the first word */
};

/* Types: TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel and Sequence; any other is an error
 * that names it. config NULL or null: nothing is done. */
attn_status post_processor_read(const json_t *config, struct post_processor *out, attn_error *err);

/* The range of token number `index` of a sequence, whose text as a token is `token` and which stands for
 * `span` of the original `text`. */
struct span post_processor_trim(const struct post_processor *post, size_t index, const char *token,
                                size_t length, const char *text, struct span span);

#endif
