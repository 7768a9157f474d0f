/*
 * notify.h - what the service manager is told: ready, stopping, and a line of status.
 *
 * The protocol of sd_notify(3): datagrams to the socket that NOTIFY_SOCKET names. Without that variable (no
 * service manager, or a unit that is not Type=notify) every call does nothing. For the loop thread; failures
 * are ignored, since a manager that does not hear us deals with that by its own timeouts.
 */
#ifndef ATTND_NOTIFY_H
#define ATTND_NOTIFY_H

/* Requests are being served (READY=1). Once, after the socket listens and the models are loaded. */
void notify_ready(void);

/* Draining has begun (STOPPING=1). */
void notify_stopping(void);

/* One line of UTF-8 that `systemctl status` shows (STATUS=). */
void notify_status(const char *text);

#endif
