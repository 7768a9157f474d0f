#include "registry.h"

#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct model_instance {
	char *name;
	attn_model *model;
	struct tokenizer *tokenizer; /* or NULL */
	atomic_size_t references;
};

struct registry {
	struct model_instance **instances; /* [count] by name */
	size_t count;
	attn_error *failures; /* [failure_count] by name */
	size_t failure_count;
};

/* ------------------------------------------------------------------ instances */

const char *model_instance_name(const struct model_instance *instance)
{
	return instance->name;
}

const attn_model *model_instance_model(const struct model_instance *instance)
{
	return instance->model;
}

const struct tokenizer *model_instance_tokenizer(const struct model_instance *instance)
{
	return instance->tokenizer;
}

struct model_instance *model_instance_retain(struct model_instance *instance)
{
	atomic_fetch_add_explicit(&instance->references, 1, memory_order_relaxed);
	return instance;
}

void model_instance_release(struct model_instance *instance)
{
	if (!instance)
		return;
	if (atomic_fetch_sub_explicit(&instance->references, 1, memory_order_acq_rel) > 1)
		return;
	attn_model_free(instance->model);
	tokenizer_free(instance->tokenizer);
	free(instance->name);
	free(instance);
}

/* ------------------------------------------------------------------ errors */

static attn_status memory_failed(attn_error *err)
{
	err->status = ATTN_MEMORY;
	snprintf(err->message, sizeof(err->message), "out of memory");
	return ATTN_MEMORY;
}

static attn_status file_failed(const char *path, attn_error *err)
{
	err->status = ATTN_FILE;
	snprintf(err->message, sizeof(err->message), "%s: %m", path);
	return ATTN_FILE;
}

/* Puts the model's name before the message of what failed. */
static void name_model(const char *name, attn_error *err)
{
	attn_error inner = *err;
	if (snprintf(err->message, sizeof(err->message), "model %s: %s", name, inner.message) < 0)
		*err = inner;
}

/* ------------------------------------------------------------------ loading */

static bool name_valid(const char *name)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	return name[strspn(name, allowed)] == '\0' && strlen(name) <= MODEL_NAME_MAX;
}

/* The tokenizer, if there is one, whose tokens must be tokens of the model. */
static attn_status tokenizer_load(const char *path, struct model_instance *instance, attn_error *err)
{
	attn_status status = tokenizer_open(path, &instance->tokenizer, err);
	if (status != ATTN_OK || instance->tokenizer == NULL)
		return status;
	size_t tokens = tokenizer_size(instance->tokenizer);
	size_t vocabulary = attn_model_info_of(instance->model).vocabulary;
	if (vocabulary == 0 || tokens <= vocabulary)
		return ATTN_OK;
	err->status = ATTN_CONFIG;
	snprintf(err->message, sizeof(err->message),
	         "the tokenizer has %zu tokens, the model's vocabulary has %zu", tokens, vocabulary);
	return ATTN_CONFIG;
}

static attn_status instance_open(const char *name, const char *path, const attn_kernels *kernels,
                                 struct model_instance **out, attn_error *err)
{
	if (!name_valid(name)) {
		err->status = ATTN_CONFIG;
		snprintf(err->message, sizeof(err->message),
		         "the name must be of A-Z a-z 0-9 . _ - and have at most %d characters",
		         MODEL_NAME_MAX);
		return ATTN_CONFIG;
	}
	struct model_instance *instance = calloc(1, sizeof(*instance));
	if (!instance)
		return memory_failed(err);
	atomic_init(&instance->references, 1);
	instance->name = strdup(name);
	attn_status status =
	    instance->name ? attn_model_open(path, kernels, &instance->model, err) : memory_failed(err);
	if (status == ATTN_OK)
		status = tokenizer_load(path, instance, err);
	if (status != ATTN_OK) {
		model_instance_release(instance);
		return status;
	}
	*out = instance;
	return ATTN_OK;
}

/* Loads one entry of the directory, if it is a directory, as the registry's next instance or failure. */
static void entry_load(struct registry *registry, const char *directory, const char *name,
                       const attn_kernels *kernels)
{
	attn_error *err = &registry->failures[registry->failure_count];
	attn_status status = ATTN_OK;
	struct stat info;
	char *path = NULL;
	if (asprintf(&path, "%s/%s", directory, name) < 0) {
		path = NULL;
		status = memory_failed(err);
	} else if (stat(path, &info) != 0) {
		status = file_failed(path, err);
	} else if (S_ISDIR(info.st_mode)) {
		status = instance_open(name, path, kernels, &registry->instances[registry->count], err);
		registry->count += status == ATTN_OK;
	}
	if (status != ATTN_OK) {
		name_model(name, err);
		registry->failure_count++;
	}
	free(path);
}

static int not_hidden(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static int by_name(const struct dirent **left, const struct dirent **right)
{
	return strcmp((*left)->d_name, (*right)->d_name);
}

static struct registry *registry_new(size_t capacity)
{
	struct registry *registry = calloc(1, sizeof(*registry));
	if (!registry)
		return NULL;
	registry->instances = calloc(capacity + 1, sizeof(struct model_instance *));
	registry->failures = calloc(capacity + 1, sizeof(*registry->failures));
	if (!registry->instances || !registry->failures) {
		registry_free(registry);
		return NULL;
	}
	return registry;
}

attn_status registry_load(const char *directory, const attn_kernels *kernels, struct registry **out,
                          attn_error *err)
{
	struct dirent **entries = NULL;
	int found = scandir(directory, &entries, not_hidden, by_name);
	if (found < 0)
		return errno == ENOMEM ? memory_failed(err) : file_failed(directory, err);
	*out = registry_new((size_t)found);
	for (int i = 0; i < found; i++) {
		if (*out)
			entry_load(*out, directory, entries[i]->d_name, kernels);
		free(entries[i]);
	}
	free(entries);
	return *out ? ATTN_OK : memory_failed(err);
}

void registry_free(struct registry *registry)
{
	if (!registry)
		return;
	for (size_t i = 0; i < registry->count; i++)
		model_instance_release(registry->instances[i]);
	free(registry->instances);
	free(registry->failures);
	free(registry);
}

size_t registry_count(const struct registry *registry)
{
	return registry->count;
}

struct model_instance *registry_at(const struct registry *registry, size_t index)
{
	return registry->instances[index];
}

static int compare_key(const void *key, const void *element)
{
	const struct model_instance *const *instance = element;
	return strcmp(key, (*instance)->name);
}

struct model_instance *registry_find(const struct registry *registry, const char *name)
{
	struct model_instance **found =
	    bsearch(name, registry->instances, registry->count, sizeof(*registry->instances), compare_key);
	return found ? *found : NULL;
}

size_t registry_failures(const struct registry *registry)
{
	return registry->failure_count;
}

const attn_error *registry_failure(const struct registry *registry, size_t index)
{
	return &registry->failures[index];
}
