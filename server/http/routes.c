#include "http/routes.h"

#include "http/admin.h"
#include "pipeline/operation.h"

#include <stdio.h>
#include <string.h>

static const struct route routes[] = {
    {.method = "POST", .pattern = "/v1/attention", .operation = &operation_attention},
    {.method = "POST", .pattern = "/v1/models/{model}/attention", .operation = &operation_model_attention},
    {.method = "POST", .pattern = "/v1/models/{model}/forward", .operation = &operation_forward},
    {.method = "GET", .pattern = "/v1/models", .produces = "application/json", .page = admin_models},
    {.method = "GET", .pattern = "/v1/models/{model}", .produces = "application/json", .page = admin_model},
    {.method = "GET", .pattern = "/v1/latency", .produces = "application/json", .page = admin_latency},
    {.method = "GET",
     .pattern = "/metrics",
     .produces = "text/plain",
     .page = admin_metrics,
     .while_draining = true},
    {.method = "GET",
     .pattern = "/healthz",
     .produces = "application/json",
     .page = admin_health,
     .open = true},
    {.method = "GET", .pattern = "/", .produces = "text/html", .page = admin_index},
};

/* Copies one path segment to model (as {model} does); false when it is empty or too long. */
static bool take_model(const char *segment, size_t length, char *model)
{
	if (length == 0 || length > ROUTE_MODEL_MAX)
		return false;
	memcpy(model, segment, length);
	model[length] = '\0';
	return true;
}

static bool path_matches(const char *pattern, const char *path, char *model)
{
	while (*pattern) {
		if (*pattern == '{') {
			size_t length = strcspn(path, "/");
			if (!take_model(path, length, model))
				return false;
			pattern += strcspn(pattern, "}") + 1;
			path += length;
		} else if (*pattern++ != *path++) {
			return false;
		}
	}
	return *path == '\0';
}

static void allow_add(char *allow, const char *method)
{
	size_t used = strlen(allow);
	const char *implied = strcmp(method, "GET") == 0 ? ", HEAD" : "";
	snprintf(allow + used, ROUTE_ALLOW_MAX - used, "%s%s%s", used > 0 ? ", " : "", method, implied);
}

enum route_result routes_match(const char *method, const char *path, struct route_match *match)
{
	*match = (struct route_match){0};
	const char *wanted = strcmp(method, "HEAD") == 0 ? "GET" : method;
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		if (!path_matches(routes[i].pattern, path, match->model))
			continue;
		allow_add(match->allow, routes[i].method);
		match->open = match->open || routes[i].open;
		if (strcmp(routes[i].method, wanted) == 0)
			match->route = &routes[i];
	}
	if (match->allow[0] == '\0')
		return ROUTE_NO_PATH;
	allow_add(match->allow, "OPTIONS");
	if (match->route)
		return ROUTE_FOUND;
	return strcmp(method, "OPTIONS") == 0 ? ROUTE_OPTIONS : ROUTE_NO_METHOD;
}
