/*
 * replay.c - the main of a fuzz driver built without a fuzzer: hands it each file of the folders or files
 * named.
 *
 * So that inputs once found stay tested by any compiler. Fails when there is no input at all.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads the whole file to malloc'd memory of exactly its size, so that a sanitizer sees each byte past the
 * end. */
static uint8_t *read_file(const char *path, size_t *size)
{
	FILE *file = fopen(path, "rb");
	struct stat facts;
	if (!file || fstat(fileno(file), &facts) != 0) {
		perror(path);
		exit(EXIT_FAILURE);
	}
	*size = (size_t)facts.st_size;
	uint8_t *data = malloc(*size ? *size : 1);
	if (!data || fread(data, 1, *size, file) != *size) {
		perror(path);
		exit(EXIT_FAILURE);
	}
	fclose(file);
	return data;
}

static void replay_file(const char *path)
{
	size_t size;
	uint8_t *data = read_file(path, &size);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
}

static size_t replay_folder(const char *path, DIR *folder)
{
	size_t count = 0;
	for (struct dirent *entry; (entry = readdir(folder));) {
		if (entry->d_name[0] == '.')
			continue;
		char name[4096];
		snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		replay_file(name);
		count++;
	}
	return count;
}

int main(int argc, char **argv)
{
	size_t count = 0;
	for (int i = 1; i < argc; i++) {
		DIR *folder = opendir(argv[i]);
		if (!folder) {
			replay_file(argv[i]);
			count++;
			continue;
		}
		count += replay_folder(argv[i], folder);
		closedir(folder);
	}
	printf("%zu inputs\n", count);
	return count > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
