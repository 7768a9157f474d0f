#include "http/connection.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "suite.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Whether the other end of a socket sees the end of the stream. */
static bool ended(int fd)
{
	char byte;
	return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

static bool counted(const char *sample)
{
	size_t length = 0;
	char *text = metrics_render(
	    &(struct metrics_gauges){.version = "", .kernels = "", .blas_core = "", .blas_config = ""},
	    &length);
	ck_assert_ptr_nonnull(text);
	bool found = memmem(text, length, sample, strlen(sample)) != NULL;
	free(text);
	return found;
}

START_TEST(a_part_that_is_late_is_shut_and_counted_under_its_name)
{
	static const struct {
		enum connection_phase phase;
		const char *sample;
	} parts[] = {{CONNECTION_HEADERS, "closes_total{part=\"header\"} 1\n"},
	             {CONNECTION_BODY, "closes_total{part=\"body\"} 1\n"},
	             {CONNECTION_REPLY, "closes_total{part=\"reply\"} 1\n"}};
	metrics_reset();
	log_setup(LOG_ERROR, LOG_KEY_VALUE);
	ck_assert(metrics_thread_start());
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		struct connections connections;
		int pair[2];
		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
		ck_assert(connections_init(&connections, 1));
		struct connection *connection = connection_open(&connections, pair[0], 5);
		connection_enter(&connections, connection, parts[i].phase, 7);
		ck_assert_uint_eq(deadlines_first(&connections.deadlines)->at, 7);
		ck_assert(!counted(parts[i].sample));
		connection_shut_late(&connections, connection);
		ck_assert(ended(pair[1]));
		ck_assert(counted(parts[i].sample));
		ck_assert_ptr_null(deadlines_first(&connections.deadlines));
		connection_close(&connections, connection);
		connections_clear(&connections);
		close(pair[0]);
		close(pair[1]);
	}
	metrics_thread_stop();
}
END_TEST

START_TEST(a_connection_between_requests_is_shut_without_being_counted)
{
	struct connections connections;
	int pair[2];
	metrics_reset();
	log_setup(LOG_ERROR, LOG_KEY_VALUE);
	ck_assert(metrics_thread_start());
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	ck_assert(connections_init(&connections, 1));
	struct connection *connection = connection_open(&connections, pair[0], 5);
	connection_enter(&connections, connection, CONNECTION_KEEPALIVE, 7);
	connection_shut_late(&connections, connection);
	ck_assert(ended(pair[1]));
	ck_assert(counted("closes_total{part=\"header\"} 0\n"));
	connection_close(&connections, connection);
	connections_clear(&connections);
	close(pair[0]);
	close(pair[1]);
	metrics_thread_stop();
}
END_TEST

START_TEST(only_connections_without_a_request_are_idle)
{
	struct connections connections;
	struct connection *open[3];
	int pairs[3][2];
	ck_assert(connections_init(&connections, 3));
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]), 0);
		open[i] = connection_open(&connections, pairs[i][0], 5);
	}
	open[1]->exchange = (struct exchange *)&connections; /* any that is not NULL */
	connections_shut_idle(&connections);
	ck_assert(ended(pairs[0][1]));
	ck_assert(!ended(pairs[1][1]));
	ck_assert(ended(pairs[2][1]));
	connection_close(&connections, open[1]);
	ck_assert_uint_eq(connections.count, 2);
	ck_assert_uint_eq(connections.ended, 1);
	connection_close(&connections, open[0]);
	connection_close(&connections, open[2]);
	ck_assert_ptr_null(connections.first);
	connections_clear(&connections);
	for (int i = 0; i < 3; i++) {
		close(pairs[i][0]);
		close(pairs[i][1]);
	}
}
END_TEST

SUITE_MAIN("connection", a_part_that_is_late_is_shut_and_counted_under_its_name,
           a_connection_between_requests_is_shut_without_being_counted,
           only_connections_without_a_request_are_idle)
