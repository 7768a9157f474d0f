#include "attn.h"

#include "error.h"
#include "model_json.h"

#include <endian.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LENGTH_BYTES 8
#define HEADER_MAX 100000000U
#define METADATA "__metadata__"

struct attn_safetensors {
	attn_stored_tensor *tensors;        /* [count] by order of data */
	const attn_stored_tensor **by_name; /* [count] */
	size_t count;
	json_t *header; /* owns the names and the metadata */
	void *map;      /* of the file, or NULL when the bytes are the caller's */
	size_t map_size;
};

struct span {
	const char *text;
	size_t length;
};

/* ------------------------------------------------------------------ errors */

#define TENSOR_ERROR(err, name, format, ...)                                                                 \
	attn_error_set((err), ATTN_FORMAT, "tensor \"%.*s\": " format, attn_error_quote(name), (name),       \
	               __VA_ARGS__)

/* The key of the outermost object last complete before position, as it is written; empty before the first. */
static struct span key_before(const char *text, size_t position)
{
	struct span key = {text, 0};
	size_t depth = 0;
	for (size_t i = 0; i < position; i++) {
		if (text[i] == '{' || text[i] == '[')
			depth++;
		if (text[i] == '}' || text[i] == ']')
			depth--;
		if (text[i] != '"')
			continue;
		size_t start = ++i;
		while (i < position && text[i] != '"')
			i += text[i] == '\\' ? 2 : 1;
		if (i < position && depth == 1)
			key = (struct span){text + start, i - start};
	}
	return key;
}

static attn_status json_failed(struct span header, const json_error_t *error, attn_error *err)
{
	if (error->text[0] == '\0')
		return attn_error_set(err, ATTN_MEMORY, "out of memory while reading the header");
	size_t position = error->position > 0 ? (size_t)error->position : 0;
	struct span key = key_before(header.text, position < header.length ? position : header.length);
	int shown = key.length <= 160 ? (int)key.length : 0;
	return attn_error_set(err, ATTN_FORMAT,
	                      "tensor \"%.*s\": the header is not valid JSON at byte %zu: %s", shown,
	                      key.text, position, error->text);
}

/* ------------------------------------------------------------------ header */

/* Finds the header's text: its length and its first byte are right, and it lies within size. */
static attn_status header_find(const char *bytes, size_t size, struct span *out, attn_error *err)
{
	if (size < LENGTH_BYTES)
		return attn_error_set(err, ATTN_FORMAT, "%zu bytes are too few for the header's length",
		                      size);
	uint64_t length;
	memcpy(&length, bytes, LENGTH_BYTES);
	length = le64toh(length);
	if (length > HEADER_MAX)
		return attn_error_set(err, ATTN_FORMAT, "the header's length %llu is over the limit of %u",
		                      (unsigned long long)length, HEADER_MAX);
	if (length > size - LENGTH_BYTES)
		return attn_error_set(err, ATTN_FORMAT,
		                      "the header's length %llu is over the %zu bytes that follow it",
		                      (unsigned long long)length, size - LENGTH_BYTES);
	*out = (struct span){bytes + LENGTH_BYTES, (size_t)length};
	if (length == 0 || out->text[0] != '{')
		return attn_error_set(err, ATTN_FORMAT, "the header does not start with '{'");
	return ATTN_OK;
}

static attn_status header_load(struct span text, json_t **out, attn_error *err)
{
	json_error_t error;
	*out = attn_model_json_parse(text.text, text.length, &error);
	return *out ? ATTN_OK : json_failed(text, &error, err);
}

static attn_status metadata_check(json_t *metadata, attn_error *err)
{
	if (!metadata)
		return ATTN_OK;
	if (!json_is_object(metadata))
		return attn_error_set(err, ATTN_FORMAT, METADATA " is not an object of strings");
	const char *key;
	json_t *value;
	json_object_foreach(metadata, key, value)
	{
		if (!json_is_string(value))
			return attn_error_set(err, ATTN_FORMAT,
			                      METADATA " has a value that is not a string: \"%.*s\"",
			                      attn_error_quote(key), key);
	}
	return ATTN_OK;
}

/* ------------------------------------------------------------------ one tensor */

static bool size_of_json(const json_t *value, size_t *out)
{
	json_int_t number = json_integer_value(value);
	*out = (size_t)number;
	return json_is_integer(value) && number >= 0 && (json_int_t)*out == number;
}

static bool dtype_of_json(const json_t *value, attn_dtype *out)
{
	const char *text = json_string_value(value);
	for (int dtype = ATTN_FLOAT32; text && dtype <= ATTN_BOOL; dtype++) {
		*out = (attn_dtype)dtype;
		if (strcmp(text, attn_dtype_name(*out)) == 0)
			return true;
	}
	return false;
}

static attn_status dtype_read(const char *name, const json_t *value, attn_dtype *out, attn_error *err)
{
	if (dtype_of_json(value, out))
		return ATTN_OK;
	const char *text = json_is_string(value) ? json_string_value(value) : "(not a string)";
	return TENSOR_ERROR(err, name, "unknown dtype %.*s", attn_error_quote(text), text);
}

static attn_status shape_read(const json_t *value, attn_stored_tensor *tensor, attn_error *err)
{
	if (!json_is_array(value))
		return TENSOR_ERROR(err, tensor->name, "%s", "shape is not an array");
	if (json_array_size(value) > ATTN_MAX_RANK)
		return TENSOR_ERROR(err, tensor->name, "rank %zu is over the limit of %d",
		                    json_array_size(value), ATTN_MAX_RANK);
	tensor->rank = json_array_size(value);
	for (size_t i = 0; i < tensor->rank; i++) {
		if (!size_of_json(json_array_get(value, i), &tensor->shape[i]))
			return TENSOR_ERROR(err, tensor->name, "dimension %zu of the shape is not a size", i);
	}
	return ATTN_OK;
}

/* Reads [begin, end] and checks it against the data that there is. */
static attn_status offsets_read(const char *name, const json_t *value, size_t data_size, size_t out[2],
                                attn_error *err)
{
	if (json_array_size(value) != 2 || !size_of_json(json_array_get(value, 0), &out[0]) ||
	    !size_of_json(json_array_get(value, 1), &out[1]))
		return TENSOR_ERROR(err, name, "%s", "data_offsets is not an array of two sizes");
	if (out[0] > out[1])
		return TENSOR_ERROR(err, name, "data_offsets [%zu, %zu] end before they begin", out[0],
		                    out[1]);
	if (out[1] > data_size)
		return TENSOR_ERROR(err, name, "data_offsets [%zu, %zu] are over the %zu bytes of data",
		                    out[0], out[1], data_size);
	return ATTN_OK;
}

static attn_status tensor_read(const char *name, const json_t *entry, struct span data,
                               attn_stored_tensor *tensor, attn_error *err)
{
	tensor->name = name;
	if (!json_is_object(entry))
		return TENSOR_ERROR(err, name, "%s", "its entry is not an object");
	attn_status status = dtype_read(name, json_object_get(entry, "dtype"), &tensor->dtype, err);
	if (status == ATTN_OK)
		status = shape_read(json_object_get(entry, "shape"), tensor, err);
	size_t offsets[2] = {0, 0};
	if (status == ATTN_OK)
		status =
		    offsets_read(name, json_object_get(entry, "data_offsets"), data.length, offsets, err);
	if (status != ATTN_OK)
		return status;
	size_t wanted;
	if (!attn_size_product(tensor->shape, tensor->rank, &wanted) ||
	    !attn_size_mul(wanted, attn_dtype_size(tensor->dtype), &wanted))
		return TENSOR_ERROR(err, name, "%s", "the product of its shape overflows");
	tensor->data = data.text + offsets[0];
	tensor->bytes = offsets[1] - offsets[0];
	if (tensor->bytes != wanted)
		return TENSOR_ERROR(err, name, "data_offsets hold %zu bytes, shape and dtype need %zu",
		                    tensor->bytes, wanted);
	return ATTN_OK;
}

/* ------------------------------------------------------------------ all tensors */

/* By place; of those that begin together the empty ones come first. */
static int compare_place(const void *left, const void *right)
{
	const attn_stored_tensor *a = left, *b = right;
	if (a->data != b->data)
		return (const char *)a->data < (const char *)b->data ? -1 : 1;
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? -1 : 1;
	return strcmp(a->name, b->name);
}

static int compare_name(const void *left, const void *right)
{
	const attn_stored_tensor *const *a = left, *const *b = right;
	return strcmp((*a)->name, (*b)->name);
}

static int compare_key(const void *key, const void *element)
{
	const attn_stored_tensor *const *tensor = element;
	return strcmp(key, (*tensor)->name);
}

/* Reads every entry but the metadata into file->tensors. */
static attn_status tensors_read(attn_safetensors *file, struct span data, attn_error *err)
{
	size_t entries = json_object_size(file->header);
	if (entries == 0)
		return ATTN_OK;
	file->tensors = calloc(entries, sizeof(*file->tensors));
	file->by_name = calloc(entries, sizeof(*file->by_name));
	if (!file->tensors || !file->by_name)
		return attn_error_set(err, ATTN_MEMORY, "out of memory for %zu tensors", entries);
	const char *name;
	json_t *entry;
	json_object_foreach(file->header, name, entry)
	{
		if (strcmp(name, METADATA) == 0)
			continue;
		attn_status status = tensor_read(name, entry, data, &file->tensors[file->count], err);
		if (status != ATTN_OK)
			return status;
		file->count++;
	}
	return ATTN_OK;
}

/* Sorts the tensors; they fill the data from its start to its end, one after the other. */
static attn_status tensors_order(attn_safetensors *file, struct span data, attn_error *err)
{
	size_t end = 0;
	if (file->count > 0)
		qsort(file->tensors, file->count, sizeof(*file->tensors), compare_place);
	for (size_t i = 0; i < file->count; i++) {
		const attn_stored_tensor *tensor = &file->tensors[i];
		size_t begin = (size_t)((const char *)tensor->data - data.text);
		if (begin > end)
			return TENSOR_ERROR(err, tensor->name, "begins at %zu and leaves a hole from %zu",
			                    begin, end);
		if (begin < end)
			return TENSOR_ERROR(err, tensor->name,
			                    "begins at %zu and overlaps the tensor before it, "
			                    "which ends at %zu",
			                    begin, end);
		end = begin + tensor->bytes;
		file->by_name[i] = tensor;
	}
	if (end != data.length && file->count == 0)
		return attn_error_set(err, ATTN_FORMAT, "no tensor, but %zu bytes of data", data.length);
	if (end != data.length)
		return TENSOR_ERROR(err, file->tensors[file->count - 1].name,
		                    "is the last and ends at %zu of %zu bytes of data", end, data.length);
	if (file->count > 0)
		qsort(file->by_name, file->count, sizeof(*file->by_name), compare_name);
	return ATTN_OK;
}

/* ------------------------------------------------------------------ public */

attn_status attn_safetensors_parse(const void *bytes, size_t size, attn_safetensors **out, attn_error *err)
{
	struct span header = {NULL, 0};
	attn_status status = header_find(bytes, size, &header, err);
	if (status != ATTN_OK)
		return status;
	struct span data = {header.text + header.length, size - LENGTH_BYTES - header.length};
	attn_safetensors *file = calloc(1, sizeof(*file));
	if (!file)
		return attn_error_set(err, ATTN_MEMORY, "out of memory");
	status = header_load(header, &file->header, err);
	if (status == ATTN_OK)
		status = metadata_check(json_object_get(file->header, METADATA), err);
	if (status == ATTN_OK)
		status = tensors_read(file, data, err);
	if (status == ATTN_OK)
		status = tensors_order(file, data, err);
	if (status != ATTN_OK) {
		attn_safetensors_free(file);
		return status;
	}
	*out = file;
	return ATTN_OK;
}

/* Maps a regular file that is not empty. */
static attn_status file_map(const char *path, void **map, size_t *size, attn_error *err)
{
	attn_status status = ATTN_OK;
	struct stat info;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO is opened at once, and refused */
	if (fd < 0)
		return attn_error_set(err, ATTN_FILE, "%m");
	if (fstat(fd, &info) != 0) {
		status = attn_error_set(err, ATTN_FILE, "%m");
		goto done;
	}
	if (!S_ISREG(info.st_mode)) {
		status = attn_error_set(err, ATTN_FILE, "not a regular file");
		goto done;
	}
	if (info.st_size == 0) {
		status = attn_error_set(err, ATTN_FORMAT, "the file is empty");
		goto done;
	}
	*size = (size_t)info.st_size;
	*map = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (*map == MAP_FAILED)
		status = attn_error_set(err, ATTN_FILE, "%m");
done:
	close(fd);
	return status;
}

attn_status attn_safetensors_open(const char *path, attn_safetensors **out, attn_error *err)
{
	void *map = NULL;
	size_t size = 0;
	attn_status status = file_map(path, &map, &size, err);
	if (status != ATTN_OK) {
		attn_error_prefix(err, path);
		return status;
	}
	status = attn_safetensors_parse(map, size, out, err);
	if (status != ATTN_OK) {
		munmap(map, size);
		attn_error_prefix(err, path);
		return status;
	}
	(*out)->map = map;
	(*out)->map_size = size;
	return ATTN_OK;
}

void attn_safetensors_free(attn_safetensors *file)
{
	if (!file)
		return;
	free(file->tensors);
	free(file->by_name);
	json_decref(file->header);
	if (file->map)
		munmap(file->map, file->map_size);
	free(file);
}

size_t attn_safetensors_count(const attn_safetensors *file)
{
	return file->count;
}

const attn_stored_tensor *attn_safetensors_at(const attn_safetensors *file, size_t index)
{
	return &file->tensors[index];
}

const attn_stored_tensor *attn_safetensors_find(const attn_safetensors *file, const char *name)
{
	if (file->count == 0)
		return NULL;
	const attn_stored_tensor *const *found =
	    bsearch(name, file->by_name, file->count, sizeof(*file->by_name), compare_key);
	return found ? *found : NULL;
}

const char *attn_safetensors_metadata(const attn_safetensors *file, const char *key)
{
	return json_string_value(json_object_get(json_object_get(file->header, METADATA), key));
}

const char *attn_safetensors_metadata_next(const attn_safetensors *file, const char *key)
{
	json_t *metadata = json_object_get(file->header, METADATA);
	void *entry = key ? json_object_iter_next(metadata, json_object_iter_at(metadata, key))
	                  : json_object_iter(metadata);
	return json_object_iter_key(entry);
}
