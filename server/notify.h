/*
 * notify.h - what the service manager is told, and what it hands over.
 *
 * The protocols of sd_notify(3), sd_watchdog_enabled(3) and sd_listen_fds(3): datagrams to the socket that
 * NOTIFY_SOCKET names, and variables of the environment. Without those (no service manager, or a unit that is
 * not Type=notify) every call does nothing. For the loop thread: a manager that does not read is given a
 * second, not more (sd_notify itself would wait for ever). Failures to tell are ignored, since a manager that
 * does not hear us deals with that by its own timeouts.
 */
#ifndef ATTND_NOTIFY_H
#define ATTND_NOTIFY_H

#include <stddef.h>
#include <stdint.h>

/* Requests are being served (READY=1): after the socket listens and the models are loaded, and at the end of
 * each reload. status is a line of UTF-8 that `systemctl status` shows (STATUS=). */
void notify_ready(const char *status);

/* A reload has begun (RELOADING=1, with the time). */
void notify_reloading(void);

/* Draining has begun (STOPPING=1). */
void notify_stopping(void);

/* All is well (WATCHDOG=1). */
void notify_alive(void);

/* How often notify_alive is to be called, in milliseconds: half of what the manager waits; 0: it does not. */
uint64_t notify_watchdog_ms(void);

/* Takes the listening socket that the manager passed (LISTEN_FDS), which is the caller's then and
 * non-blocking; -1: none was. -2 with the reason in error: there are several, or it is no stream socket that
 * listens. Before any thread starts: it clears the variables, so that it finds the socket once. */
int notify_take_socket(char *error, size_t error_size);

#endif
