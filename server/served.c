#include "served.h"

#include "datadir.h"
#include "http/tokens.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* NULL with err set. */
static struct registry *load_registry(const char *models, const attn_kernels *kernels, attn_error *err)
{
	struct registry *registry = NULL;
	char *embedded = NULL;
	if (models == NULL) {
		embedded = datadir_models(NULL, err->message, sizeof(err->message));
		models = embedded;
		err->status = ATTN_FILE;
	}
	if (models != NULL && registry_load(models, kernels, &registry, err) != ATTN_OK)
		registry = NULL;
	free(embedded);
	return registry;
}

/* Whether nothing failed, or that does not matter; err is set else. */
static bool check_failures(const struct registry *registry, bool all, attn_error *err)
{
	if (registry_failures(registry) == 0 || (!all && registry_count(registry) > 0))
		return true;
	*err = *registry_failure(registry, 0);
	return false;
}

/* all: a model that cannot be loaded is an error. */
static struct served *load(const struct options *options, const attn_kernels *kernels, bool all,
                           attn_error *err)
{
	struct served *served = calloc(1, sizeof(*served));
	if (served == NULL) {
		err->status = ATTN_MEMORY;
		snprintf(err->message, sizeof(err->message), "the system refused memory for what is served");
		return NULL;
	}
	log_level_parse(options->log_level, &served->log_level);
	log_format_parse(options->log_format, &served->log_format);
	served->registry = load_registry(options->models, kernels, err);
	if (served->registry == NULL || !check_failures(served->registry, all, err))
		goto failed;
	if (options->tokens_file != NULL && (served->tokens = tokens_load(options->tokens_file, err)) == NULL)
		goto failed;
	return served;
failed:
	served_free(served);
	return NULL;
}

struct served *served_load(const struct options *options, const attn_kernels *kernels, attn_error *err)
{
	return load(options, kernels, false, err);
}

struct served *served_load_again(int argc, char **argv, char **envp, const attn_kernels *kernels,
                                 attn_error *err)
{
	struct options options;
	if (options_read(&options, argc, argv, envp, err->message, sizeof(err->message)) != OPTIONS_OK) {
		err->status = ATTN_CONFIG;
		return NULL;
	}
	struct served *served = load(&options, kernels, true, err);
	options_clear(&options);
	return served;
}

void served_free(struct served *served)
{
	if (served == NULL)
		return;
	registry_free(served->registry);
	tokens_free(served->tokens);
	free(served);
}
