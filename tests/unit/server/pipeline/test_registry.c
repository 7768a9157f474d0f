#include "pipeline/registry.h"

#include "model_files.h"
#include "suite.h"

#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Makes a subdirectory of the folder; returns its path, for the caller to free. */
static char *subdirectory(const char *folder, const char *name)
{
	char *path = folder_path(folder, name);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	return path;
}

static void add_model(const char *folder, const char *name, size_t width)
{
	char *path = subdirectory(folder, name);
	folder_write_mha(path, width, 2);
	free(path);
}

static struct registry *loaded(const char *folder)
{
	struct registry *registry = NULL;
	attn_error err = {ATTN_OK, ""};
	attn_status status = registry_load(folder, plain_kernels(), &registry, &err);
	ck_assert_msg(status == ATTN_OK, "%s", err.message);
	return registry;
}

/* What the registry has one failure of. */
static void failed(const struct registry *registry, attn_status wanted, const char *first, const char *second)
{
	ck_assert_uint_eq(registry_failures(registry), 1);
	const attn_error *err = registry_failure(registry, 0);
	ck_assert_int_eq(err->status, wanted);
	ck_assert_msg(strstr(err->message, first) && strstr(err->message, second), "%s", err->message);
}

static void refused(const char *folder, attn_status wanted, const char *first, const char *second)
{
	struct registry *registry = NULL;
	attn_error err = {ATTN_OK, ""};
	ck_assert_int_eq(registry_load(folder, plain_kernels(), &registry, &err), wanted);
	ck_assert_int_eq(err.status, wanted);
	ck_assert_msg(strstr(err.message, first) && strstr(err.message, second), "%s", err.message);
	ck_assert_ptr_null(registry);
}

START_TEST(models_are_sorted_and_found_by_name)
{
	char *folder = folder_make();
	add_model(folder, "zeta", 4);
	add_model(folder, "Alpha_1.2-b", 6);
	add_model(folder, "beta", 8);
	folder_write_text(folder, "README", "not a model");
	folder_write_text(folder, ".hidden", "not a model either");
	add_model(folder, ".git", 4);
	add_model(folder, "...", 4);
	struct registry *registry = loaded(folder);
	const char *const names[] = {"Alpha_1.2-b", "beta", "zeta"};
	const size_t widths[] = {6, 8, 4};
	ck_assert_uint_eq(registry_failures(registry), 0);
	ck_assert_uint_eq(registry_count(registry), 3);
	for (size_t i = 0; i < 3; i++) {
		struct model_instance *instance = registry_at(registry, i);
		ck_assert_str_eq(model_instance_name(instance), names[i]);
		ck_assert_ptr_eq(registry_find(registry, names[i]), instance);
		ck_assert_uint_eq(attn_model_info_of(model_instance_model(instance)).width, widths[i]);
	}
	ck_assert_ptr_null(registry_find(registry, "gamma"));
	ck_assert_ptr_null(registry_find(registry, ""));
	registry_free(registry);
	folder_remove(folder);
}
END_TEST

START_TEST(an_empty_directory_makes_an_empty_registry)
{
	char *folder = folder_make();
	struct registry *registry = loaded(folder);
	ck_assert_uint_eq(registry_count(registry), 0);
	ck_assert_ptr_null(registry_find(registry, "x"));
	registry_free(registry);
	folder_remove(folder);
}
END_TEST

START_TEST(a_link_to_a_directory_is_a_model)
{
	char *folder = folder_make(), *models = subdirectory(folder, "models");
	add_model(folder, "real", 4);
	char *target = folder_path(folder, "real"), *link = folder_path(models, "linked");
	ck_assert_int_eq(symlink(target, link), 0);
	struct registry *registry = loaded(models);
	ck_assert_ptr_nonnull(registry_find(registry, "linked"));
	registry_free(registry);
	free(models);
	free(target);
	free(link);
	folder_remove(folder);
}
END_TEST

START_TEST(a_name_outside_the_rule_is_an_error)
{
	char longest[MODEL_NAME_MAX + 2] = "";
	memset(longest, 'x', MODEL_NAME_MAX + 1);
	const char *const names[] = {"a b", "caf\xC3\xA9", "a+b", longest};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *folder = folder_make();
		add_model(folder, names[i], 4);
		struct registry *registry = loaded(folder);
		failed(registry, ATTN_CONFIG, names[i], "name");
		ck_assert_uint_eq(registry_count(registry), 0);
		registry_free(registry);
		folder_remove(folder);
	}
}
END_TEST

START_TEST(a_model_that_fails_is_named_and_the_others_are_loaded)
{
	char *folder = folder_make();
	add_model(folder, "good", 4);
	add_model(folder, "odd", 5); /* two heads do not divide it */
	add_model(folder, "zeta", 6);
	struct registry *registry = loaded(folder);
	failed(registry, ATTN_CONFIG, "model odd", "num_heads");
	ck_assert_uint_eq(registry_count(registry), 2);
	ck_assert_ptr_nonnull(registry_find(registry, "good"));
	ck_assert_ptr_null(registry_find(registry, "odd"));
	ck_assert_ptr_nonnull(registry_find(registry, "zeta"));
	registry_free(registry);
	folder_remove(folder);
}
END_TEST

START_TEST(a_directory_that_cannot_be_read_is_named)
{
	refused("/nonexistent/models", ATTN_FILE, "/nonexistent/models", "No such file");
	refused("config/models/make_tiny_mha.py", ATTN_FILE, "make_tiny_mha.py", "Not a directory");
}
END_TEST

START_TEST(an_instance_outlives_its_registry_while_a_job_holds_it)
{
	char *folder = folder_make();
	add_model(folder, "m", 4);
	struct registry *registry = loaded(folder);
	struct model_instance *instance = registry_find(registry, "m");
	ck_assert_ptr_eq(model_instance_retain(instance), instance);
	registry_free(registry);
	folder_remove(folder);
	ck_assert_str_eq(model_instance_name(instance), "m");
	ck_assert_ptr_nonnull(attn_model_layer(model_instance_model(instance), 0, ATTN_SELF));
	model_instance_release(instance);
	model_instance_release(NULL);
}
END_TEST

#define HOLDERS 4
#define ROUNDS 1000

/* Uses the instance under references of its own, then gives up the one it was handed. */
static void *hold_and_release(void *arg)
{
	struct model_instance *instance = arg;
	size_t seen = 0;
	for (size_t i = 0; i < ROUNDS; i++) {
		model_instance_retain(instance);
		seen += attn_model_info_of(model_instance_model(instance)).layers;
		model_instance_release(instance);
	}
	model_instance_release(instance);
	return seen == ROUNDS ? arg : NULL;
}

/* The address and thread sanitizers see a release too many, too few or unordered. */
START_TEST(any_thread_may_be_the_last_to_release)
{
	struct registry *registry = loaded("config/models");
	struct model_instance *instance = registry_find(registry, "tiny-mha");
	pthread_t holders[HOLDERS];
	for (size_t i = 0; i < HOLDERS; i++) {
		model_instance_retain(instance);
		ck_assert_int_eq(pthread_create(&holders[i], NULL, hold_and_release, instance), 0);
	}
	registry_free(registry);
	for (size_t i = 0; i < HOLDERS; i++) {
		void *result = NULL;
		ck_assert_int_eq(pthread_join(holders[i], &result), 0);
		ck_assert_ptr_nonnull(result);
	}
}
END_TEST

START_TEST(the_default_models_are_served)
{
	static const char *const names[] = {"alice", "english-french", "tiny-mha"};
	struct registry *registry = loaded("config/models");
	ck_assert_uint_eq(registry_count(registry), 3);
	for (size_t i = 0; i < 3; i++)
		ck_assert_str_eq(model_instance_name(registry_at(registry, i)), names[i]);
	registry_free(registry);
}
END_TEST

SUITE_MAIN("registry", models_are_sorted_and_found_by_name, an_empty_directory_makes_an_empty_registry,
           a_link_to_a_directory_is_a_model, a_name_outside_the_rule_is_an_error,
           a_model_that_fails_is_named_and_the_others_are_loaded, a_directory_that_cannot_be_read_is_named,
           an_instance_outlives_its_registry_while_a_job_holds_it, any_thread_may_be_the_last_to_release,
           the_default_models_are_served)
