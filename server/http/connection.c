#include "http/connection.h"

#include "observe/log.h"
#include "observe/metrics.h"

#include <stdlib.h>
#include <sys/socket.h>

bool connections_init(struct connections *connections, size_t limit)
{
	*connections = (struct connections){.limit = limit};
	return deadlines_init(&connections->deadlines, limit);
}

void connections_clear(struct connections *connections)
{
	deadlines_clear(&connections->deadlines);
}

struct connection *connection_open(struct connections *connections, int fd, uint64_t deadline)
{
	struct connection *connection = calloc(1, sizeof(*connection));
	if (!connection)
		return NULL;
	connection->fd = fd;
	connection->next = connections->first;
	if (connection->next)
		connection->next->previous = connection;
	connections->first = connection;
	connections->count++;
	connection_enter(connections, connection, CONNECTION_HEADERS, deadline);
	return connection;
}

void connection_close(struct connections *connections, struct connection *connection)
{
	deadlines_drop(&connections->deadlines, &connection->deadline);
	if (connection->previous)
		connection->previous->next = connection->next;
	else
		connections->first = connection->next;
	if (connection->next)
		connection->next->previous = connection->previous;
	connections->count--;
	connections->ended++;
	free(connection);
}

void connection_enter(struct connections *connections, struct connection *connection,
                      enum connection_phase phase, uint64_t deadline)
{
	connection->phase = phase;
	deadlines_set(&connections->deadlines, &connection->deadline, deadline);
}

void connection_shut(struct connections *connections, struct connection *connection)
{
	deadlines_drop(&connections->deadlines, &connection->deadline);
	shutdown(connection->fd, SHUT_RDWR);
}

static enum metrics_part part_of(enum connection_phase phase)
{
	switch (phase) {
	case CONNECTION_BODY:
		return METRICS_PART_BODY;
	case CONNECTION_REPLY:
		return METRICS_PART_REPLY;
	default:
		return METRICS_PART_HEADER;
	}
}

void connection_shut_late(struct connections *connections, struct connection *connection)
{
	if (connection->phase != CONNECTION_KEEPALIVE) {
		enum metrics_part part = part_of(connection->phase);
		metrics_connection_closed_late(part);
		log_event(LOG_WARNING, "closed-late", log_text("part", metrics_part_label(part)));
	}
	connection_shut(connections, connection);
}

void connections_shut_idle(struct connections *connections)
{
	for (struct connection *each = connections->first; each; each = each->next) {
		if (!each->exchange)
			connection_shut(connections, each);
	}
}

void connections_shut_all(struct connections *connections)
{
	for (struct connection *each = connections->first; each; each = each->next)
		connection_shut(connections, each);
}
