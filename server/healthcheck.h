/*
 * healthcheck.h - asks a daemon at the listen address whether it serves: `attnd --healthcheck`.
 */
#ifndef ATTND_HEALTHCHECK_H
#define ATTND_HEALTHCHECK_H

#include <stddef.h>
#include <stdint.h>

#define HEALTHCHECK_TIMEOUT_MS 2000

/* GET /healthz at `listen` (host:port or unix:/path, as in options.h; an address that means every interface
 * is asked through the loopback one). 0 when the answer is 200 within timeout_ms in all; else 1 with the
 * reason in error. Blocks; opens one socket. */
int healthcheck_run(const char *listen, uint64_t timeout_ms, char *error, size_t error_size);

#endif
