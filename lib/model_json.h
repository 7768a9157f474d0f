/*
 * model_json.h - JSON files of a model directory.
 */
#ifndef ATTN_MODEL_JSON_H
#define ATTN_MODEL_JSON_H

#include "attn.h"

#include <jansson.h>

/* Reads a whole text, duplicate names refused. NULL with error filled; for want of memory its text is empty.
 *
 * jansson 2.14 keeps the bytes of the word it reads in a buffer that it enlarges byte by byte as the word
 * comes in; where that is refused it leaves the byte out and goes on: with another name or number, past the
 * end of a string, or into an assertion. So the text is given to it behind a string as long as the longest
 * word, byte by byte, and no more once errno says that memory was refused. Then the buffer is large enough
 * for all that follows. */
json_t *attn_model_json_parse(const char *text, size_t length, json_error_t *error);

/* Reads a regular file of at most 64 MiB that holds one JSON object without duplicate keys; the caller
 * decrefs it. ATTN_FILE, ATTN_FORMAT; the message names the path. */
attn_status attn_model_json_load(const char *path, json_t **out, attn_error *err);

#endif
