/*
 * listener.h - the listening socket and microhttpd's daemon, driven by the loop.
 *
 * microhttpd runs without a thread of its own: its epoll descriptor is polled by libuv, and one timer stands
 * for its timeout and for the soonest of our deadlines. Each run ends in the same place (pump), which asks
 * for both anew, since microhttpd's sockets are edge-triggered. Loop thread only.
 */
#ifndef ATTND_HTTP_LISTENER_H
#define ATTND_HTTP_LISTENER_H

#include "attn.h"
#include "http/context.h"

#include <stddef.h>

struct listener;

/* Listens and serves from the next turn of the loop on. Sets context->listener. NULL with err set when the
 * address, descriptors or memory are refused. */
struct listener *listener_new(struct http_context *context, attn_error *err);

/* What it listens at, with the port the system picked. */
const char *listener_address(const struct listener *listener);

/* Makes it run soon: after a resumption, or a change of deadlines from outside microhttpd's callbacks. */
void listener_kick(struct listener *listener);

/* Called after each run, when exchanges and connections may have ended. NULL: nobody is told. */
void listener_on_change(struct listener *listener, void (*changed)(void *arg), void *arg);

/* Closes the listening socket; open connections go on. */
void listener_quiesce(struct listener *listener);

/* Gives up every exchange that waits (the pipeline must still be there), closes every connection and
 * microhttpd. The memory goes when libuv has closed the handles. */
void listener_free(struct listener *listener);

#endif
