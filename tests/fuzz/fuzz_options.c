/*
 * Any bytes as settings: as the file of --config, its lines as flags, and its lines as the environment. Each
 * is read or refused with a message, and what is read is within the table's limits.
 */
#include "options_table.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST_LINES 64
/* Shorter than some messages, so that they are cut. */
#define ERROR_SIZE 96

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool holds)
{
	if (!holds)
		abort();
}

static void expect_in_limits(const struct options *options)
{
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		const struct option_row *row = &option_rows[i];
		const void *target = (const char *)options + row->offset;
		if (row->type == OPTION_SIZE || row->type == OPTION_MS) {
			uint64_t value =
			    row->type == OPTION_SIZE ? *(const size_t *)target : *(const uint64_t *)target;
			expect(value >= row->least && value <= row->most);
		} else if (row->type != OPTION_SWITCH) {
			const char *text = *(char *const *)target;
			expect(text == NULL ? row->fallback == NULL : *text != '\0');
		}
	}
}

/* Reads, and reads again: the same end. */
static void check(int argc, char **argv, char **envp)
{
	struct options options;
	char *error = calloc(1, ERROR_SIZE);
	expect(error != NULL);
	enum options_result result = options_read(&options, argc, argv, envp, error, ERROR_SIZE);
	expect((result == OPTIONS_BAD) == (error[0] != '\0'));
	expect(memchr(error, '\0', ERROR_SIZE) != NULL);
	if (result == OPTIONS_OK)
		expect_in_limits(&options);
	options_clear(&options);
	expect(options_read(&options, argc, argv, envp, error, ERROR_SIZE) == result);
	options_clear(&options);
	free(error);
}

static char *nothing[] = {NULL};

static void check_file(const uint8_t *data, size_t size)
{
	char path[64], flag[] = "--config", program[] = "attnd";
	int fd = memfd_create("options", MFD_CLOEXEC);
	expect(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	char *argv[] = {program, flag, path, NULL};
	check(3, argv, nothing);
	close(fd);
}

/* Lines that would have a file of any name read are left out. */
static int split(char *text, char **lines, int most)
{
	int count = 0;
	char *rest = text;
	for (char *line; count < most && (line = strsep(&rest, "\n")) != NULL;) {
		if (strcasestr(line, "config") == NULL)
			lines[count++] = line;
	}
	lines[count] = NULL;
	return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char program[] = "attnd", *lines[MOST_LINES + 2] = {program};
	char *text = malloc(size + 1);
	expect(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	check_file(data, size);
	int count = split(text, lines + 1, MOST_LINES);
	check(count + 1, lines, nothing);
	check(1, lines, lines + 1);
	free(text);
	return 0;
}
