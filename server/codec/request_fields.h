/*
 * request_fields.h - readers of the fields that requests of several routes have, and of the forms that fields
 * share.
 *
 * Each reads one value of an envelope, whose place is pointer; false with the problem set. One thread at a
 * time.
 */
#ifndef ATTND_CODEC_REQUEST_FIELDS_H
#define ATTND_CODEC_REQUEST_FIELDS_H

#include "attn.h"
#include "codec/attention_request.h"
#include "codec/json_body.h"
#include "codec/json_value.h"

/* UNKNOWN_FIELD at parent/name when name is not one of the names, with the nearest that is. */
bool request_known_member(const char *parent, const char *name, const char *const *names, size_t count,
                          struct problem *problem);

/* Reads the member of that name, a field of the route, into arg. */
typedef bool request_read_member(const char *name, const json_t *value, const char *pointer, void *arg);
/* Every member of an envelope, an object, up to the first that is not known or not right. */
bool request_read_members(const json_t *envelope, body_field_known *known, request_read_member *read,
                          void *arg, struct problem *problem);

/* true or false. */
bool request_read_flag(const json_t *value, const char *pointer, bool *out, struct problem *problem);
/* An integer from 1 up. */
bool request_read_count(const json_t *value, const char *pointer, size_t *out, struct problem *problem);
/* A word, or a list of words: wanted[i] becomes true for each. */
bool request_read_words(const json_t *value, const char *pointer, const char *const *words, size_t count,
                        bool *wanted, struct problem *problem);
/* A list of integers, of any size; the caller frees its values. */
bool request_read_list(const json_t *value, const char *pointer, struct integer_list *out,
                       struct problem *problem);
/* A tensor: its numbers are json_tensor.c's, members of it that are not known are refused. */
bool request_read_tensor(const json_t *value, const char *pointer, struct problem *problem);

/* `statistics`, `precision` (0: shortest), `output_dtype`, `timeout_ms` (at most limit_ms). */
bool request_read_statistics(const json_t *value, const char *pointer, bool wanted[ATTENTION_STATISTICS],
                             struct problem *problem);
bool request_read_precision(const json_t *value, const char *pointer, int *out, struct problem *problem);
bool request_read_output_dtype(const json_t *value, const char *pointer, attn_dtype *out,
                               struct problem *problem);
bool request_read_timeout(const json_t *value, const char *pointer, uint64_t limit_ms, uint64_t *out,
                          struct problem *problem);

/* Whether `output_dtype` may be given with a reply of that form. */
bool request_dtype_allowed(enum body_form reply, struct problem *problem);

/* Index number i of a list at pointer, below count or from the end, as one from 0; BAD_VALUE names what there
 * are count of. */
bool request_resolve_index(int64_t index, size_t i, size_t count, const char *pointer, const char *name,
                           size_t *out, struct problem *problem);
/* All of them, malloc'd; NULL with the problem set. */
size_t *request_resolve_indices(const struct integer_list *list, size_t count, const char *pointer,
                                const char *name, struct problem *problem);

#endif
