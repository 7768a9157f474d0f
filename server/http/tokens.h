/*
 * tokens.h - the bearer tokens that open the daemon, from a file.
 *
 * Immutable once loaded: to change them, load the file anew and free what was there. One thread.
 */
#ifndef ATTND_HTTP_TOKENS_H
#define ATTND_HTTP_TOKENS_H

#include "attn.h"

#include <stdbool.h>
#include <stddef.h>

#define TOKEN_MAX 256
#define TOKENS_MAX 1024

struct tokens;

/* One token a line, 1 to TOKEN_MAX visible ASCII characters; blank lines and lines that begin with # do not
 * count, space around a token neither. NULL with err set (ATTN_FILE, or ATTN_MEMORY; the message names file
 * and line, never a token) when the file cannot be read or is larger than 1 MiB, a line is no token, there
 * are none, or over TOKENS_MAX. */
struct tokens *tokens_load(const char *path, attn_error *err);
/* Wipes and frees; NULL: nothing. */
void tokens_free(struct tokens *tokens);
size_t tokens_count(const struct tokens *tokens);

/* Whether text is one of them. The time depends on how many there are and on the length of text, not on what
 * any of them holds, nor on which one matches. */
bool tokens_match(const struct tokens *tokens, const char *text);

#endif
