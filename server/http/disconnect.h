/*
 * disconnect.h - notices that the client of a suspended connection has gone.
 *
 * While microhttpd has a connection suspended it does not look at its socket, so libuv may. A watch lives
 * from suspension to resumption; it must be stopped before the connection is resumed. Loop thread only.
 */
#ifndef ATTND_HTTP_DISCONNECT_H
#define ATTND_HTTP_DISCONNECT_H

#include <stdbool.h>
#include <uv.h>

struct disconnect;

/* The client closed its sending side (reset false: it may still read) or the connection is dead (reset true).
 * Told once; the callee may stop the watch. */
typedef void disconnect_fn(void *owner, bool reset);

/* NULL when memory or the kernel refuse: nobody is told then. */
struct disconnect *disconnect_watch(uv_loop_t *loop, int fd, disconnect_fn *gone, void *owner);
/* NULL is allowed. The memory goes when libuv has closed the handle. */
void disconnect_stop(struct disconnect *watch);

#endif
