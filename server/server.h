/*
 * server.h - the loop and its lifetime: from settings to a daemon that serves until it is told to stop.
 */
#ifndef ATTND_SERVER_H
#define ATTND_SERVER_H

#include "options.h"

/* Serves until SIGTERM or SIGINT and a drain. Runs on the calling thread, which becomes the loop thread, and
 * before any other thread was started; the options must outlive the call, with workers settled (at least 1)
 * and the log set up. On SIGHUP argv, the environment and the file are read again, and what served.h names is
 * replaced. Returns the exit status of the process: 0 after a clean drain, 1 when it could not start, the
 * reason logged. */
int server_run(const struct options *options, int argc, char **argv);

#endif
