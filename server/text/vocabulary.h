/*
 * vocabulary.h - tokens by text and by id.
 *
 * Immutable once read: any thread. Texts are UTF-8 without NUL.
 */
#ifndef ATTND_TEXT_VOCABULARY_H
#define ATTND_TEXT_VOCABULARY_H

#include "attn.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct vocabulary;

#define VOCABULARY_NONE UINT32_MAX

/* From an object of token to id, or a list of [token, score] (ids count from 0). Ids are below 2^24, no two
 * tokens have the same; there may be holes. The error names the token. */
attn_status vocabulary_new(const json_t *tokens, struct vocabulary **out, attn_error *err);
void vocabulary_free(struct vocabulary *vocabulary); /* NULL is allowed */

/* 1 + the largest id; 0 without tokens. */
size_t vocabulary_size(const struct vocabulary *vocabulary);
/* How many tokens there are. */
size_t vocabulary_count(const struct vocabulary *vocabulary);
/* Bytes of the longest token. */
size_t vocabulary_longest(const struct vocabulary *vocabulary);
/* The text of an id, NULL where there is none. */
const char *vocabulary_token(const struct vocabulary *vocabulary, uint32_t id);

/* The id of a text of `length` bytes, or VOCABULARY_NONE. */
uint32_t vocabulary_find(const struct vocabulary *vocabulary, const char *text, size_t length);

/* A hash that grows with the text: vocabulary_hash(vocabulary_hash(VOCABULARY_HASH, a), b) is that of a and
 * b together. */
#define VOCABULARY_HASH UINT64_C(0xCBF29CE484222325)
uint64_t vocabulary_hash(uint64_t hash, const char *text, size_t length);
/* As vocabulary_find, of two texts together whose hash is known. */
uint32_t vocabulary_find_hashed(const struct vocabulary *vocabulary, uint64_t hash, const char *head,
                                size_t head_length, const char *tail, size_t tail_length);

#endif
