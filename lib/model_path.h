/*
 * model_path.h - names of files in a model directory.
 */
#ifndef ATTN_MODEL_PATH_H
#define ATTN_MODEL_PATH_H

#include <stdbool.h>

/* "directory/name", for the caller to free; NULL: no memory. */
char *attn_model_path(const char *directory, const char *name);

bool attn_model_has_file(const char *path);

#endif
