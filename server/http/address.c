#include "http/address.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

bool address_split(const char *text, char *host, char *port, size_t size)
{
	const char *colon = strrchr(text, ':');
	if (!colon || colon[1] == '\0' || strlen(colon + 1) >= size)
		return false;
	const char *start = text, *end = colon;
	if (*start == '[') {
		start++;
		end--;
		if (end <= start || *end != ']')
			return false;
	} else if (memchr(start, ':', (size_t)(end - start))) {
		return false;
	}
	size_t length = (size_t)(end - start);
	if (length == 0 || length >= size)
		return false;
	memcpy(host, start, length);
	host[length] = '\0';
	memcpy(port, colon + 1, strlen(colon + 1) + 1);
	return true;
}

static int listen_at(const struct addrinfo *info, int backlog)
{
	int fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	int yes = 1;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
	    bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, backlog) == 0)
		return fd;
	int reason = errno;
	close(fd);
	errno = reason;
	return -1;
}

int address_listen(const char *text, int backlog, char *error, size_t error_size)
{
	char host[256], port[256];
	if (!address_split(text, host, port, sizeof(host))) {
		snprintf(error, error_size, "%s is not host:port or [v6]:port", text);
		return -1;
	}
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found = NULL;
	int code = getaddrinfo(host, port, &hints, &found);
	if (code != 0) {
		snprintf(error, error_size, "cannot resolve %s: %s", text, gai_strerror(code));
		return -1;
	}
	int fd = listen_at(found, backlog);
	if (fd < 0)
		snprintf(error, error_size, "cannot listen at %s: %s", text, strerror(errno));
	freeaddrinfo(found);
	return fd;
}

void address_of_socket(int socket, char text[static ADDRESS_TEXT_MAX])
{
	struct sockaddr_storage address = {0};
	socklen_t length = sizeof(address);
	char host[ADDRESS_TEXT_MAX / 2] = "?", port[16] = "?";
	bool known = getsockname(socket, (struct sockaddr *)&address, &length) == 0;
	if (address.ss_family == AF_UNIX) {
		snprintf(text, ADDRESS_TEXT_MAX, "unix:%.107s", ((struct sockaddr_un *)&address)->sun_path);
		return;
	}
	if (known)
		getnameinfo((struct sockaddr *)&address, length, host, sizeof(host), port, sizeof(port),
		            NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(text, ADDRESS_TEXT_MAX, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
}
