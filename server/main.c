#include "attn.h"
#include "cpus.h"
#include "healthcheck.h"
#include "http/tokens.h"
#include "observe/log.h"
#include "options.h"
#include "server.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define EXIT_USAGE 2

static void print_version(void)
{
	printf("attnd " ATTND_VERSION "\nkernels:");
	const char *name;
	for (size_t i = 0; (name = attn_kernels_list(i)) != NULL; i++)
		printf(" %s", name);
	printf("\nblas core: %s\nblas config: %s\n", attn_blas_core(), attn_blas_config());
}

/* The settings have been read; what a file holds that they name is another matter. */
static int check_settings(const struct options *options)
{
	attn_error err = {0};
	struct tokens *tokens = NULL;
	if (options->tokens_file != NULL && (tokens = tokens_load(options->tokens_file, &err)) == NULL) {
		fprintf(stderr, "attnd: %s\n", err.message);
		return EXIT_FAILURE;
	}
	tokens_free(tokens);
	puts("attnd: the settings are good");
	return EXIT_SUCCESS;
}

static int check_health(const char *listen)
{
	char error[512];
	int status = healthcheck_run(listen, HEALTHCHECK_TIMEOUT_MS, error, sizeof error);
	if (status != 0)
		fprintf(stderr, "attnd: %s\n", error);
	return status;
}

/* Blocks of MMAP_BYTES or more go back to the system when they are freed, and so does free memory over
 * TRIM_BYTES at the end of a heap. malloc would raise both limits as it sees large blocks freed, and keep
 * what large bodies took. */
#define MMAP_BYTES (2 << 20)
#define TRIM_BYTES (8 << 20)

static int serve(struct options *options, int argc, char **argv)
{
	enum log_level level = LOG_INFO;
	enum log_format format = LOG_KEY_VALUE;
	log_level_parse(options->log_level, &level);
	log_format_parse(options->log_format, &format);
	log_setup(level, format);
	mallopt(M_MMAP_THRESHOLD, MMAP_BYTES);
	mallopt(M_TRIM_THRESHOLD, TRIM_BYTES);
	if (options->workers == 0)
		options->workers = cpus_allowed();
	return server_run(options, argc, argv);
}

int main(int argc, char **argv)
{
	struct options options;
	char error[1024];
	int status = EXIT_SUCCESS;
	if (options_read(&options, argc, argv, environ, error, sizeof error) != OPTIONS_OK) {
		fprintf(stderr, "attnd: %s\n", error);
		return EXIT_USAGE;
	}
	if (options.help)
		options_print_help(stdout);
	else if (options.version)
		print_version();
	else if (options.check_config)
		status = check_settings(&options);
	else if (options.healthcheck)
		status = check_health(options.listen);
	else
		status = serve(&options, argc, argv);
	options_clear(&options);
	return status;
}
