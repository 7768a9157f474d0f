/*
 * checks.h - what a request's headers must satisfy before anything else looks at it.
 *
 * The headers are gathered once into struct request_headers; the checks are pure functions of it that fill
 * a struct problem. Strings belong to whoever gathered them.
 */
#ifndef ATTND_HTTP_CHECKS_H
#define ATTND_HTTP_CHECKS_H

#include "codec/body_form.h"
#include "codec/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REQUEST_ID_MAX 128
#define HEADER_LINES_MAX 8

/* The values of a header that may come in several lines, which count together. */
struct header_lines {
	const char *text[HEADER_LINES_MAX]; /* lines over the maximum only count */
	size_t count;
};

/* The first value of each header that we read, NULL when it is absent, and how often some came. */
struct request_headers {
	const char *content_length, *transfer_encoding, *content_type, *content_encoding;
	const char *expect, *timeout, *request_id, *traceparent;
	const char *host, *authorization, *origin;
	const char *asked_method; /* Access-Control-Request-Method */
	struct header_lines accept, accept_encoding;
	size_t hosts, content_lengths, transfer_encodings, content_encodings, authorizations, origins;
};

/* Takes note of one header; names are compared without case. value NULL is an empty one. */
void headers_note(struct request_headers *headers, const char *name, const char *value);

/* Is there a body, and its length as announced. A Content-Length beyond uint64_t counts as UINT64_MAX. */
bool headers_have_body(const struct request_headers *headers);
bool headers_chunked(const struct request_headers *headers);
uint64_t headers_length(const struct request_headers *headers);
/* The client waits for 100 Continue before it sends the body. */
bool headers_expect_continue(const struct request_headers *headers, const char *version);

/* Where the body ends must be beyond doubt, and HTTP/1.1 needs one Host: BAD_HEADER else, and the
 * connection cannot be used any more. */
bool check_framing(const struct request_headers *headers, const char *version, struct problem *problem);
/* The reply will be of media type `type` ("application/json"): NOT_ACCEPTABLE when Accept rules it out. */
bool check_accept(const struct request_headers *headers, const char *type, struct problem *problem);
/* The same of a reply that may have any form: the one whose media type Accept gives the highest quality, of
 * equals the one it names more closely, then the first. */
bool check_reply_form(const struct request_headers *headers, enum body_form *form, struct problem *problem);
/* The body must have the media type of a form: MEDIA_TYPE else. */
bool check_content(const struct request_headers *headers, enum body_form *form, struct problem *problem);
/* X-Timeout-Ms in 1 to limit_ms: *timeout_ms is it, or limit_ms without the header. BAD_HEADER else. */
bool check_timeout(const struct request_headers *headers, uint64_t limit_ms, uint64_t *timeout_ms,
                   struct problem *problem);
/* 1 to REQUEST_ID_MAX visible ASCII characters. NULL is not usable. */
bool request_id_usable(const char *id);

#endif
