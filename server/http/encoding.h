/*
 * encoding.h - which compression a request's body has, and which its reply may have.
 */
#ifndef ATTND_HTTP_ENCODING_H
#define ATTND_HTTP_ENCODING_H

#include "codec/coding.h"
#include "codec/problem.h"
#include "http/checks.h"

#include <stdbool.h>
#include <stddef.h>

struct page;

/* Replies shorter than this stay as they are, unless the client cannot take them so. */
#define ENCODING_LEAST 1024

/* IDENTITY with least 0: the client did not ask for any. */
struct reply_coding {
	enum coding coding;
	size_t least; /* bytes below which a reply stays as it is */
};

/* Content-Encoding: gzip, x-gzip, deflate or identity; CONTENT_ENCODING for another, and for several. */
bool encoding_of_body(const struct request_headers *headers, enum coding *coding, struct problem *problem);

/* Accept-Encoding by its q-values: gzip before deflate where they are equal, either only when it is asked for
 * and not below identity. NOT_ACCEPTABLE when it rules out all three. */
bool encoding_of_reply(const struct request_headers *headers, struct reply_coding *wanted,
                       struct problem *problem);

/* Compresses a page of the loop where that is quick: one of up to 256 KiB. What it became; the page stays as
 * it is where it is larger, shorter than least, or memory is refused. */
enum coding encoding_of_page(const struct reply_coding *wanted, struct page *page);

#endif
