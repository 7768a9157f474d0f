/*
 * routes.h - which path and method lead where.
 *
 * One constant table. A path segment `{model}` matches any one segment. HEAD goes where GET goes; every path
 * answers OPTIONS. Matching is pure.
 */
#ifndef ATTND_HTTP_ROUTES_H
#define ATTND_HTTP_ROUTES_H

#include "pipeline/registry.h"

#include <stdbool.h>
#include <stddef.h>

#define ROUTE_MODEL_MAX MODEL_NAME_MAX
#define ROUTE_ALLOW_MAX 64

struct operation;
struct http_context;
struct page;
struct problem;

/* Makes the body of a GET reply on the loop, or sets the problem. model is "" where the path names none. */
typedef bool route_page_fn(const struct http_context *context, const char *model, struct page *page,
                           struct problem *problem);

struct route {
	const char *method; /* GET or POST */
	const char *pattern;
	const char *produces;              /* media type of a page; NULL: a body form, as Accept wants it */
	const struct operation *operation; /* of a POST; else NULL */
	route_page_fn *page;               /* of a GET; else NULL */
	bool while_draining;               /* answered even then */
	bool open;                         /* to whoever asks, by whatever name */
};

enum route_result { ROUTE_FOUND, ROUTE_NO_PATH, ROUTE_NO_METHOD, ROUTE_OPTIONS };

struct route_match {
	const struct route *route;       /* ROUTE_FOUND only */
	char model[ROUTE_MODEL_MAX + 1]; /* what {model} stood for; "" without */
	char allow[ROUTE_ALLOW_MAX];     /* methods of the path, "" for ROUTE_NO_PATH */
	bool open;                       /* the path has a route that is */
};

/* A segment over ROUTE_MODEL_MAX bytes matches no {model}. */
enum route_result routes_match(const char *method, const char *path, struct route_match *match);

#endif
