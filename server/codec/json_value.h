/*
 * json_value.h - typed values out of a parsed envelope, or a problem with the pointer of what is wrong.
 *
 * Every function returns false with the problem set when the value is of another type or out of range;
 * pointer is that of the value. A real without a fraction counts as an integer. One thread at a time.
 */
#ifndef ATTND_CODEC_JSON_VALUE_H
#define ATTND_CODEC_JSON_VALUE_H

#include "codec/problem.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A list of numbers, malloc'd; values NULL where there is none. */
struct integer_list {
	int64_t *values;
	size_t count;
};
struct float_list {
	float *values;
	size_t count;
};

/* What the value is, for messages: "a string", "null", ... */
const char *json_value_kind(const json_t *value);

/* Whether the value is a number without a fraction, of any size. */
bool json_value_is_integer(const json_t *value);

bool json_value_integer(const json_t *value, const char *pointer, int64_t low, int64_t high, int64_t *out,
                        struct problem *problem);
/* Any finite float32. */
bool json_value_float(const json_t *value, const char *pointer, float *out, struct problem *problem);
/* A list of them, or a single one as a list of one; MEMORY too. The caller frees values. */
bool json_value_integers(const json_t *value, const char *pointer, int64_t low, int64_t high,
                         struct integer_list *out, struct problem *problem);
bool json_value_floats(const json_t *value, const char *pointer, struct float_list *out,
                       struct problem *problem);
/* One of the words; *out is its index. Words are listed in the message. */
bool json_value_word(const json_t *value, const char *pointer, const char *const *words, size_t count,
                     size_t *out, struct problem *problem);

#endif
