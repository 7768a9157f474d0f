/*
 * model_files.h - safetensors texts and model directories for tests.
 *
 * A folder is a new one under the system's temporary folder; folder_remove takes it away with what is in it.
 */
#ifndef ATTND_TESTS_MODEL_FILES_H
#define ATTND_TESTS_MODEL_FILES_H

#include "attn.h"

#include <stddef.h>

/* The bytes of a safetensors text: the header's length, the header, data_size bytes 0, 1, 2, ... For the
 * caller to free. */
char *safetensors_bytes(const char *header, size_t data_size, size_t *size);

/* The path of a new, empty folder, for folder_remove to free. */
char *folder_make(void);
void folder_remove(char *folder);

/* A folder of models that holds that one directory, by a link. */
char *folder_of_model(const char *directory);

/* Path of a name in a folder, for the caller to free. */
char *folder_path(const char *folder, const char *name);
void folder_write(const char *folder, const char *name, const void *bytes, size_t size);
void folder_write_text(const char *folder, const char *name, const char *text);

/* The bytes of a file, with a NUL behind them; for the caller to free. */
char *file_read(const char *path, size_t *size);

/* One float32 tensor to store. */
struct stored_tensor {
	const char *name;
	size_t rank;
	size_t shape[4];
};

/* Writes the tensors, up to the first without a name, as a safetensors file; their numbers are in (-1, 1) and
 * follow from the seed. */
void folder_write_tensors(const char *folder, const char *name, const struct stored_tensor *tensors,
                          unsigned seed);

/* The set of plain loops, for models to be opened for; there until the program ends. */
const attn_kernels *plain_kernels(void);

/* Writes config.json and model.safetensors of a torch-mha model of that width. */
void folder_write_mha(const char *folder, size_t width, size_t heads);

#endif
