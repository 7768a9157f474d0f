#include "notify.h"

#include <systemd/sd-daemon.h>

void notify_ready(void)
{
	(void)sd_notify(0, "READY=1");
}

void notify_stopping(void)
{
	(void)sd_notify(0, "STOPPING=1");
}

void notify_status(const char *text)
{
	(void)sd_notifyf(0, "STATUS=%s", text);
}
