/*
 * tokenizer_files.h - the small tokenizers of tests/text/data and others for tests. From the project's root.
 */
#ifndef ATTND_TESTS_TOKENIZER_FILES_H
#define ATTND_TESTS_TOKENIZER_FILES_H

#include "text/tokenizer.h"

/* Opens the tokenizer of a folder, or fails the test. */
struct tokenizer *tokenizer_in(const char *folder);
/* The tokenizer of this tokenizer.json; the test fails if it is refused. */
struct tokenizer *tokenizer_of(const char *json);
/* The message with which this tokenizer.json is refused, for the caller to free. */
char *tokenizer_refused(const char *json);
/* Tokens as "id:start:end id:start:end", for the caller to free. */
char *tokenizer_row(const struct tokenizer *tokenizer, const char *text, size_t length, bool special);
/* The problem of a text that is refused. */
struct problem tokenizer_problem(const struct tokenizer *tokenizer, const char *text, size_t length);

#endif
