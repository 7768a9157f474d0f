/*
 * reply.h - one HTTP reply: status, headers that every reply or this one carries, and a body sent without a
 * copy.
 */
#ifndef ATTND_HTTP_REPLY_H
#define ATTND_HTTP_REPLY_H

#include "codec/coding.h"
#include "codec/problem.h"
#include "http/cors.h"

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reply {
	unsigned status;
	const char *content_type; /* NULL: no body */
	void *body;
	size_t length;
	void (*release)(
	    void *owner); /* of the body, once, when it is sent or could not be; NULL: body is copied */
	void *owner;

	const char *request_id;
	bool close;        /* the connection, after this reply */
	const char *allow; /* methods, or NULL */
	struct cors cors;
	enum coding coding;     /* of the body */
	bool has_forms;         /* another Accept may get another body */
	bool encodes;           /* another Accept-Encoding may */
	bool asks_for_token;    /* WWW-Authenticate */
	bool names_codings;     /* Accept-Encoding: what a body may have */
	uint64_t retry_after_s; /* 0: none */
	const uint64_t *stages; /* [STAGES] nanoseconds for Server-Timing, or NULL */
	size_t batch_sequences; /* with stages */
};

/* Sets status, type, body (written to text) and the headers of a problem. */
void reply_set_problem(struct reply *reply, const struct problem *problem,
                       char text[static PROBLEM_JSON_MAX]);

/* Hands the reply to microhttpd. MHD_NO (the connection will close) when memory is refused. */
enum MHD_Result reply_queue(struct MHD_Connection *connection, const struct reply *reply);

#endif
