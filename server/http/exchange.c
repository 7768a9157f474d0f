#include "http/exchange.h"

#include "http/admin.h"
#include "http/admission.h"
#include "http/checks.h"
#include "http/cors.h"
#include "http/disconnect.h"
#include "http/encoding.h"
#include "http/listener.h"
#include "http/observed.h"
#include "http/reply.h"
#include "http/upload.h"
#include "observe/clock.h"
#include "observe/log.h"
#include "pipeline/operation.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A refused body is read and thrown away up to this much over the limit, so that its client can read why. */
#define DISCARD_OVER_LIMIT ((size_t)64 << 20)
/* That of a client who may not ask at all, up to this much. */
#define DISCARD_OF_STRANGERS ((size_t)1 << 20)
/* What a client may take to read a reply, besides its bytes at the lowest rate. */
#define REPLY_GRACE (10 * CLOCK_NS_PER_S)

enum exchange_state {
	EXCHANGE_READS,    /* the body is kept */
	EXCHANGE_DISCARDS, /* the body is not wanted; answered when it has ended */
	EXCHANGE_WAITS,    /* the job is in the pipeline */
	EXCHANGE_ANSWERS,  /* the answer is known: problem, or job */
	EXCHANGE_GONE,     /* the client is */
};

struct exchange {
	struct http_context *context;
	struct MHD_Connection *handle;
	struct connection *connection;
	enum exchange_state state;

	/* the request; strings are microhttpd's and live as long as the exchange */
	const char *method, *path, *traceparent;
	char request_id[REQUEST_ID_MAX + 1];
	struct admission admission;
	struct cors cors;
	bool admitted; /* counted in context->admitted */
	uint64_t arrived, deadline;
	struct upload upload;
	size_t discarded;

	/* the answer */
	struct problem problem;
	struct job *job; /* WAITS: the pipeline's; ANSWERS: ours, or NULL */
	bool suspended;  /* from the second call without data on; with it a watch for the client going */
	struct disconnect *watch;
};

/* ---- answering */

static const struct operation *operation_of(const struct exchange *exchange)
{
	const struct route *route = exchange->admission.match.route;
	return route ? route->operation : NULL;
}

static void release_job(void *job)
{
	job_free(job);
}

/* The reply's body, type and status when there is no problem. */
static void fill_good(struct exchange *exchange, struct reply *reply, struct page *page)
{
	struct job *job = exchange->job;
	reply->encodes = job || page->body;
	if (job) {
		reply->status = MHD_HTTP_OK;
		reply->content_type = job->content_type;
		reply->has_forms = true;
		reply->body = job->reply;
		reply->length = job->reply_length;
		reply->release = release_job;
		reply->owner = job;
		reply->stages = job->stages;
		reply->batch_sequences = job->batch_sequences;
		reply->coding = job->reply_coding;
		exchange->job = NULL;
	} else if (page->body) {
		reply->status = MHD_HTTP_OK;
		reply->content_type = page->content_type;
		reply->coding = encoding_of_page(&exchange->admission.reply_coding, page);
		reply->body = reply->owner = page->body;
		reply->length = page->length;
		reply->release = free;
	} else {
		reply->status = MHD_HTTP_NO_CONTENT;
		reply->allow = exchange->admission.match.allow;
	}
}

/* Queues the reply: the problem if there is one, else what was computed, the route's page, or OPTIONS. */
static enum MHD_Result answer(struct exchange *exchange, bool close)
{
	struct http_context *context = exchange->context;
	struct page page = {0};
	struct reply reply = {
	    .request_id = exchange->request_id, .close = close || context->draining, .cors = exchange->cors};
	char text[PROBLEM_JSON_MAX];
	const struct route *route = exchange->admission.match.route;

	if (exchange->problem.code == PROBLEM_NONE && route && route->page)
		route->page(context, exchange->admission.match.model, &page, &exchange->problem);
	if (exchange->problem.code == PROBLEM_NONE) {
		fill_good(exchange, &reply, &page);
	} else {
		reply_set_problem(&reply, &exchange->problem, text);
		if (exchange->problem.code == PROBLEM_METHOD)
			reply.allow = exchange->admission.match.allow;
		if (reply.status == MHD_HTTP_TOO_MANY_REQUESTS)
			reply.retry_after_s = admission_retry_after_s(context);
	}

	uint64_t now = clock_now();
	uint64_t reading = reply.length * CLOCK_NS_PER_S / context->options->min_reply_rate;
	connection_enter(&context->connections, exchange->connection, CONNECTION_REPLY,
	                 now + REPLY_GRACE + reading);
	observed_answer(
	    &(struct observed){.method = exchange->method,
	                       .path = exchange->path,
	                       .request_id = exchange->request_id,
	                       .traceparent = exchange->traceparent,
	                       .operation = operation_of(exchange),
	                       .problem = &exchange->problem,
	                       .status = (int)reply.status,
	                       .bytes = reply.length,
	                       .seconds = (double)(now - exchange->arrived) / (double)CLOCK_NS_PER_S});
	return reply_queue(exchange->handle, &reply);
}

/* ---- waiting */

/* Lets microhttpd call the handler again; the exchange waits no more. A connection that is not suspended yet
 * is not resumed: its handler is called anyway, and microhttpd would undo the suspension of its next request.
 */
static void wake(struct exchange *exchange)
{
	struct http_context *context = exchange->context;
	disconnect_stop(exchange->watch);
	exchange->watch = NULL;
	connection_enter(&context->connections, exchange->connection, CONNECTION_REPLY,
	                 clock_now() + REPLY_GRACE);
	if (exchange->suspended)
		MHD_resume_connection(exchange->handle);
	exchange->suspended = false;
	listener_kick(context->listener);
}

static void cut(struct exchange *exchange)
{
	struct job *job = exchange->job;
	exchange->job = NULL;
	job->exchange = NULL;
	pipeline_cut(exchange->context->pipeline, job);
}

void exchange_give_up(struct exchange *exchange, enum problem_code code, const char *detail)
{
	assert(exchange->state == EXCHANGE_WAITS);
	cut(exchange);
	problem_set(&exchange->problem, code, "", "%s", detail);
	exchange->state = EXCHANGE_ANSWERS;
	wake(exchange);
}

size_t exchange_give_up_all(struct http_context *context)
{
	size_t count = 0;
	for (struct connection *each = context->connections.first; each; each = each->next) {
		if (each->phase != CONNECTION_WAITING)
			continue;
		exchange_give_up(each->exchange, PROBLEM_DRAINING,
		                 "the daemon stopped before the answer was ready");
		count++;
	}
	return count;
}

/* A client that only stopped sending gets its answer once a worker computes it; else nobody reads one. */
static void on_disconnect(void *owner, bool reset)
{
	struct exchange *exchange = owner;
	if (!reset && !pipeline_job_waits(exchange->context->pipeline, exchange->job))
		return;
	cut(exchange);
	exchange->state = EXCHANGE_GONE;
	observed_gone(exchange->request_id, operation_of(exchange));
	wake(exchange);
	connection_shut(&exchange->context->connections, exchange->connection);
}

void exchange_job_returned(void *context, struct job *job)
{
	(void)context;
	struct exchange *exchange = job->exchange;
	if (!exchange) {
		job_free(job);
		return;
	}
	job->exchange = NULL;
	exchange->state = EXCHANGE_ANSWERS;
	if (job->problem.code != PROBLEM_NONE) {
		exchange->problem = job->problem;
		exchange->job = NULL;
		job_free(job);
	} else {
		observed_job(exchange->context->latency, job, clock_now());
	}
	wake(exchange);
}

void exchange_job_deadline(void *context, struct job *job)
{
	struct http_context *http = context;
	struct exchange *exchange = job->exchange;
	if (!exchange)
		return;
	connection_enter(&http->connections, exchange->connection, CONNECTION_WAITING, job->deadline);
	listener_kick(http->listener);
}

/* Makes the job of a body that is whole; what it needs moves over. NULL with the problem set. */
static struct job *make_job(struct exchange *exchange, uint64_t now)
{
	struct job *job = job_new(operation_of(exchange), exchange->context->budget);
	if (!job) {
		problem_set(&exchange->problem, PROBLEM_MEMORY, "",
		            "the system refused memory for the request");
		return NULL;
	}
	job->model = exchange->admission.model;
	job->body = exchange->upload.body;
	job->body_length = exchange->upload.length;
	job->forms = exchange->admission.forms;
	job->body_coding = exchange->admission.body_coding;
	job->reply_coding = exchange->admission.reply_coding.coding;
	job->reply_coding_least = exchange->admission.reply_coding.least;
	job->charged = exchange->upload.charged;
	job->arrived = exchange->arrived;
	job->deadline = exchange->deadline;
	job->stage_begun = now;
	job->stages[STAGE_READ] = now - exchange->arrived;
	job->exchange = exchange;
	exchange->admission.model = NULL;
	exchange->upload = (struct upload){0};
	return job;
}

/* The body is whole: hands a job to the pipeline, or answers why not. The connection is suspended when the
 * handler is called again, which is at once: suspended in this call, microhttpd would think after resumption
 * that it was still reading the request, and close a connection whose client has stopped sending. */
static enum MHD_Result submit(struct exchange *exchange)
{
	struct http_context *context = exchange->context;
	uint64_t now = clock_now();
	exchange->state = EXCHANGE_ANSWERS;
	if (now >= exchange->deadline) {
		problem_set(&exchange->problem, PROBLEM_DEADLINE, "",
		            "the deadline passed while the body was read");
		return answer(exchange, false);
	}
	struct job *job = make_job(exchange, now);
	if (!job)
		return answer(exchange, false);
	if (!pipeline_submit(context->pipeline, job)) {
		problem_set(&exchange->problem, PROBLEM_QUEUE_FULL, "", "as many requests wait as may: %zu",
		            context->options->queue_limit);
		job_free(job);
		return answer(exchange, false);
	}
	exchange->job = job;
	exchange->state = EXCHANGE_WAITS;
	connection_enter(&context->connections, exchange->connection, CONNECTION_WAITING, exchange->deadline);
	return MHD_YES;
}

static enum MHD_Result suspend(struct exchange *exchange)
{
	exchange->suspended = true;
	MHD_suspend_connection(exchange->handle);
	exchange->watch =
	    disconnect_watch(exchange->context->loop, exchange->connection->fd, on_disconnect, exchange);
	return MHD_YES;
}

/* ---- reading */

static size_t discard_limit(const struct exchange *exchange)
{
	return exchange->admission.stranger ? DISCARD_OF_STRANGERS
	                                    : exchange->context->options->max_body + DISCARD_OVER_LIMIT;
}

/* The request is refused. Its body is let run out so that the answer can be read, unless the client asks
 * before sending it, or it is too much: then the answer comes now and the connection closes. */
static enum MHD_Result refuse(struct exchange *exchange, const struct request_headers *headers,
                              const char *version)
{
	exchange->state = EXCHANGE_DISCARDS;
	if (headers_expect_continue(headers, version) || headers_length(headers) > discard_limit(exchange))
		return answer(exchange, true);
	return MHD_YES;
}

static bool admit(struct exchange *exchange, const struct request_headers *headers)
{
	struct http_context *context = exchange->context;
	if (!admission_decide(&exchange->admission, context, exchange->method, exchange->path, headers,
	                      &exchange->problem))
		return false;
	if (!operation_of(exchange))
		return true;
	exchange->deadline = exchange->arrived + exchange->admission.timeout_ms * CLOCK_NS_PER_MS;
	if (!upload_begin(&exchange->upload, context->budget, context->options->max_body,
	                  !headers_chunked(headers), headers_length(headers), &exchange->problem))
		return false;
	exchange->state = EXCHANGE_READS;
	exchange->admitted = true;
	context->admitted++;
	return true;
}

static enum MHD_Result note_header(void *headers, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
	(void)kind;
	headers_note(headers, name, value);
	return MHD_YES;
}

static void name_request(struct exchange *exchange, const char *sent)
{
	struct http_context *context = exchange->context;
	if (request_id_usable(sent))
		memcpy(exchange->request_id, sent, strlen(sent) + 1);
	else
		snprintf(exchange->request_id, sizeof(exchange->request_id), "%016llx-%llx",
		         (unsigned long long)context->id_base, (unsigned long long)context->id_next++);
}

/* First call: headers have come. Makes the exchange; only what must close the connection is answered here. */
static enum MHD_Result begin(struct http_context *context, struct MHD_Connection *handle, const char *path,
                             const char *method, const char *version, void **slot)
{
	const union MHD_ConnectionInfo *info =
	    MHD_get_connection_info(handle, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct connection *connection = info->socket_context;
	struct exchange *exchange = connection ? calloc(1, sizeof(*exchange)) : NULL;
	if (!exchange)
		return MHD_NO;
	*slot = exchange;
	connection->exchange = exchange;
	exchange->context = context;
	exchange->handle = handle;
	exchange->connection = connection;
	exchange->state = EXCHANGE_DISCARDS;
	exchange->method = method;
	exchange->path = path;
	exchange->arrived = clock_now();
	connection_enter(&context->connections, connection, CONNECTION_BODY,
	                 exchange->arrived + context->options->body_timeout_ms * CLOCK_NS_PER_MS);

	struct request_headers headers = {0};
	MHD_get_connection_values(handle, MHD_HEADER_KIND, note_header, &headers);
	exchange->traceparent = headers.traceparent;
	exchange->cors = cors_decide(context->options->allowed_origins, method, &headers);
	name_request(exchange, headers.request_id);
	if (!check_framing(&headers, version, &exchange->problem))
		return answer(exchange, true);
	return admit(exchange, &headers) ? MHD_YES : refuse(exchange, &headers, version);
}

static enum MHD_Result take_data(struct exchange *exchange, const char *data, size_t *size)
{
	struct http_context *context = exchange->context;
	if (exchange->state == EXCHANGE_READS &&
	    !upload_append(&exchange->upload, context->budget, data, *size, &exchange->problem)) {
		exchange->discarded = exchange->upload.length;
		upload_clear(&exchange->upload, context->budget);
		exchange->state = EXCHANGE_DISCARDS;
	}
	if (exchange->state == EXCHANGE_DISCARDS)
		exchange->discarded += *size;
	*size = 0;
	return exchange->discarded > discard_limit(exchange) ? MHD_NO : MHD_YES;
}

/* ---- microhttpd's callbacks */

enum MHD_Result exchange_handle(void *context, struct MHD_Connection *connection, const char *url,
                                const char *method, const char *version, const char *data, size_t *size,
                                void **slot)
{
	struct exchange *exchange = *slot;
	if (!exchange)
		return begin(context, connection, url, method, version, slot);
	if (*size > 0)
		return take_data(exchange, data, size);
	switch (exchange->state) {
	case EXCHANGE_READS:
		return submit(exchange);
	case EXCHANGE_DISCARDS:
	case EXCHANGE_ANSWERS:
		return answer(exchange, false);
	case EXCHANGE_WAITS:
		return suspend(exchange);
	case EXCHANGE_GONE:
		break;
	}
	return MHD_NO;
}

void exchange_completed(void *context, struct MHD_Connection *connection, void **slot,
                        enum MHD_RequestTerminationCode how)
{
	struct http_context *http = context;
	struct exchange *exchange = *slot;
	(void)connection;
	(void)how;
	if (!exchange)
		return;
	if (exchange->state == EXCHANGE_WAITS)
		cut(exchange);
	if (exchange->job)
		job_free(exchange->job);
	upload_clear(&exchange->upload, http->budget);
	model_instance_release(exchange->admission.model);
	if (exchange->admitted)
		http->admitted--;
	exchange->connection->exchange = NULL;
	connection_enter(&http->connections, exchange->connection, CONNECTION_KEEPALIVE,
	                 clock_now() + http->options->keepalive_timeout_ms * CLOCK_NS_PER_MS);
	free(exchange);
	*slot = NULL;
}
