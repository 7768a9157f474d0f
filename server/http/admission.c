#include "http/admission.h"

#include "http/access.h"
#include "pipeline/operation.h"

#include <math.h>

#define RETRY_AFTER_MAX_S 3600

uint64_t admission_retry_after_s(const struct http_context *context)
{
	double seconds = ceil(pipeline_state_of(context->pipeline).queued_seconds);
	return (uint64_t)fmin(fmax(seconds, 1), RETRY_AFTER_MAX_S);
}

static bool route_is_there(const struct admission *admission, const char *method, const char *path,
                           struct problem *problem)
{
	switch (admission->result) {
	case ROUTE_NO_PATH:
		return problem_set(problem, PROBLEM_NO_SUCH_PATH, "",
		                   "there is nothing at %.200s; GET / lists the paths", path);
	case ROUTE_NO_METHOD:
		return problem_set(problem, PROBLEM_METHOD, "", "%.20s is not allowed at %.200s; allowed: %s",
		                   method, path, admission->match.allow);
	default:
		return true;
	}
}

static bool find_model(struct admission *admission, const struct http_context *context,
                       struct problem *problem)
{
	const char *name = admission->match.model;
	if (name[0] == '\0')
		return true;
	struct model_instance *instance = registry_find(context->registry, name);
	if (!instance)
		return problem_set(problem, PROBLEM_NO_SUCH_MODEL, "",
		                   "there is no model %s; GET /v1/models lists them", name);
	admission->model = model_instance_retain(instance);
	return true;
}

static bool room_in_queue(const struct http_context *context, struct problem *problem)
{
	size_t waiting = pipeline_state_of(context->pipeline).waiting;
	if (waiting < context->options->queue_limit)
		return true;
	return problem_set(problem, PROBLEM_QUEUE_FULL, "", "%zu requests wait; the limit is %zu", waiting,
	                   context->options->queue_limit);
}

bool admission_decide(struct admission *admission, const struct http_context *context, const char *method,
                      const char *path, const struct request_headers *headers, struct problem *problem)
{
	*admission = (struct admission){0};
	admission->result = routes_match(method, path, &admission->match);
	admission->stranger = !access_check(context, headers, &admission->match, admission->result, problem);
	if (admission->stranger || !route_is_there(admission, method, path, problem))
		return false;
	if (admission->result == ROUTE_OPTIONS)
		return true;
	const struct route *route = admission->match.route;
	if (context->draining && !route->while_draining)
		return problem_set(problem, PROBLEM_DRAINING, "",
		                   "the daemon is stopping; send this to another");
	if (!encoding_of_reply(headers, &admission->reply_coding, problem))
		return false;
	if (!route->operation)
		return check_accept(headers, route->produces, problem);
	return check_reply_form(headers, &admission->forms.reply, problem) &&
	       check_content(headers, &admission->forms.request, problem) &&
	       encoding_of_body(headers, &admission->body_coding, problem) &&
	       check_timeout(headers, context->options->request_timeout_ms, &admission->timeout_ms,
	                     problem) &&
	       room_in_queue(context, problem) && find_model(admission, context, problem);
}
