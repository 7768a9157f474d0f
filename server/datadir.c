#include "datadir.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* base/relative when that is a directory. */
static char *find_directory(const char *base, const char *relative)
{
	char *path = NULL;
	struct stat status;
	if (asprintf(&path, "%s/%s", base, relative) < 0)
		return NULL;
	char *real = stat(path, &status) == 0 && S_ISDIR(status.st_mode) ? realpath(path, NULL) : NULL;
	free(path);
	return real;
}

char *datadir_models(const char *program, char *error, size_t error_size)
{
	static const char *const places[] = {"../share/attnd/models", "../config/models",
	                                     "../../config/models"};
	char *folder = realpath(program != NULL ? program : "/proc/self/exe", NULL);
	if (folder == NULL) {
		snprintf(error, error_size, "the program's own path cannot be read: %s", strerror(errno));
		return NULL;
	}
	*strrchr(folder, '/') = '\0';
	char *found = NULL;
	for (size_t i = 0; i < sizeof places / sizeof places[0] && found == NULL; i++)
		found = find_directory(folder, places[i]);
	if (found == NULL)
		snprintf(error, error_size,
		         "the default model is not beside the program: neither %s, %s nor %s from %s; name a "
		         "directory "
		         "with --models",
		         places[0], places[1], places[2], folder);
	free(folder);
	return found;
}
