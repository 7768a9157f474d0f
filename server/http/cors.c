#include "http/cors.h"

#include "http/lists.h"

#include <string.h>

struct cors cors_decide(const char *allowed, const char *method, const struct request_headers *headers)
{
	struct cors cors = {0};
	if (!allowed)
		return cors;
	bool any = list_holds(allowed, "*");
	cors.varies = !any;
	if (!headers->origin || headers->origins != 1)
		return cors;
	if (any)
		cors.origin = "*";
	else if (list_holds(allowed, headers->origin))
		cors.origin = headers->origin;
	cors.preflight = cors.origin && headers->asked_method && strcmp(method, "OPTIONS") == 0;
	return cors;
}
