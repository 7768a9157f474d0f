#include "notify.h"

#include "observe/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#define US_PER_MS 1000
#define NS_PER_US 1000
#define PATIENCE_S 1 /* for a manager whose queue is full; a ping is not worth waiting */
#define TEXT_MAX_BYTES 1024

/* A socket to the manager, and its address; -1 when there is none. */
static int open_manager(struct sockaddr_un *address, socklen_t *length)
{
	const char *path = getenv("NOTIFY_SOCKET");
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (path == NULL || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof address->sun_path)
		return -1;
	memcpy(address->sun_path, path, strlen(path));
	if (path[0] == '@')
		address->sun_path[0] = '\0'; /* it has no file */
	*length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

static void tell(const char *text, int flags)
{
	struct sockaddr_un address;
	socklen_t length;
	int fd = open_manager(&address, &length);
	if (fd < 0)
		return;
	const struct timeval patience = {.tv_sec = PATIENCE_S};
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
	(void)sendto(fd, text, strlen(text), flags | MSG_NOSIGNAL, (struct sockaddr *)&address, length);
	close(fd);
}

void notify_ready(const char *status)
{
	char text[TEXT_MAX_BYTES];
	snprintf(text, sizeof text, "READY=1\nSTATUS=%s", status);
	tell(text, 0);
}

void notify_reloading(void)
{
	char text[TEXT_MAX_BYTES];
	snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64 "\nSTATUS=reloading",
	         clock_now() / NS_PER_US);
	tell(text, 0);
}

void notify_stopping(void)
{
	tell("STOPPING=1\nSTATUS=draining", 0);
}

void notify_alive(void)
{
	tell("WATCHDOG=1", MSG_DONTWAIT);
}

uint64_t notify_watchdog_ms(void)
{
	uint64_t period_us = 0;
	if (sd_watchdog_enabled(0, &period_us) <= 0)
		return 0;
	uint64_t half_ms = period_us / 2 / US_PER_MS;
	return half_ms > 0 ? half_ms : 1;
}

static bool set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

int notify_take_socket(char *error, size_t error_size)
{
	int count = sd_listen_fds(1);
	if (count == 0)
		return -1;
	if (count < 0)
		snprintf(error, error_size, "the passed sockets cannot be taken: %s", strerror(-count));
	else if (count > 1)
		snprintf(error, error_size, "%d sockets were passed; one is listened at", count);
	else if (sd_is_socket(SD_LISTEN_FDS_START, AF_UNSPEC, SOCK_STREAM, 1) <= 0)
		snprintf(error, error_size, "the passed descriptor is not a stream socket that listens");
	else if (!set_nonblocking(SD_LISTEN_FDS_START))
		snprintf(error, error_size, "the passed socket cannot be made non-blocking: %s",
		         strerror(errno));
	else
		return SD_LISTEN_FDS_START;
	return -2;
}
