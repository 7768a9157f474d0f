/*
 * admin.h - the replies that need no pipeline: models, health, metrics, latency, the page at /.
 *
 * Each is a route_page_fn (routes.h): made whole on the loop thread, small.
 */
#ifndef ATTND_HTTP_ADMIN_H
#define ATTND_HTTP_ADMIN_H

#include <stdbool.h>
#include <stddef.h>

struct http_context;
struct problem;

struct page {
	char *body; /* malloc'd */
	size_t length;
	const char *content_type;
};

bool admin_models(const struct http_context *context, const char *model, struct page *page,
                  struct problem *problem);
/* NO_SUCH_MODEL. */
bool admin_model(const struct http_context *context, const char *model, struct page *page,
                 struct problem *problem);
bool admin_latency(const struct http_context *context, const char *model, struct page *page,
                   struct problem *problem);
bool admin_metrics(const struct http_context *context, const char *model, struct page *page,
                   struct problem *problem);
bool admin_health(const struct http_context *context, const char *model, struct page *page,
                  struct problem *problem);
bool admin_index(const struct http_context *context, const char *model, struct page *page,
                 struct problem *problem);

#endif
