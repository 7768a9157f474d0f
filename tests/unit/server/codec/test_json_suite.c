/* Every file of the JSON test suite (Nicolas Seriot) against the scanner: y_ is JSON, n_ is not, i_ may be
 * either. */
#include "codec/json_scan.h"

#include "suite.h"

#include <dirent.h>
#include <string.h>

#define SUITE_DIRECTORY "../shared/data/json-test-suite/test_parsing"

static const struct json_limits roomy = {.elements = 1000000, .envelope = 4 << 20};

static char *read_file(const char *name, size_t *length)
{
	char path[512];
	snprintf(path, sizeof(path), SUITE_DIRECTORY "/%s", name);
	FILE *file = fopen(path, "rb");
	ck_assert_ptr_nonnull(file);
	char *text = malloc(1 << 20);
	*length = fread(text, 1, 1 << 20, file);
	fclose(file);
	char *exact = malloc(*length + 1);
	memcpy(exact, text, *length);
	free(text);
	return exact;
}

/* Whether the scanner takes the text for JSON; escaped NULs and numbers beyond float32 are JSON. */
static bool is_json(const char *text, size_t length)
{
	struct json_scan scan;
	struct problem problem = {.code = PROBLEM_NONE};
	bool whole = json_scan(text, length, NULL, 0, &roomy, NULL, &scan, &problem);
	json_scan_clear(&scan);
	return whole && problem.code != PROBLEM_NOT_FINITE;
}

/* Checks every file whose name begins with `first`; how many there were, 0 where the suite is absent. */
static size_t check_files(char first, int wanted)
{
	DIR *directory = opendir(SUITE_DIRECTORY);
	if (directory == NULL)
		return 0;
	size_t count = 0;
	for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
		if (entry->d_name[0] != first || entry->d_name[1] != '_')
			continue;
		size_t length;
		char *text = read_file(entry->d_name, &length);
		bool found = is_json(text, length);
		ck_assert_msg(wanted < 0 || found == (wanted == 1), "%s", entry->d_name);
		free(text);
		count++;
	}
	closedir(directory);
	return count;
}

START_TEST(what_the_suite_calls_json_is_accepted)
{
	size_t count = check_files('y', 1);
	if (count == 0)
		suite_skip(SUITE_DIRECTORY " is absent");
	else
		ck_assert_uint_ge(count, 90);
}
END_TEST

START_TEST(what_the_suite_calls_broken_is_refused)
{
	size_t count = check_files('n', 0);
	if (count == 0)
		suite_skip(SUITE_DIRECTORY " is absent");
	else
		ck_assert_uint_ge(count, 180);
}
END_TEST

START_TEST(what_the_suite_leaves_open_does_no_harm)
{
	size_t count = check_files('i', -1);
	if (count == 0)
		suite_skip(SUITE_DIRECTORY " is absent");
	else
		ck_assert_uint_ge(count, 30);
}
END_TEST

SUITE_MAIN("json_suite", what_the_suite_calls_json_is_accepted, what_the_suite_calls_broken_is_refused,
           what_the_suite_leaves_open_does_no_harm)
