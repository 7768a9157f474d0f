/*
 * options.h - every setting of the daemon: one table makes flags, environment, file, --help and checks.
 *
 * Precedence: flag, then ATTND_* in the environment, then the file given by --config, then the default.
 * Read at start on the main thread; immutable after.
 */
#ifndef ATTND_OPTIONS_H
#define ATTND_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct options {
	/* where */
	char *listen; /* host:port, [v6]:port, unix:/path */
	char *models; /* directory; NULL: the embedded default model */
	/* who may ask; NULL: no token, no other origin, any host */
	char *tokens_file;
	char *allowed_origins, *allowed_hosts; /* comma lists */
	/* limits: bytes, counts, milliseconds */
	size_t max_connections, max_body, max_reply, max_elements, max_inflight, max_sequence_length,
	    queue_limit;
	uint64_t header_timeout_ms, body_timeout_ms, keepalive_timeout_ms, request_timeout_ms,
	    drain_timeout_ms;
	size_t min_reply_rate; /* bytes a second at which a reply must be read */
	/* computing */
	size_t workers; /* 0: CPUs allowed by affinity and cgroup */
	size_t max_batch, max_batch_tokens, max_batch_scores;
	uint64_t batch_wait_ms, batch_max_age_ms;
	char *kernels; /* a name of attn_kernels_list, or "auto" */
	/* log */
	char *log_level, *log_format;
	/* what to do instead of serving; flags only */
	bool check_config, healthcheck, version, help;
	char *config; /* file, or NULL */
};

enum options_result { OPTIONS_OK, OPTIONS_BAD };

/* Reads flags (argv), environment (envp, NULL-terminated) and file. OPTIONS_BAD with a message in error that
 * names the flag, variable, or file, line and key, with the value and what is allowed. */
enum options_result options_read(struct options *options, int argc, char **argv, char **envp, char *error,
                                 size_t error_size);
void options_clear(struct options *options);
/* --help, from the table. */
void options_print_help(FILE *out);

#endif
