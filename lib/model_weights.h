/*
 * model_weights.h - the tensors of a model directory: one safetensors file, or an index and its shards.
 *
 * A model takes each tensor by its name and wanted shape; what nobody took when the model is made does not
 * belong to it and is an error. Tensors are views into mapped files and die with the weights.
 */
#ifndef ATTN_MODEL_WEIGHTS_H
#define ATTN_MODEL_WEIGHTS_H

#include "attn.h"

typedef struct attn_weights attn_weights;

/* Opens <directory>/model.safetensors, or model.safetensors.index.json and every file of its weight_map.
 * ATTN_FILE, ATTN_FORMAT (the index and its shards disagree: the message names the tensor), ATTN_MEMORY. */
attn_status attn_weights_open(const char *directory, attn_weights **out, attn_error *err);
void attn_weights_free(attn_weights *weights);

/* The tensor of that name, not taken; NULL when there is none. */
const attn_stored_tensor *attn_weights_find(const attn_weights *weights, const char *name);

/* Takes the tensor of that name. ATTN_TENSOR when it is missing, has another shape than
 * shape[0..rank) or holds no floating-point numbers: the message has the wanted and the found. */
attn_status attn_weights_take(attn_weights *weights, const char *name, size_t rank, const size_t *shape,
                              const attn_stored_tensor **out, attn_error *err);

/* The tensors by name; index is below their count. */
const attn_stored_tensor *attn_weights_at(const attn_weights *weights, size_t index);
/* How many tensors there are, and numbers in all of them. */
size_t attn_weights_count(const attn_weights *weights);
size_t attn_weights_numbers(const attn_weights *weights);

/* Takes the tensors whose names match the pattern (fnmatch(3)), whatever they hold. */
void attn_weights_ignore(attn_weights *weights, const char *pattern);

/* ATTN_TENSOR naming the first tensor, by name, that was not taken. */
attn_status attn_weights_all_taken(const attn_weights *weights, attn_error *err);

/* Prints "[48, 16]"; rank is at most ATTN_MAX_RANK. */
#define ATTN_SHAPE_TEXT 192
void attn_weights_shape_text(char text[ATTN_SHAPE_TEXT], size_t rank, const size_t *shape);

/* out[column * stride + row - first] = tensor [rows, columns] at (row, column), for row in
 * [first, first + count): rows of a torch weight [out, in] become columns of W [in, out]. */
void attn_weights_transpose(const attn_stored_tensor *tensor, size_t first, size_t count, float *out,
                            size_t stride);

#endif
