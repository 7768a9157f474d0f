/*
 * byte_reader.h - a tokenizer for tests that know no other: a token of each byte.
 *
 * The token of a byte is the byte modulo 50, between a special token 1 and a special token 2; its text is the
 * character '!' + id, so that quotes and backslashes are among them. Tokens 40 to 49 have no text. A text
 * that begins with '~' is refused.
 */
#ifndef ATTND_TESTS_BYTE_READER_H
#define ATTND_TESTS_BYTE_READER_H

#include "codec/text_reader.h"

struct text_reader byte_reader(void);

#endif
