#include "model_path.h"

#include <stdio.h>
#include <unistd.h>

char *attn_model_path(const char *directory, const char *name)
{
	char *path = NULL;
	return asprintf(&path, "%s/%s", directory, name) < 0 ? NULL : path;
}

bool attn_model_has_file(const char *path)
{
	return access(path, F_OK) == 0;
}
