/*
 * error.h - how the library fills an attn_error.
 *
 * Messages are UTF-8 whenever the texts put into them are: what does not fit is cut between characters, so
 * a message can always be quoted in JSON.
 */
#ifndef ATTN_ERROR_H
#define ATTN_ERROR_H

#include "attn.h"

/* Sets status and message (as printf does; %m is the text of errno) and returns status. err NULL: only
 * returns. */
attn_status attn_error_set(attn_error *err, attn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the message. err NULL: nothing. */
void attn_error_prefix(attn_error *err, const char *prefix);

/* Bytes of a name from outside that a message should quote, for "%.*s": all, or the first 160 cut between
 * UTF-8 characters. */
int attn_error_quote(const char *name);

#endif
