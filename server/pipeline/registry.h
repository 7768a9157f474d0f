/*
 * registry.h - the models being served, by name: immutable, reference-counted instances.
 *
 * A registry is made whole, off the loop, and swapped in on the loop; it holds one reference to each
 * instance, each job that uses one holds another. The last release frees the weights. Counting is atomic:
 * any thread may release.
 */
#ifndef ATTND_PIPELINE_REGISTRY_H
#define ATTND_PIPELINE_REGISTRY_H

#include "attn.h"
#include "text/tokenizer.h"

#include <stddef.h>

/* Characters of a name at most; longer ones are an error. */
#define MODEL_NAME_MAX 128

struct model_instance; /* one loaded model under its name */

const char *model_instance_name(const struct model_instance *instance);
const attn_model *model_instance_model(const struct model_instance *instance);
/* What the model's tokenizer files say; NULL where it has none. */
const struct tokenizer *model_instance_tokenizer(const struct model_instance *instance);
struct model_instance *model_instance_retain(struct model_instance *instance);
void model_instance_release(struct model_instance *instance); /* NULL is allowed */

struct registry;

/* Loads every subdirectory of `directory` (sorted by name), hidden ones aside, as a model, whose weights are
 * packed for these kernels, with the tokenizer whose files lie there, which may not have more tokens than the
 * model; names match [A-Za-z0-9._-]+. An empty directory makes an empty registry. A subdirectory that cannot
 * be loaded is left out, and is one of the registry's failures: whether these matter is the caller's to
 * judge. An error when the directory itself cannot be read. */
attn_status registry_load(const char *directory, const attn_kernels *kernels, struct registry **out,
                          attn_error *err);
void registry_free(struct registry *registry);
size_t registry_count(const struct registry *registry);
struct model_instance *registry_at(const struct registry *registry, size_t index); /* not retained */
struct model_instance *registry_find(const struct registry *registry,
                                     const char *name); /* not retained; NULL */
/* Subdirectories that could not be loaded, by name; each error's message names its model. */
size_t registry_failures(const struct registry *registry);
const attn_error *registry_failure(const struct registry *registry, size_t index);

#endif
