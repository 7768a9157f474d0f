#include "notify.h"

#include "observe/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#define US_PER_MS 1000
#define NS_PER_US 1000

void notify_ready(const char *status)
{
	(void)sd_notifyf(0, "READY=1\nSTATUS=%s", status);
}

void notify_reloading(void)
{
	(void)sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64 "\nSTATUS=reloading",
	                 clock_now() / NS_PER_US);
}

void notify_stopping(void)
{
	(void)sd_notify(0, "STOPPING=1\nSTATUS=draining");
}

void notify_alive(void)
{
	(void)sd_notify(0, "WATCHDOG=1");
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
