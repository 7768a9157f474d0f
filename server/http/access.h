/*
 * access.h - who may ask at all: the host that a request names, and its token.
 *
 * Looked at when the headers have come, before the path and the body. Loop thread only.
 */
#ifndef ATTND_HTTP_ACCESS_H
#define ATTND_HTTP_ACCESS_H

#include "codec/problem.h"
#include "http/checks.h"
#include "http/context.h"
#include "http/routes.h"

#include <stdbool.h>

/* With allowed hosts set, a Host among them, by name or by name and port (a unix socket, which no web page
 * can reach, takes any): BAD_HEADER else. With tokens loaded, Authorization: Bearer with one of them, save
 * for OPTIONS: UNAUTHORIZED else. A route that is open to all passes. */
bool access_check(const struct http_context *context, const struct request_headers *headers,
                  const struct route_match *match, enum route_result result, struct problem *problem);

#endif
