/*
 * json_scan.h - one walk over a JSON text that takes its tensors out.
 *
 * JSON libraries pay hundreds of nanoseconds and an allocation for each number. Here a route names the places
 * where tensors may stand; an array at such a place is read straight into memory, and the rest, the envelope,
 * is copied with an index where each array stood, short enough for any JSON library. Anything but an array or
 * an object at such a place is refused, so no client can write an index itself.
 *
 * The walk checks the whole text by the grammar of RFC 8259 (UTF-8, no lone surrogates), to JSON_MAX_DEPTH
 * containers, whatever else it meets. One thread at a time; no state beyond the call.
 */
#ifndef ATTND_CODEC_JSON_SCAN_H
#define ATTND_CODEC_JSON_SCAN_H

#include "codec/problem.h"
#include "codec/tensor.h"

#include <stdbool.h>
#include <stddef.h>

#define JSON_MAX_RULES 32

/* JSON_TOKENS: integers in one list, or in lists that may differ in length; what has any other form, or an
 * integer with a sign, goes to the envelope as it stands. */
enum json_kind { JSON_FLOATS, JSON_BOOLEANS, JSON_TOKENS };

/* Rows of JSON_TOKENS at most; more are TOO_MANY_ELEMENTS. */
#define JSON_ROWS_MAX ((size_t)1 << 20)

/* A place where a tensor may stand: as a nested array there, as {"shape": [..], "data": [flat]}, or as
 * {"shape": [..], "dtype": "..", "base64": ".."}. */
struct json_rule {
	const char *pointer; /* "/query", "/projections/key": names, no indices */
	enum json_kind kind;
};

/* How it stood there: the array itself; "data" in an object, which may be empty and must have rank 1; or
 * "base64" in one, of which only the bytes are known. */
enum json_form { JSON_FORM_NESTED, JSON_FORM_DATA, JSON_FORM_BASE64 };

/* The array found at the place of a rule. */
struct json_array {
	bool present;
	enum json_form form;
	void *data;   /* malloc'd, `count` of float (JSON_FLOATS), uint8_t 0 and 1 (JSON_BOOLEANS) or bytes */
	size_t count; /* numbers in the text; all are stored unless the problem says otherwise */
	size_t rank;
	size_t dims[TENSOR_MAX_RANK];
	size_t *lengths; /* JSON_TOKENS, whose data are int64_t: [rows], malloc'd; dims say nothing then */
	size_t rows;
};

struct json_limits {
	size_t elements; /* numbers and booleans in all arrays of text together; no more are stored */
	size_t envelope; /* bytes of what is not tensors, white space aside */
};

struct json_scan {
	bool object;    /* the text is an object */
	char *envelope; /* malloc'd, terminated; NULL when it was over its limit */
	size_t envelope_length;
	struct json_array
	    arrays[JSON_MAX_RULES]; /* by rule; the envelope has the rule's number in its place */
};

/* Walks a whole text. false with SYNTAX, TOO_DEEP or MEMORY set when it cannot be read to its end. true
 * otherwise; the problem then holds the foremost (problem_note) of what the walk noted, with its pointer:
 * NOT_FINITE, NUL_ESCAPE, DUPLICATE_KEY (of arrays; other duplicates are the envelope's), RAGGED, WRONG_TYPE,
 * BEYOND_FLOAT32, BAD_VALUE (an empty array without a shape, or what is not base64), TOO_MANY_ELEMENTS,
 * BODY_TOO_LARGE. Numbers of the envelope are within float32, and
 * integers past int64 stand there as reals. problem->code must be PROBLEM_NONE before. out is
 * always set, and cleared by the caller. The executor runs parts of a large text, as many as its size says;
 * the outcome does not depend on it, save that DEADLINE is set when it was cancelled. NULL: all is done here.
 */
bool json_scan(const char *text, size_t length, const struct json_rule *rules, size_t rule_count,
               const struct json_limits *limits, attn_executor *executor, struct json_scan *out,
               struct problem *problem);
void json_scan_clear(struct json_scan *scan);

#endif
