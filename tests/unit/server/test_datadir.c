#include "datadir.h"
#include "suite.h"

#include <string.h>
#include <sys/stat.h>

static char root[64], error[512];

static void make_folders(const char *const *folders, size_t count)
{
	snprintf(root, sizeof root, "/tmp/attnd-datadir-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
	for (size_t i = 0; i < count; i++) {
		char path[256];
		snprintf(path, sizeof path, "%s/%s", root, folders[i]);
		ck_assert_int_eq(mkdir(path, 0755), 0);
	}
}

/* The directory found for root/program, from root on; the tree is removed. */
static const char *find(const char *program)
{
	static char found[256];
	char path[256], command[128];
	snprintf(path, sizeof path, "%s/%s", root, program);
	FILE *file = fopen(path, "we");
	ck_assert_ptr_nonnull(file);
	fclose(file);
	char *models = datadir_models(path, error, sizeof error);
	snprintf(found, sizeof found, "%s", models != NULL ? models + strlen(root) + 1 : "");
	ck_assert(models == NULL || strncmp(models, root, strlen(root)) == 0);
	free(models);
	snprintf(command, sizeof command, "rm -rf %s", root);
	ck_assert_int_eq(system(command), 0);
	return found;
}

START_TEST(an_installed_program_finds_what_was_installed_with_it)
{
	static const char *const folders[] = {"bin",    "share",        "share/attnd", "share/attnd/models",
	                                      "config", "config/models"};
	make_folders(folders, sizeof folders / sizeof folders[0]);
	ck_assert_str_eq(find("bin/attnd"), "share/attnd/models");
}
END_TEST

START_TEST(a_program_as_built_finds_the_models_of_its_sources)
{
	static const char *const folders[] = {"build", "build/asan", "config", "config/models"};
	make_folders(folders, sizeof folders / sizeof folders[0]);
	ck_assert_str_eq(find("build/attnd"), "config/models");
	make_folders(folders, sizeof folders / sizeof folders[0]);
	ck_assert_str_eq(find("build/asan/attnd"), "config/models");
}
END_TEST

START_TEST(a_program_without_models_says_so)
{
	static const char *const folders[] = {"bin"};
	make_folders(folders, 1);
	ck_assert_str_eq(find("bin/attnd"), "");
	ck_assert_ptr_nonnull(strstr(error, "--models"));
	ck_assert_ptr_null(datadir_models("/nowhere/attnd", error, sizeof error));
	ck_assert_ptr_nonnull(strstr(error, "No such file"));
}
END_TEST

SUITE_MAIN("datadir", an_installed_program_finds_what_was_installed_with_it,
           a_program_as_built_finds_the_models_of_its_sources, a_program_without_models_says_so)
