/*
 * problem.h - what can be wrong with a request, as RFC 9457 problem details.
 *
 * One X-macro names every problem: its code in replies, its HTTP status, its title. Everything that
 * refuses a request fills a struct problem; server/http turns it into a reply. Plain data: any thread.
 */
#ifndef ATTND_CODEC_PROBLEM_H
#define ATTND_CODEC_PROBLEM_H

#include "attn.h"

#include <stdbool.h>
#include <stddef.h>

/* X(NAME, code, HTTP status, title) */
#define PROBLEM_MAP(X)                                                                                       \
	X(NONE, "none", 200, "No problem")                                                                   \
	X(SYNTAX, "syntax", 400, "The body is not JSON")                                                     \
	X(BAD_SAFETENSORS, "bad-safetensors", 400, "The body is not in the safetensors format")              \
	X(TOO_DEEP, "too-deep", 400, "The body is nested too deeply")                                        \
	X(DUPLICATE_KEY, "duplicate-key", 400, "An object names a key twice")                                \
	X(NUL_ESCAPE, "nul-escape", 400, "A string holds an escaped NUL")                                    \
	X(NOT_AN_OBJECT, "not-an-object", 400, "The body is not a JSON object")                              \
	X(UNKNOWN_FIELD, "unknown-field", 400, "A field is not known")                                       \
	X(MISSING_FIELD, "missing-field", 400, "A required field is missing")                                \
	X(WRONG_TYPE, "wrong-type", 400, "A field has the wrong type")                                       \
	X(BAD_VALUE, "bad-value", 400, "A field has a value out of its range")                               \
	X(RAGGED, "ragged", 400, "Nested arrays differ in length")                                           \
	X(SHAPE_MISMATCH, "shape-mismatch", 400, "Shapes do not fit each other")                             \
	X(SHAPE_OVERFLOW, "shape-overflow", 400, "The product of a shape overflows")                         \
	X(ZERO_WIDTH, "zero-width", 400, "A tensor has no width")                                            \
	X(HEADS, "heads", 400, "Heads do not divide")                                                        \
	X(NO_STACK, "no-stack", 400, "The model is attention without a stack")                               \
	X(NO_TOKENIZER, "no-tokenizer", 400, "The model reads no text")                                      \
	X(NOT_FINITE, "not-finite", 400, "A number is NaN or infinite")                                      \
	X(BEYOND_FLOAT32, "beyond-float32", 400, "A number is beyond float32")                               \
	X(BAD_ENCODING, "bad-encoding", 400, "The body does not decode")                                     \
	X(BAD_HEADER, "bad-header", 400, "A request header is not acceptable")                               \
	X(UNAUTHORIZED, "unauthorized", 401, "A token is required")                                          \
	X(NO_SUCH_PATH, "no-such-path", 404, "No such path")                                                 \
	X(NO_SUCH_MODEL, "no-such-model", 404, "No such model")                                              \
	X(METHOD, "method-not-allowed", 405, "The method is not allowed here")                               \
	X(NOT_ACCEPTABLE, "not-acceptable", 406, "No reply in an accepted media type")                       \
	X(BODY_TOO_LARGE, "body-too-large", 413, "The body is over its limit")                               \
	X(SEQUENCE_TOO_LONG, "sequence-too-long", 413, "A sequence is over its limit")                       \
	X(TOO_MANY_ELEMENTS, "too-many-elements", 413, "The request holds too many elements")                \
	X(REPLY_TOO_LARGE, "reply-too-large", 413, "The reply would be over its limit")                      \
	X(NEVER_FITS, "never-fits", 413, "The request can never fit the memory budget")                      \
	X(MEDIA_TYPE, "media-type", 415, "The media type is not supported")                                  \
	X(CONTENT_ENCODING, "content-encoding", 415, "The content encoding is not supported")                \
	X(RESULT_NOT_FINITE, "result-not-finite", 422, "The result is not finite and text cannot say it")    \
	X(QUEUE_FULL, "queue-full", 429, "Too many requests are waiting")                                    \
	X(BUDGET_FULL, "budget-full", 429, "The memory budget is in use")                                    \
	X(MEMORY, "out-of-memory", 500, "The system refused memory")                                         \
	X(INTERNAL, "internal", 500, "The daemon failed")                                                    \
	X(NOT_READY, "not-ready", 503, "The daemon is starting or a model is not ready")                     \
	X(DRAINING, "draining", 503, "The daemon is stopping")                                               \
	X(DEADLINE, "deadline", 504, "The deadline passed")

enum problem_code {
#define X(name, code, status, title) PROBLEM_##name,
	PROBLEM_MAP(X)
#undef X
};

struct problem {
	enum problem_code code; /* PROBLEM_NONE: all is well */
	char pointer[192];      /* JSON pointer (RFC 6901) of the offending field, "" for the whole body */
	char detail[384];       /* one sentence with the field, the value found and the limit */
};

const char *problem_code_text(enum problem_code code);
const char *problem_title(enum problem_code code);
int problem_status(enum problem_code code);

/* Fills the problem and returns false, so that a check can say `return problem_set(...)`. A problem
 * already set is kept: the first one found is the one told. pointer and detail are cut to fit. */
bool problem_set(struct problem *problem, enum problem_code code, const char *pointer, const char *format,
                 ...) __attribute__((format(printf, 4, 5)));

/* The same, save that of two problems the one that comes first in the order of API errors is kept (not JSON;
 * overflow of a shape; count of data against shape; limits; meaning), and of equals the one noted first. For
 * checks that go on after a problem. */
bool problem_note(struct problem *problem, enum problem_code code, const char *pointer, const char *format,
                  ...) __attribute__((format(printf, 4, 5)));

/* Whether problem_note would keep a problem of that code: where making its words takes time, a body may hold
 * millions of them. */
bool problem_tells(const struct problem *problem, enum problem_code code);

/* The problem that a status of the library is to a client (memory 500, cancelled 504, the rest 500). */
bool problem_set_status(struct problem *problem, attn_status status);

/* Writes {"type","title","status","detail","code","pointer"} as JSON to out, always whole and terminated;
 * returns its length. size at least PROBLEM_JSON_MAX. */
#define PROBLEM_JSON_MAX 4096
size_t problem_to_json(const struct problem *problem, char *out, size_t size);

#endif
