/*
 * drain.h - the end of serving, in order.
 *
 * From drain_begin on nothing is let in (503), while connections are still accepted so that clients and
 * balancers hear it. When what was let in has been answered, and a moment has passed for those that were
 * just connecting, the listening socket closes, idle connections are shut, and the rest finish their replies.
 * Past the drain deadline, waiting requests are answered 503 and, soon after, everything is shut. Loop thread
 * only.
 */
#ifndef ATTND_HTTP_DRAIN_H
#define ATTND_HTTP_DRAIN_H

#include "http/context.h"

#include <stddef.h>

struct drain;

/* done is called once, from a later turn of the loop, when connections have ended or been shut, and the
 * listener may be freed; cut is the number of requests let in that were not answered as asked. NULL: no
 * memory. */
struct drain *drain_begin(struct http_context *context, void (*done)(void *arg, size_t cut), void *arg);

/* Does not wait for what was let in any more. */
void drain_hurry(struct drain *drain);

#endif
