/*
 * loader.h - how a family of models reads config.json and the tensors of a directory.
 *
 * A load fails once: the first error is kept, with words that name the key or tensor, what it must be and
 * what was found; from then on the functions here do nothing and give numbers that are safe to go on with
 * (sizes are 1). So a family reads on as if all were well; it looks at attn_load_ok before a loop or a size
 * of its own depends on what was read.
 *
 * Every key that a family reads is checked; one that changes what is computed in a way that the family does
 * not know must be refused by reading it with attn_load_only_*. Every tensor must be taken or ignored: what
 * is left when the model is made is an error.
 *
 * Keys of nested objects are written with dots: "rope_parameters.rope_theta". A key that is null is missing.
 */
#ifndef ATTN_LOADER_H
#define ATTN_LOADER_H

#include "attn.h"
#include "error.h"
#include "model_config.h"
#include "model_weights.h"
#include "stack.h"

#define ATTN_LOAD_NAME 256

typedef struct attn_loader {
	const attn_config *config;
	attn_weights *weights;
	const attn_kernels *kernels; /* that weights are packed for */
	attn_model *model;
	attn_error *err;
	attn_status status;          /* ATTN_OK until the load fails */
	char prefix[ATTN_LOAD_NAME]; /* put before names of tensors */
} attn_loader;

bool attn_load_ok(const attn_loader *load);
/* The load fails with these words, unless it has failed. */
void attn_load_fail(attn_loader *load, attn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- config.json */

/* Whether the key is there and not null. */
bool attn_load_has(const attn_loader *load, const char *key);
/* An integer of at least 1, that must be there or has a fallback. */
size_t attn_load_size(attn_loader *load, const char *key);
size_t attn_load_size_or(attn_loader *load, const char *key, size_t fallback);
/* The same of at least 0. */
size_t attn_load_count(attn_loader *load, const char *key, size_t fallback);
/* As attn_load_size, for a count of blocks: at most the tensors in the files. */
size_t attn_load_layers(attn_loader *load, const char *key);
/* A finite number over 0. */
double attn_load_number(attn_loader *load, const char *key, double fallback);
bool attn_load_flag(attn_loader *load, const char *key, bool fallback);
/* Index of the key's text among choices (ended by NULL); a text that is not one of them is an error. */
size_t attn_load_choice(attn_loader *load, const char *key, const char *const *choices, size_t fallback);
/* Name of an activation as transformers spells it: relu, gelu, gelu_new, silu ... */
enum attn_activation attn_load_activation(attn_loader *load, const char *key, enum attn_activation fallback);
/* The key must be missing or have this value: others are not supported. */
void attn_load_only_flag(attn_loader *load, const char *key, bool value);
void attn_load_only_text(attn_loader *load, const char *key, const char *value);
void attn_load_only_size(attn_loader *load, const char *key, size_t value);
/* The key must be missing or null. */
void attn_load_no_key(attn_loader *load, const char *key);
/* The text of element index of a list, NULL where the key is missing; another kind of value is an error. */
const char *attn_load_list_text(attn_loader *load, const char *key, size_t index);

/* a * b; what says what it would have been the size of. */
size_t attn_load_product(attn_loader *load, size_t a, size_t b, const char *what);
/* width / heads, which must divide it; both name their keys. */
size_t attn_load_head_width(attn_loader *load, size_t width, size_t heads, const char *heads_key);

/* ---- the model */

/* Stacks of so many blocks, second 0: only one; the load fails where there is no memory. The first. */
attn_stack *attn_load_stacks(attn_loader *load, size_t first, size_t second);

/* ---- tensors */

/* Sets what is put before names, as printf does. */
void attn_load_prefix(attn_loader *load, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Whether there is a tensor prefix + name. */
bool attn_load_has_tensor(const attn_loader *load, const char *name);
/* One dimension, over 0, of tensor prefix + name, which must be of that rank; letters say its shape, "[3E,
 * E]".
 */
size_t attn_load_dimension(attn_loader *load, const char *name, size_t rank, size_t index,
                           const char *letters);
/* Tensors of these names, of which `*` is any text, belong to the model and change nothing: without prefix.
 */
void attn_load_ignore(attn_loader *load, const char *pattern);

/* [count] numbers of tensor prefix + name. */
const float *attn_load_vector(attn_loader *load, const char *name, size_t count);
/* A norm of name.weight and, where there should be one, name.bias (older files: gamma, beta). */
enum attn_load_bias { ATTN_LOAD_NO_BIAS, ATTN_LOAD_BIAS, ATTN_LOAD_BIAS_IF_THERE };
attn_norm attn_load_norm(attn_loader *load, const char *name, enum attn_norm_kind kind, double eps,
                         size_t width, enum attn_load_bias bias);
/* [count, width] rows to look up, of tensor prefix + name. */
attn_table attn_load_table(attn_loader *load, const char *name, size_t count, size_t width);
/* The same for the table of tokens, and the head of the model besides: lm_head.weight (without prefix), or
 * the table itself where config.json ties them (tied: what it does without the key) or there is no such
 * tensor.
 */
attn_table attn_load_tokens(attn_loader *load, const char *name, size_t count, size_t width, bool tied);
/* Memory for [rows, width] numbers that are computed, not read; what names them. NULL when the load has
 * failed, as it does where the memory of the machine, which the files' size says nothing about, does not hold
 * them.
 */
float *attn_load_computed(attn_loader *load, const char *what, size_t rows, size_t width);
/* [positions, width] sinusoids of positions 0, 1, ...: all sines in the first half (Marian). */
const float *attn_load_sinusoids(attn_loader *load, size_t positions, size_t width);

/* One of the tensors that stand side by side in a matrix: [out, in], or [in, out] where the layout says so.
 */
typedef struct attn_load_part {
	const char *weight, *bias; /* names after the prefix; bias NULL: none */
	size_t out;
	bool bias_if_there;
} attn_load_part;

/* One matrix [in, sum of out] of the parts' columns, side by side, packed for the kernels. */
attn_linear attn_load_parts(attn_loader *load, size_t in, const attn_load_part *parts, size_t count,
                            attn_layout layout);
/* The matrix of name.weight and name.bias. */
attn_linear attn_load_linear(attn_loader *load, const char *name, size_t in, size_t out, attn_layout layout,
                             enum attn_load_bias bias);
/* The map of columns [first, first + count) of a matrix: a view. Maps that lie side by side and read the same
 * input are computed as one product. */
attn_linear attn_linear_columns(const attn_linear *matrix, size_t first, size_t count);

/* ---- attention */

typedef struct attn_load_heads {
	size_t heads, kv_heads, head_width;
} attn_load_heads;

/* Sets heads and default options of a sublayer; kv_heads must divide heads. */
void attn_load_heads_of(attn_loader *load, attn_sublayer *out, const attn_load_heads *heads);

typedef struct attn_load_projections {
	const char *query, *key, *value, *output; /* names, to which .weight and .bias are added */
	size_t width;                             /* of queries and of what comes out */
	size_t memory_width; /* of keys and values in cross-attention; 0: self-attention */
	enum attn_load_bias bias, output_bias;
} attn_load_projections;

/* The same, and the projections from torch's [out, in] matrices: query, key and value, or in cross-attention
 * key and value, are one matrix. */
void attn_load_attention(attn_loader *load, attn_sublayer *out, const attn_load_heads *heads,
                         const attn_load_projections *from);

#endif
