/*
 * connection.h - the open sockets, what each is waiting for, and the one deadline each has at a time.
 *
 * A struct connection is made when microhttpd accepts a socket and freed when it lets go of it; both, and
 * everything between, on the loop thread. The socket is microhttpd's: it is never closed here, only shut.
 */
#ifndef ATTND_HTTP_CONNECTION_H
#define ATTND_HTTP_CONNECTION_H

#include "http/deadlines.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct exchange;

enum connection_phase {
	CONNECTION_HEADERS,   /* of its first request */
	CONNECTION_KEEPALIVE, /* between requests, until the next one's headers */
	CONNECTION_BODY,
	CONNECTION_WAITING, /* suspended: its job is in the pipeline */
	CONNECTION_REPLY,
};

struct connection {
	enum connection_phase phase;
	struct deadline deadline;
	int fd;
	struct exchange *exchange; /* of the request it carries; NULL between requests */
	struct connection *next, *previous;
};

struct connections {
	struct deadlines deadlines;
	struct connection *first;
	size_t count, limit;
	uint64_t ended; /* how many have been closed so far */
};

/* Room for the deadlines of `limit` connections; false when the system refuses memory. */
bool connections_init(struct connections *connections, size_t limit);
void connections_clear(struct connections *connections);

/* In phase HEADERS; NULL when the system refuses memory. */
struct connection *connection_open(struct connections *connections, int fd, uint64_t deadline);
void connection_close(struct connections *connections, struct connection *connection);
void connection_enter(struct connections *connections, struct connection *connection,
                      enum connection_phase phase, uint64_t deadline);
/* Ends the traffic both ways and drops the deadline; microhttpd notices and lets go of the socket. */
void connection_shut(struct connections *connections, struct connection *connection);

/* Shuts a connection whose deadline has passed; counted and logged unless it was between requests. */
void connection_shut_late(struct connections *connections, struct connection *connection);
/* Shuts those that carry no request. */
void connections_shut_idle(struct connections *connections);
void connections_shut_all(struct connections *connections);

#endif
