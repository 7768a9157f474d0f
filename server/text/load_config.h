/*
 * load_config.h - values of a tokenizer's files, or an error that names the key. One thread at a time.
 *
 * Every function returns the status and fills err when it is not ATTN_OK: ATTN_CONFIG for what a file may not
 * ask, ATTN_FORMAT for what a file of its form may not hold, ATTN_FILE, ATTN_MEMORY.
 */
#ifndef ATTND_TEXT_LOAD_CONFIG_H
#define ATTND_TEXT_LOAD_CONFIG_H

#include "attn.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Fills err as printf does; what comes from outside is cut to fit between characters. */
attn_status load_failed(attn_error *err, attn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
attn_status load_no_memory(attn_error *err);

/* A member of an object; absent and null give the fallback. */
attn_status load_flag(const json_t *config, const char *key, bool fallback, bool *out, attn_error *err);
attn_status load_string(const json_t *config, const char *key, const char *fallback, const char **out,
                        attn_error *err);
/* A whole number from 0 to most. */
attn_status load_count(const json_t *config, const char *key, size_t fallback, size_t most, size_t *out,
                       attn_error *err);
/* The required name of what an object is: its "type". */
attn_status load_type(const json_t *config, const char *what, const char **out, attn_error *err);

/* The index of the word in the list (NULL behind the last), or the length of the list. */
size_t load_choice(const char *word, const char *const *words);

/* A regular file of at most 64 MiB, malloc'd and terminated; *out NULL when there is no such file. */
attn_status load_file(const char *directory, const char *name, char **out, size_t *length, attn_error *err);
/* A file that holds one JSON object without duplicate keys; *out NULL when there is no such file. */
attn_status load_json(const char *directory, const char *name, json_t **out, attn_error *err);
/* The same of a text; name is what the message calls it. */
attn_status load_json_text(const char *name, const char *text, size_t length, json_t **out, attn_error *err);

#endif
