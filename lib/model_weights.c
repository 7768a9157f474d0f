#include "model_weights.h"

#include "error.h"
#include "model_json.h"
#include "model_path.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SINGLE "model.safetensors"
#define INDEX "model.safetensors.index.json"

struct entry {
	const attn_stored_tensor *tensor;
	bool taken;
};

struct shard {
	const char *name; /* belongs to the index */
	attn_safetensors *file;
};

struct attn_weights {
	struct shard *shards; /* [shard_count], room for capacity; by name */
	size_t shard_count;
	struct entry *entries; /* [count] by name */
	size_t count;
	json_t *index; /* or NULL for a single file */
};

/* ------------------------------------------------------------------ entries */

static int compare_entries(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;
	return strcmp(a->tensor->name, b->tensor->name);
}

static int compare_key(const void *key, const void *element)
{
	const struct entry *entry = element;
	return strcmp(key, entry->tensor->name);
}

static struct entry *entry_find(const attn_weights *weights, const char *name)
{
	if (weights->count == 0)
		return NULL;
	return bsearch(name, weights->entries, weights->count, sizeof(*weights->entries), compare_key);
}

/* Makes the entries of all tensors of all shards. */
static attn_status entries_make(attn_weights *weights, attn_error *err)
{
	size_t total = 0;
	for (size_t i = 0; i < weights->shard_count; i++)
		total += attn_safetensors_count(weights->shards[i].file);
	if (total == 0)
		return ATTN_OK;
	weights->entries = calloc(total, sizeof(*weights->entries));
	if (!weights->entries)
		return attn_error_set(err, ATTN_MEMORY, "out of memory for %zu tensors", total);
	for (size_t i = 0; i < weights->shard_count; i++) {
		attn_safetensors *file = weights->shards[i].file;
		for (size_t k = 0; k < attn_safetensors_count(file); k++)
			weights->entries[weights->count++].tensor = attn_safetensors_at(file, k);
	}
	qsort(weights->entries, weights->count, sizeof(*weights->entries), compare_entries);
	return ATTN_OK;
}

/* ------------------------------------------------------------------ files */

/* Opens a file of the directory as the next shard; there is room for it. */
static attn_status shard_open(attn_weights *weights, const char *directory, const char *name, attn_error *err)
{
	char *path = attn_model_path(directory, name);
	if (!path)
		return attn_error_set(err, ATTN_MEMORY, "out of memory");
	struct shard *shard = &weights->shards[weights->shard_count];
	attn_status status = attn_safetensors_open(path, &shard->file, err);
	free(path);
	if (status != ATTN_OK)
		return status;
	shard->name = name;
	weights->shard_count++;
	return ATTN_OK;
}

static struct shard *shard_find(const attn_weights *weights, const char *name)
{
	for (size_t i = 0; i < weights->shard_count; i++) {
		if (strcmp(weights->shards[i].name, name) == 0)
			return &weights->shards[i];
	}
	return NULL;
}

/* A shard's name is one file of the directory, hidden ones excepted. */
static bool shard_name_valid(const char *name)
{
	return name && name[0] != '\0' && name[0] != '.' && !strchr(name, '/');
}

/* Opens the shard of one line of the weight_map, unless it is open, and looks the tensor up in it. */
static attn_status mapping_open(attn_weights *weights, const char *directory, const char *tensor,
                                const char *name, attn_error *err)
{
	if (!shard_name_valid(name))
		return attn_error_set(err, ATTN_FORMAT,
		                      INDEX ": tensor \"%.*s\": its file is not a plain name",
		                      attn_error_quote(tensor), tensor);
	struct shard *shard = shard_find(weights, name);
	if (!shard) {
		attn_status status = shard_open(weights, directory, name, err);
		if (status != ATTN_OK)
			return status;
		shard = shard_find(weights, name);
	}
	if (!attn_safetensors_find(shard->file, tensor))
		return attn_error_set(err, ATTN_FORMAT, INDEX ": tensor \"%.*s\" is not in %.*s",
		                      attn_error_quote(tensor), tensor, attn_error_quote(name), name);
	return ATTN_OK;
}

/* Each tensor of a shard is one that the weight_map expects there (so none is in two shards). */
static attn_status shard_check(const struct shard *shard, const json_t *map, attn_error *err)
{
	for (size_t i = 0; i < attn_safetensors_count(shard->file); i++) {
		const char *tensor = attn_safetensors_at(shard->file, i)->name;
		const char *name = json_string_value(json_object_get(map, tensor));
		if (!name || strcmp(name, shard->name) != 0)
			return attn_error_set(
			    err, ATTN_FORMAT,
			    INDEX ": tensor \"%.*s\" is in %.*s, where weight_map has it not",
			    attn_error_quote(tensor), tensor, attn_error_quote(shard->name), shard->name);
	}
	return ATTN_OK;
}

static attn_status shards_open(attn_weights *weights, const char *directory, attn_error *err)
{
	json_t *map = json_object_get(weights->index, "weight_map");
	if (!json_is_object(map))
		return attn_error_set(err, ATTN_FORMAT, INDEX ": weight_map is missing or not an object");
	weights->shards = calloc(json_object_size(map) + 1, sizeof(*weights->shards));
	if (!weights->shards)
		return attn_error_set(err, ATTN_MEMORY, "out of memory");
	const char *tensor;
	json_t *file;
	json_object_foreach(map, tensor, file)
	{
		attn_status status = mapping_open(weights, directory, tensor, json_string_value(file), err);
		if (status != ATTN_OK)
			return status;
	}
	attn_status status = ATTN_OK;
	for (size_t i = 0; i < weights->shard_count && status == ATTN_OK; i++)
		status = shard_check(&weights->shards[i], map, err);
	return status;
}

static attn_status single_open(attn_weights *weights, const char *directory, attn_error *err)
{
	weights->shards = calloc(1, sizeof(*weights->shards));
	if (!weights->shards)
		return attn_error_set(err, ATTN_MEMORY, "out of memory");
	return shard_open(weights, directory, SINGLE, err);
}

/* Opens the single file, or else the index and its shards. */
static attn_status files_open(attn_weights *weights, const char *directory, attn_error *err)
{
	attn_status status = ATTN_MEMORY;
	char *single = attn_model_path(directory, SINGLE);
	char *index = attn_model_path(directory, INDEX);
	if (!single || !index) {
		attn_error_set(err, ATTN_MEMORY, "out of memory");
	} else if (attn_model_has_file(single)) {
		status = single_open(weights, directory, err);
	} else if (attn_model_has_file(index)) {
		status = attn_model_json_load(index, &weights->index, err);
		if (status == ATTN_OK)
			status = shards_open(weights, directory, err);
	} else {
		status = attn_error_set(err, ATTN_FILE, "%s: neither " SINGLE " nor " INDEX " is there",
		                        directory);
	}
	free(single);
	free(index);
	return status;
}

attn_status attn_weights_open(const char *directory, attn_weights **out, attn_error *err)
{
	attn_weights *weights = calloc(1, sizeof(*weights));
	if (!weights)
		return attn_error_set(err, ATTN_MEMORY, "out of memory");
	attn_status status = files_open(weights, directory, err);
	if (status == ATTN_OK)
		status = entries_make(weights, err);
	if (status != ATTN_OK) {
		attn_weights_free(weights);
		return status;
	}
	*out = weights;
	return ATTN_OK;
}

void attn_weights_free(attn_weights *weights)
{
	if (!weights)
		return;
	for (size_t i = 0; i < weights->shard_count; i++)
		attn_safetensors_free(weights->shards[i].file);
	free(weights->shards);
	free(weights->entries);
	json_decref(weights->index);
	free(weights);
}

/* ------------------------------------------------------------------ tensors */

void attn_weights_shape_text(char text[ATTN_SHAPE_TEXT], size_t rank, const size_t *shape)
{
	size_t used = 0;
	text[used++] = '[';
	for (size_t i = 0; i < rank; i++)
		used += (size_t)snprintf(text + used, ATTN_SHAPE_TEXT - used, "%s%zu", i > 0 ? ", " : "",
		                         shape[i]);
	memcpy(text + used, "]", 2);
}

static bool dtype_is_floating(attn_dtype dtype)
{
	return dtype == ATTN_FLOAT32 || dtype == ATTN_FLOAT16 || dtype == ATTN_BFLOAT16 ||
	       dtype == ATTN_FLOAT64;
}

static attn_status tensor_check(const attn_stored_tensor *tensor, size_t rank, const size_t *shape,
                                attn_error *err)
{
	if (tensor->rank != rank || (rank > 0 && memcmp(tensor->shape, shape, rank * sizeof(*shape)) != 0)) {
		char wanted[ATTN_SHAPE_TEXT], found[ATTN_SHAPE_TEXT];
		attn_weights_shape_text(wanted, rank, shape);
		attn_weights_shape_text(found, tensor->rank, tensor->shape);
		return attn_error_set(err, ATTN_TENSOR, "tensor \"%s\" must have shape %s, found %s",
		                      tensor->name, wanted, found);
	}
	if (!dtype_is_floating(tensor->dtype))
		return attn_error_set(err, ATTN_TENSOR,
		                      "tensor \"%s\" must hold F32, F16, BF16 or F64, found %s", tensor->name,
		                      attn_dtype_name(tensor->dtype));
	return ATTN_OK;
}

const attn_stored_tensor *attn_weights_find(const attn_weights *weights, const char *name)
{
	const struct entry *entry = entry_find(weights, name);
	return entry ? entry->tensor : NULL;
}

attn_status attn_weights_take(attn_weights *weights, const char *name, size_t rank, const size_t *shape,
                              const attn_stored_tensor **out, attn_error *err)
{
	struct entry *entry = entry_find(weights, name);
	if (!entry) {
		char wanted[ATTN_SHAPE_TEXT];
		attn_weights_shape_text(wanted, rank, shape);
		return attn_error_set(err, ATTN_TENSOR, "tensor \"%s\" of shape %s is missing", name, wanted);
	}
	entry->taken = true;
	*out = entry->tensor;
	return tensor_check(entry->tensor, rank, shape, err);
}

const attn_stored_tensor *attn_weights_at(const attn_weights *weights, size_t index)
{
	return weights->entries[index].tensor;
}

size_t attn_weights_count(const attn_weights *weights)
{
	return weights->count;
}

size_t attn_weights_numbers(const attn_weights *weights)
{
	size_t total = 0;
	for (size_t i = 0; i < weights->count; i++) {
		const attn_stored_tensor *tensor = weights->entries[i].tensor;
		total += tensor->bytes / attn_dtype_size(tensor->dtype);
	}
	return total;
}

void attn_weights_ignore(attn_weights *weights, const char *pattern)
{
	for (size_t i = 0; i < weights->count; i++)
		if (fnmatch(pattern, weights->entries[i].tensor->name, 0) == 0)
			weights->entries[i].taken = true;
}

attn_status attn_weights_all_taken(const attn_weights *weights, attn_error *err)
{
	for (size_t i = 0; i < weights->count; i++) {
		const char *name = weights->entries[i].tensor->name;
		if (!weights->entries[i].taken)
			return attn_error_set(err, ATTN_TENSOR,
			                      "tensor \"%.*s\" does not belong to this model",
			                      attn_error_quote(name), name);
	}
	return ATTN_OK;
}

#define PIECE 256

void attn_weights_transpose(const attn_stored_tensor *tensor, size_t first, size_t count, float *out,
                            size_t stride)
{
	size_t columns = tensor->shape[1];
	size_t element = attn_dtype_size(tensor->dtype);
	float piece[PIECE];
	for (size_t row = 0; row < count; row++) {
		const char *source = (const char *)tensor->data + (first + row) * columns * element;
		for (size_t column = 0; column < columns; column += PIECE) {
			size_t taken = columns - column < PIECE ? columns - column : PIECE;
			attn_to_float32(tensor->dtype, source + column * element, taken, piece);
			for (size_t i = 0; i < taken; i++)
				out[(column + i) * stride + row] = piece[i];
		}
	}
}
