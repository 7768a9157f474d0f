/*
 * tokenizer_checks.h - what holds of every tokenizer and every text, for the fuzz drivers of both.
 */
#ifndef ATTND_TESTS_TOKENIZER_CHECKS_H
#define ATTND_TESTS_TOKENIZER_CHECKS_H

#include "text/tokenizer.h"

/* Encodes and decodes the text: it is refused with a problem that is a client's to mend, or each token has a
 * text and a range of whole characters within the text, and decodes to UTF-8. */
void check_tokenizer(const struct tokenizer *tokenizer, const char *text, size_t length);

#endif
