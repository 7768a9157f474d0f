#include "healthcheck.h"

#include "http/address.h"
#include "http/unix_socket.h"
#include "observe/clock.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The beginning of an answer: "HTTP/1.1 200" is 12 bytes. */
#define STATUS_LINE 12

/* Waits for the socket; false with errno set when the deadline passes first. */
static bool wait_for(int fd, short events, uint64_t deadline)
{
	for (;;) {
		uint64_t now = clock_now();
		if (now >= deadline) {
			errno = ETIMEDOUT;
			return false;
		}
		struct pollfd entry = {.fd = fd, .events = events};
		int ready = poll(&entry, 1, (int)((deadline - now) / CLOCK_NS_PER_MS) + 1);
		if (ready > 0)
			return true;
		if (ready < 0 && errno != EINTR)
			return false;
	}
}

static bool finish_connect(int fd, uint64_t deadline)
{
	int reason = 0;
	socklen_t size = sizeof reason;
	if (!wait_for(fd, POLLOUT, deadline) || getsockopt(fd, SOL_SOCKET, SO_ERROR, &reason, &size) != 0)
		return false;
	errno = reason;
	return reason == 0;
}

/* A connected socket, or -1 with errno set. */
static int connect_to(const struct sockaddr *address, socklen_t length, uint64_t deadline)
{
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	if (connect(fd, address, length) == 0 || (errno == EINPROGRESS && finish_connect(fd, deadline)))
		return fd;
	int reason = errno;
	close(fd);
	errno = reason;
	return -1;
}

/* Asks, and reads the beginning of the answer; its length, or -1 with errno set. */
static ssize_t ask(int fd, uint64_t deadline, char answer[static STATUS_LINE])
{
	static const char request[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
	if (!wait_for(fd, POLLOUT, deadline) ||
	    send(fd, request, sizeof request - 1, MSG_NOSIGNAL) != (ssize_t)(sizeof request - 1))
		return -1;
	size_t length = 0;
	while (length < STATUS_LINE) {
		if (!wait_for(fd, POLLIN, deadline))
			return -1;
		ssize_t got = recv(fd, answer + length, STATUS_LINE - length, 0);
		if (got < 0 && errno != EAGAIN && errno != EINTR)
			return -1;
		if (got == 0)
			break;
		length += got > 0 ? (size_t)got : 0;
	}
	return (ssize_t)length;
}

static int fail(const char *listen, const char *reason, char *error, size_t error_size)
{
	snprintf(error, error_size, "no health at %s: %s", listen, reason);
	return 1;
}

static int judge(const char *listen, const char *answer, ssize_t length, char *error, size_t error_size)
{
	if (length < STATUS_LINE || memcmp(answer, "HTTP/1.", 7) != 0)
		return fail(listen, "the answer is not HTTP", error, error_size);
	if (memcmp(answer + 9, "200", 3) == 0)
		return 0;
	char reason[] = "the answer is status 000";
	memcpy(reason + sizeof reason - 4, answer + 9, 3);
	return fail(listen, reason, error, error_size);
}

/* A socket connected to host:port, or -1 with the reason in *reason. */
static int connect_by_name(const char *listen, uint64_t deadline, const char **reason)
{
	char host[256], port[256];
	*reason = "not host:port";
	if (!address_split(listen, host, port, sizeof host))
		return -1;
	const char *name = strcmp(host, "0.0.0.0") == 0 ? "127.0.0.1"
	                   : strcmp(host, "::") == 0    ? "::1"
	                                                : host;
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
	int code = getaddrinfo(name, port, &hints, &found);
	*reason = gai_strerror(code);
	if (code != 0)
		return -1;
	int fd = -1;
	for (struct addrinfo *entry = found; entry != NULL && fd < 0; entry = entry->ai_next)
		fd = connect_to(entry->ai_addr, entry->ai_addrlen, deadline);
	*reason = strerror(errno);
	freeaddrinfo(found);
	return fd;
}

static int connect_to_file(const char *listen, uint64_t deadline, const char **reason)
{
	struct sockaddr_un address;
	*reason = "not unix: and an absolute path";
	if (!unix_socket_address(listen, &address))
		return -1;
	int fd = connect_to((const struct sockaddr *)&address, sizeof address, deadline);
	*reason = strerror(errno);
	return fd;
}

int healthcheck_run(const char *listen, uint64_t timeout_ms, char *error, size_t error_size)
{
	uint64_t deadline = clock_now() + timeout_ms * CLOCK_NS_PER_MS;
	const char *reason;
	char answer[STATUS_LINE];
	int fd = unix_socket_is(listen) ? connect_to_file(listen, deadline, &reason)
	                                : connect_by_name(listen, deadline, &reason);
	if (fd < 0)
		return fail(listen, reason, error, error_size);
	ssize_t length = ask(fd, deadline, answer);
	int result = length < 0 ? fail(listen, strerror(errno), error, error_size)
	                        : judge(listen, answer, length, error, error_size);
	close(fd);
	return result;
}
