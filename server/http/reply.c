#include "http/reply.h"

#include "observe/clock.h"
#include "observe/metrics.h"

#include <stdio.h>
#include <string.h>

void reply_set_problem(struct reply *reply, const struct problem *problem, char text[static PROBLEM_JSON_MAX])
{
	reply->status = (unsigned)problem_status(problem->code);
	reply->content_type = "application/problem+json";
	reply->length = problem_to_json(problem, text, PROBLEM_JSON_MAX);
	reply->body = text;
	reply->asks_for_token = problem->code == PROBLEM_UNAUTHORIZED;
	reply->names_codings = problem->code == PROBLEM_CONTENT_ENCODING;
}

static struct MHD_Response *make_response(const struct reply *reply)
{
	if (!reply->release)
		return MHD_create_response_from_buffer(reply->length, reply->body, MHD_RESPMEM_MUST_COPY);
	struct MHD_Response *response = MHD_create_response_from_buffer_with_free_callback_cls(
	    reply->length, reply->body, reply->release, reply->owner);
	if (!response)
		reply->release(reply->owner);
	return response;
}

static bool add(struct MHD_Response *response, const char *name, const char *value)
{
	return MHD_add_response_header(response, name, value) == MHD_YES;
}

static bool add_number(struct MHD_Response *response, const char *name, uint64_t value)
{
	char text[24];
	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return add(response, name, text);
}

static bool add_timing(struct MHD_Response *response, const uint64_t *stages)
{
	char text[STAGES * 48];
	size_t used = 0;
	for (int stage = 0; stage < STAGES; stage++)
		used +=
		    (size_t)snprintf(text + used, sizeof(text) - used, "%s%s;dur=%.3f", stage > 0 ? ", " : "",
		                     metrics_stage_label((enum metrics_stage)stage),
		                     (double)stages[stage] / (double)CLOCK_NS_PER_MS);
	return add(response, "Server-Timing", text);
}

/* What a web page of another origin may do with the reply. */
static bool add_cors(struct MHD_Response *response, const struct reply *reply)
{
	const struct cors *cors = &reply->cors;
	if (!cors->origin)
		return true;
	if (!add(response, "Access-Control-Allow-Origin", cors->origin) ||
	    !add(response, "Access-Control-Expose-Headers", CORS_EXPOSED))
		return false;
	return !cors->preflight || !reply->allow ||
	       (add(response, "Access-Control-Allow-Methods", reply->allow) &&
	        add(response, "Access-Control-Allow-Headers", CORS_REQUEST_HEADERS) &&
	        add_number(response, "Access-Control-Max-Age", CORS_MAX_AGE_S));
}

/* What a cache must know of the request to use the reply for another. */
static bool add_vary(struct MHD_Response *response, const struct reply *reply)
{
	const char *names[] = {reply->has_forms ? "Accept" : NULL, reply->encodes ? "Accept-Encoding" : NULL,
	                       reply->cors.varies ? "Origin" : NULL};
	char text[sizeof("Accept, Accept-Encoding, Origin")] = "";
	size_t length = 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i])
			length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s",
			                           length > 0 ? ", " : "", names[i]);
	return text[0] == '\0' || add(response, "Vary", text);
}

static bool add_headers(struct MHD_Response *response, const struct reply *reply)
{
	return add(response, "X-Request-Id", reply->request_id) &&
	       (!reply->content_type || add(response, "Content-Type", reply->content_type)) &&
	       (!reply->allow || add(response, "Allow", reply->allow)) &&
	       (reply->coding == CODING_IDENTITY ||
	        add(response, "Content-Encoding", coding_text(reply->coding))) &&
	       add_vary(response, reply) && add_cors(response, reply) &&
	       (!reply->asks_for_token || add(response, "WWW-Authenticate", "Bearer realm=\"attnd\"")) &&
	       (!reply->names_codings || add(response, "Accept-Encoding", "gzip, deflate")) &&
	       (reply->retry_after_s == 0 || add_number(response, "Retry-After", reply->retry_after_s)) &&
	       (!reply->stages || (add_timing(response, reply->stages) &&
	                           add_number(response, "X-Batch-Size", reply->batch_sequences))) &&
	       (!reply->close || add(response, "Connection", "close"));
}

enum MHD_Result reply_queue(struct MHD_Connection *connection, const struct reply *reply)
{
	struct MHD_Response *response = make_response(reply);
	if (!response)
		return MHD_NO;
	enum MHD_Result result = MHD_NO;
	if (add_headers(response, reply))
		result = MHD_queue_response(connection, reply->status, response);
	MHD_destroy_response(response);
	return result;
}
