/*
 * admission.h - what is decided about a request when its headers have come, before any of its body.
 */
#ifndef ATTND_HTTP_ADMISSION_H
#define ATTND_HTTP_ADMISSION_H

#include "codec/body_form.h"
#include "codec/problem.h"
#include "http/checks.h"
#include "http/context.h"
#include "http/encoding.h"
#include "http/routes.h"
#include "pipeline/registry.h"

#include <stdbool.h>
#include <stdint.h>

struct admission {
	struct route_match match;
	enum route_result result;
	struct model_instance *model; /* retained for an operation on a model, else NULL */
	uint64_t timeout_ms;          /* deadline of an operation */
	struct body_forms forms;      /* likewise */
	enum coding body_coding;      /* of an operation's body */
	struct reply_coding reply_coding;
	bool stranger; /* refused for who it is: nothing of its request is worth reading */
};

/* Looks at who asks (access.h), the route, then Accept, encodings, body type, deadline, model and queue.
 * true: let in (or OPTIONS, to be answered with match.allow); false with the problem set, and nothing
 * retained. match is set either way. */
bool admission_decide(struct admission *admission, const struct http_context *context, const char *method,
                      const char *path, const struct request_headers *headers, struct problem *problem);

/* Seconds after which a refused client may come again: the time that what waits will take, at least 1. */
uint64_t admission_retry_after_s(const struct http_context *context);

#endif
