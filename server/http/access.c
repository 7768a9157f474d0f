#include "http/access.h"

#include "http/hosts.h"
#include "http/tokens.h"

#include <string.h>
#include <strings.h>

static bool check_host(const char *allowed, const char *host, struct problem *problem)
{
	return host_is_listed(allowed, host) ||
	       problem_set(problem, PROBLEM_BAD_HEADER, "", "Host %.100s is not one this daemon answers for",
	                   host);
}

static bool check_token(const struct tokens *tokens, const struct request_headers *headers,
                        struct problem *problem)
{
	static const char scheme[] = "Bearer";
	size_t length = sizeof(scheme) - 1;
	const char *value = headers->authorization;
	if (!value)
		return problem_set(problem, PROBLEM_UNAUTHORIZED, "",
		                   "the request needs Authorization: Bearer and a token");
	if (headers->authorizations > 1)
		return problem_set(problem, PROBLEM_UNAUTHORIZED, "", "Authorization comes more than once");
	if (strncasecmp(value, scheme, length) != 0 || value[length] != ' ')
		return problem_set(problem, PROBLEM_UNAUTHORIZED, "",
		                   "the scheme of Authorization must be Bearer");
	if (!tokens_match(tokens, value + length + strspn(value + length, " ")))
		return problem_set(problem, PROBLEM_UNAUTHORIZED, "", "the token is not known");
	return true;
}

bool access_check(const struct http_context *context, const struct request_headers *headers,
                  const struct route_match *match, enum route_result result, struct problem *problem)
{
	if (match->open)
		return true;
	const char *hosts = context->options->allowed_hosts;
	if (hosts && headers->host && !context->local && !check_host(hosts, headers->host, problem))
		return false;
	return !context->tokens || result == ROUTE_OPTIONS || check_token(context->tokens, headers, problem);
}
