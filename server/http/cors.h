/*
 * cors.h - which web pages of other origins may read a reply (the Fetch standard's CORS protocol).
 */
#ifndef ATTND_HTTP_CORS_H
#define ATTND_HTTP_CORS_H

#include "http/checks.h"

#include <stdbool.h>

#define CORS_EXPOSED "X-Request-Id, Server-Timing, X-Batch-Size, Retry-After"
#define CORS_REQUEST_HEADERS                                                                                 \
	"Authorization, Content-Type, Content-Encoding, X-Request-Id, X-Timeout-Ms, traceparent"
#define CORS_MAX_AGE_S 600

struct cors {
	const char *origin; /* of Access-Control-Allow-Origin, or NULL: no page may */
	bool varies;        /* another Origin may get another reply */
	bool preflight;     /* a browser asks what it may send */
};

/* allowed: the setting allowed_origins, or NULL. The strings are those of the arguments. */
struct cors cors_decide(const char *allowed, const char *method, const struct request_headers *headers);

#endif
