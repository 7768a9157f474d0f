#include "model_files.h"

#include <check.h>
#include <endian.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *bytes_new(size_t size)
{
	void *bytes = calloc(1, size + 1);
	ck_assert_ptr_nonnull(bytes);
	return bytes;
}

char *safetensors_bytes(const char *header, size_t data_size, size_t *size)
{
	size_t length = strlen(header);
	uint64_t stored = htole64(length);
	*size = sizeof(stored) + length + data_size;
	char *bytes = bytes_new(*size);
	memcpy(bytes, &stored, sizeof(stored));
	memcpy(bytes + sizeof(stored), header, length);
	for (size_t i = 0; i < data_size; i++)
		bytes[sizeof(stored) + length + i] = (char)(unsigned char)i;
	return bytes;
}

char *folder_make(void)
{
	char *folder = strdup("/tmp/attnd-test-XXXXXX");
	ck_assert_ptr_nonnull(folder);
	ck_assert_ptr_nonnull(mkdtemp(folder));
	return folder;
}

static int entry_remove(const char *path, const struct stat *info, int type, struct FTW *walk)
{
	(void)info, (void)type, (void)walk;
	return remove(path);
}

void folder_remove(char *folder)
{
	ck_assert_int_eq(nftw(folder, entry_remove, 8, FTW_DEPTH | FTW_PHYS), 0);
	free(folder);
}

char *folder_of_model(const char *directory)
{
	char *folder = folder_make(), *target = realpath(directory, NULL);
	char *link = folder_path(folder, strrchr(directory, '/') + 1);
	ck_assert_ptr_nonnull(target);
	ck_assert_int_eq(symlink(target, link), 0);
	free(target);
	free(link);
	return folder;
}

char *folder_path(const char *folder, const char *name)
{
	char *path;
	ck_assert_int_gt(asprintf(&path, "%s/%s", folder, name), 0);
	return path;
}

void folder_write(const char *folder, const char *name, const void *bytes, size_t size)
{
	char *path = folder_path(folder, name);
	FILE *file = fopen(path, "wb");
	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
	ck_assert_int_eq(fclose(file), 0);
	free(path);
}

char *file_read(const char *path, size_t *size)
{
	FILE *file = fopen(path, "rb");
	ck_assert_msg(file, "%s", path);
	ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
	*size = (size_t)ftell(file);
	rewind(file);
	char *bytes = bytes_new(*size);
	ck_assert_uint_eq(fread(bytes, 1, *size, file), *size);
	fclose(file);
	return bytes;
}

void folder_write_text(const char *folder, const char *name, const char *text)
{
	folder_write(folder, name, text, strlen(text));
}

static size_t tensor_numbers(const struct stored_tensor *tensor)
{
	size_t numbers = 1;
	for (size_t i = 0; i < tensor->rank; i++)
		numbers *= tensor->shape[i];
	return numbers;
}

static void tensor_describe(FILE *header, const struct stored_tensor *tensor, size_t begin, size_t end)
{
	fprintf(header, ",\"%s\":{\"dtype\":\"F32\",\"shape\":[", tensor->name);
	for (size_t i = 0; i < tensor->rank; i++)
		fprintf(header, "%s%zu", i > 0 ? "," : "", tensor->shape[i]);
	fprintf(header, "],\"data_offsets\":[%zu,%zu]}", begin, end);
}

void folder_write_tensors(const char *folder, const char *name, const struct stored_tensor *tensors,
                          unsigned seed)
{
	char *header = NULL;
	size_t length = 0, end = 0, size;
	FILE *stream = open_memstream(&header, &length);
	ck_assert_ptr_nonnull(stream);
	fputs("{\"__metadata__\":{}", stream);
	for (const struct stored_tensor *tensor = tensors; tensor->name; tensor++) {
		size_t begin = end;
		end += tensor_numbers(tensor) * sizeof(float);
		tensor_describe(stream, tensor, begin, end);
	}
	fputc('}', stream);
	ck_assert_int_eq(fclose(stream), 0);
	char *bytes = safetensors_bytes(header, end, &size);
	for (size_t i = 0; i < end / sizeof(float); i++) {
		float number = (float)rand_r(&seed) / (float)RAND_MAX * 2 - 1;
		memcpy(bytes + size - end + i * sizeof(float), &number, sizeof(float));
	}
	folder_write(folder, name, bytes, size);
	free(bytes);
	free(header);
}

const attn_kernels *plain_kernels(void)
{
	static attn_kernels *kernels;
	if (!kernels)
		ck_assert_int_eq(attn_kernels_new("reference", &kernels), ATTN_OK);
	return kernels;
}

void folder_write_mha(const char *folder, size_t width, size_t heads)
{
	const struct stored_tensor tensors[] = {
	    {"in_proj_weight", 2, {3 * width, width}},
	    {"in_proj_bias", 1, {3 * width}},
	    {"out_proj.weight", 2, {width, width}},
	    {"out_proj.bias", 1, {width}},
	    {NULL, 0, {0}},
	};
	char config[80];
	snprintf(config, sizeof(config), "{\"model_type\":\"torch-mha\",\"num_heads\":%zu}", heads);
	folder_write_text(folder, "config.json", config);
	folder_write_tensors(folder, "model.safetensors", tensors, 1);
}
