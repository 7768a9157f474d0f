/*
 * attn.h - the public face of libattn: attention, its layers, and the files weights come from.
 *
 * What it is for: scaled dot-product and multi-head attention in float32, as ATTENTION rules below
 * say, over tensors in memory; reading safetensors; loading models. No input or output but files
 * named by the caller, no threads of its own, no global state, no printing, no environment.
 *
 * Threads: every function may be called from any thread. A `const` object may be shared by threads;
 * an arena belongs to one thread at a time. Parallelism is the caller's: it lends an attn_executor.
 *
 * Memory: an object made by attn_*_new or attn_*_open is freed by attn_*_free (NULL is allowed).
 * Views (attn_heads, attn_linear, attn_sequence, ...) own nothing.
 *
 * Shapes are written [batch, heads, rows, width], row-major; strides count elements, not bytes.
 */
#ifndef ATTN_H
#define ATTN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is declared here is what the shared library exports; it is compiled with hidden symbols. */
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ status */

/* X(NAME, text): every way a call of this library can end. */
#define ATTN_STATUS_MAP(X)                                                                                   \
	X(OK, "success")                                                                                     \
	X(INVALID, "invalid argument")                                                                       \
	X(OVERFLOW, "a product of dimensions is too large")                                                  \
	X(MEMORY, "out of memory")                                                                           \
	X(CANCELLED, "cancelled")                                                                            \
	X(FILE, "a file cannot be read")                                                                     \
	X(FORMAT, "a file is not in the format it should have")                                              \
	X(CONFIG, "a model configuration is not usable")                                                     \
	X(TENSOR, "a tensor is missing or has the wrong shape")                                              \
	X(UNSUPPORTED, "not supported")                                                                      \
	X(SELF_CHECK, "the kernels disagree with the reference")

typedef enum attn_status {
#define X(name, text) ATTN_##name,
	ATTN_STATUS_MAP(X)
#undef X
} attn_status;

/* English text of a status; never NULL. */
const char *attn_status_text(attn_status status);

/* A status with the words that name the culprit (tensor, key, file). message is "" when status is ATTN_OK. */
typedef struct attn_error {
	attn_status status;
	char message[512];
} attn_error;

/* ------------------------------------------------------------------ sizes */

/* *out = product of dims[0..rank); false on overflow of size_t, judged on the dimensions that are not 0
 * (so that [0, 2^40, 2^40] overflows too). The empty product is 1; with a 0 among dims the product is 0. */
bool attn_size_product(const size_t *dims, size_t rank, size_t *out);
/* *out = a * b or a + b; false on overflow. */
bool attn_size_mul(size_t a, size_t b, size_t *out);
bool attn_size_add(size_t a, size_t b, size_t *out);

/* ------------------------------------------------------------------ scratch */

/* Scratch memory given back all at once; blocks are 64-byte aligned and not zeroed. */
typedef struct attn_arena attn_arena;
typedef struct attn_arena_mark {
	void *chunk;
	size_t used;
} attn_arena_mark;

/* keep: bytes kept for reuse after a rewind to empty; what is over goes back to the system. NULL: no memory.
 */
attn_arena *attn_arena_new(size_t keep);
void attn_arena_free(attn_arena *arena);
/* NULL when the system refuses; 0 bytes give a valid pointer. */
void *attn_arena_alloc(attn_arena *arena, size_t bytes);
/* attn_arena_alloc of count floats; NULL on overflow too. */
float *attn_arena_floats(attn_arena *arena, size_t count);
attn_arena_mark attn_arena_here(const attn_arena *arena);
void attn_arena_rewind(attn_arena *arena, attn_arena_mark mark);
/* Most bytes that were handed out at one time, alignment included. */
size_t attn_arena_peak(const attn_arena *arena);

/* ------------------------------------------------------------------ executor */

/* One independent piece of a call; scratch belongs to the thread that runs it and is rewound after. */
typedef attn_status attn_tile_fn(void *arg, size_t tile, attn_arena *scratch);

/* Runs tiles for a call. parallel_for runs each tile in [0, tiles) once, in any order, on any threads, and
 * returns when none runs any more: ATTN_OK, or the first other status (tiles not yet begun are then
 * skipped). It may return ATTN_CANCELLED when nobody wants the result. Calls do not nest.
 * Tile boundaries depend on shapes only, so results do not depend on how many threads took part. */
typedef struct attn_executor {
	attn_status (*parallel_for)(struct attn_executor *self, size_t tiles, attn_tile_fn *run, void *arg);
	attn_arena *scratch; /* of the calling thread */
} attn_executor;

/* Runs tiles one after the other on the calling thread. */
attn_executor attn_executor_serial(attn_arena *scratch);

/* ------------------------------------------------------------------ kernels */

/* A set of arithmetic kernels: "reference" (plain loops, the specification), "blas" (OpenBLAS, and vector
 * kernels of this CPU where they keep promises that OpenBLAS does not) or "native" (products with packed
 * weights by kernels for this CPU, AVX2 or AVX-512; else as "blas"). */
typedef struct attn_kernels attn_kernels;

/* ATTN_UNSUPPORTED for an unknown name or one that this CPU cannot run, ATTN_MEMORY. */
attn_status attn_kernels_new(const char *name, attn_kernels **out);
void attn_kernels_free(attn_kernels *kernels);
const char *attn_kernels_name(const attn_kernels *kernels);
/* Name of set number index of those this CPU can run, fastest first, or NULL past the last. */
const char *attn_kernels_list(size_t index);
/* Core and configuration OpenBLAS reports for this CPU. */
const char *attn_blas_core(void);
const char *attn_blas_config(void);

/* Compares the kernels with plain loops on random shapes made from seed, and a row's bits across batch sizes.
 * ATTN_SELF_CHECK with the product and the difference in err->message when they disagree.
 * Takes tens of milliseconds. Where only the bits of rows depend on the batch, the set is told never to
 * stack sequences (slower, still exact) and the call succeeds. */
attn_status attn_kernels_self_check(attn_kernels *kernels, uint64_t seed, attn_error *err);

/* ------------------------------------------------------------------ attention */

/* Lengths and widths of one call; all its sequences share them. kv_heads divides heads: query head h uses
 * key and value head h / (heads / kv_heads). queries or keys may be 0; the other four may not, save
 * value_width and head_width, which are at least 1. */
typedef struct attn_shape {
	size_t heads, kv_heads;
	size_t queries, keys; /* keys counts past keys too */
	size_t past;          /* of keys, those that come from past_key and past_value; at most keys */
	size_t head_width;    /* D, of queries and keys */
	size_t value_width;   /* Dv */
} attn_shape;

typedef enum attn_causal {
	ATTN_CAUSAL_NONE,
	ATTN_CAUSAL_TOP_LEFT,     /* query i sees key j <= i */
	ATTN_CAUSAL_BOTTOM_RIGHT, /* j <= i + (keys - queries) */
	ATTN_CAUSAL_OFFSET,       /* j <= i + the sequence's causal_offset */
} attn_causal;

/* How rotary positions (Su et al. 2021) turn the numbers of a head: pairs (j, j + D/2) or (2j, 2j + 1). */
typedef enum attn_rotation { ATTN_ROTATE_NONE, ATTN_ROTATE_HALVES, ATTN_ROTATE_PAIRS } attn_rotation;

/* Which part of the results is kept; shared by the sequences of a call. Lists are below heads or queries, in
 * any order, repeats allowed. Narrows weights, scores, capped, masked and the top k; not mean_weights and
 * statistics. H' and Lq' below are the counts of the lists, or heads and queries. */
typedef struct attn_selection {
	const size_t *heads; /* NULL: all */
	size_t head_count;
	const size_t *queries; /* NULL: all */
	size_t query_count;
	size_t top_k; /* columns of top_indices and top_values, at most keys; 0: none */
} attn_selection;

/* Scalars of one call, shared by its sequences. */
typedef struct attn_options {
	float scale;   /* factor of the scores; see attn_default_scale */
	float softcap; /* > 0: softcap * tanh(scores / softcap), before any masking; 0: none */
	attn_causal causal;
	int64_t window_left, window_right; /* inclusive distance from the aligned diagonal; -1: unbounded */
	const float *sink;                 /* [heads] logits that take weight but have no value; NULL: none */
	const float *slopes;               /* [heads] ALiBi: adds -slope * |i' - j|; NULL: none */
	attn_rotation rotation;            /* of queries and new keys; head_width must be even */
	double rope_theta;                 /* base of the angles: position / theta^(2j/D); over 0 */
	int64_t position_offset;           /* position of the first query and of the first new key */
	bool sinusoidal;                   /* attn_layer_run: adds attn_sinusoid to its inputs */
	const attn_selection *selection;   /* NULL: everything, no top k */
	/* [heads, 2 * reach + 1] learned biases of distances: adds number reach + (j - i') of a head,
	 * distances beyond reach counting as reach, which is at most 2^30; NULL: none */
	const float *relative;
	size_t relative_reach;
	const uint8_t *ablated; /* [heads] not 0: the head's weights are multiplied by zero; NULL: none */
} attn_options;

/* 1/sqrt(head_width), no softcap, mask, window, sink, slopes, biases or positions; rope_theta 10000. */
attn_options attn_options_default(size_t head_width);

/* A read-only [heads, rows, width] tensor whose rows are contiguous. */
typedef struct attn_heads {
	const float *data;
	size_t head_stride, row_stride;
} attn_heads;

/* A broadcastable [heads, queries, keys] operand: a stride of 0 repeats. data NULL: absent. */
typedef struct attn_mask { /* bytes: not 0 = may attend */
	const uint8_t *data;
	size_t head_stride, query_stride, key_stride;
} attn_mask;
typedef struct attn_bias { /* added to the scores; -infinity excludes the key as a mask does */
	const float *data;
	size_t head_stride, query_stride, key_stride;
} attn_bias;

/* One sequence of a call: inputs, masks of its own, and where its results go. */
typedef struct attn_sequence {
	attn_heads query;      /* [heads, queries, head_width] */
	attn_heads key, value; /* [kv_heads, keys - past, head_width], [kv_heads, keys - past, value_width] */
	attn_heads past_key, past_value; /* [kv_heads, past, ...], already rotated; read when past > 0 */
	size_t key_length;               /* keys from here on are padding; at most keys */
	int64_t causal_offset;           /* for ATTN_CAUSAL_OFFSET */
	attn_mask mask;
	attn_bias bias;
	float *context; /* [heads, queries, value_width] by these strides */
	size_t context_head_stride, context_row_stride;
	/* Each of these is contiguous, or NULL when not asked for. */
	float *weights;                  /* [H', Lq', keys], after the softmax */
	float *scores, *capped, *masked; /* [H', Lq', keys]; excluded keys are -infinity in masked */
	float *mean_weights;             /* [queries, keys]: mean over heads */
	int64_t *top_indices;            /* [H', Lq', top_k]: largest weight first, ties to the lower index */
	float *top_values;               /* likewise; excluded keys count as 0 */
	float *entropy;                  /* [heads, queries] of the weights over keys, in nats */
	float *logsumexp;  /* [heads, queries] of the masked scores, sink included; no key: -infinity */
	float *maximum;    /* [heads, queries] of the masked scores, sink not; no key: -infinity */
	float *used_query; /* [heads, queries, head_width] after rotation, before scale */
	float *used_key, *used_value; /* [kv_heads, keys, ...] past included: the present of the next call */
} attn_sequence;

/* out[i] += sinusoid of position `position` at column i (Vaswani et al. 2017, 3.5): columns 2i and 2i+1 are
 * sin and cos of position / 10000^(2i/width). */
void attn_sinusoid_add(float *out, size_t width, int64_t position);
/* Slopes of ALiBi (Press et al. 2022): 2^(-8h/H), h = 1..H, for a power of two; else as published. */
void attn_alibi_slopes(size_t heads, float *out);

/* Scaled dot-product attention of count sequences, heads separately (Vaswani et al. 2017, eq. 1):
 *   scores  = scale * Q K^T;  capped = softcap * tanh(scores / softcap)
 *   masked  = capped + biases (+ ALiBi) where mask, key_length, causal and window all allow, else excluded
 *   weights = softmax over allowed keys (and the sink);  context = weights V
 * A row with no allowed key has zero weights and zero context. Excluded keys and values have no influence,
 * NaN and infinity included; a NaN in an allowed input gives NaN in the rows it touches.
 * The bits of a sequence's context and weights depend on its own inputs, the shape and the options only:
 * not on count, its place, the executor, or which outputs were asked for.
 * ATTN_INVALID when the shape or an option is out of range (heads % kv_heads, softcap < 0, window < -1,
 * scale not finite, key_length or past > keys, rows that overlap, rotation of an odd width, rope_theta not
 * over 0, a selection out of range); ATTN_OVERFLOW; ATTN_MEMORY; what the executor returned.
 * A row with a NaN among its allowed scores has NaN for weights of allowed keys and for statistics; among the
 * top k NaN comes first. Without queries used_key and used_value are written all the same. */
attn_status attn_attend(const attn_kernels *kernels, attn_executor *executor, const attn_shape *shape,
                        const attn_options *options, const attn_sequence *sequences, size_t count);

/* ------------------------------------------------------------------ layers */

typedef enum attn_layout {
	ATTN_IN_OUT, /* weight [in, out]: y = x W */
	ATTN_OUT_IN, /* weight [out, in]: y = x W^T, as torch stores it */
} attn_layout;

/* Weights of a loaded model in the order its kernels read them. */
typedef struct attn_packed attn_packed;

/* An affine map; without weight and packed it is the identity (then bias is NULL and in == out). */
typedef struct attn_linear {
	const float *weight;
	const float *bias; /* [out] or NULL */
	size_t in, out;
	size_t stride; /* elements from one row of weight to the next: at least out (IN_OUT) or in (OUT_IN) */
	attn_layout layout;
	const attn_packed *packed; /* used instead of weight, stride and layout; NULL: none */
	size_t packed_first;       /* of its columns, the first that is this map's */
} attn_linear;

/* Multi-head attention with its projections. Widths after projection: query heads * head_width, key
 * kv_heads * head_width, value kv_heads * value_width; output maps heads * value_width to its out. */
typedef struct attn_layer {
	attn_linear query, key, value, output;
	size_t heads, kv_heads, head_width, value_width;
	/* [head_width] weights of an RMS norm of each head of queries and new keys after the projection,
	 * which is then not the identity, and before they turn (Dehghani et al. 2023); NULL: none */
	const float *query_norm, *key_norm;
	double norm_eps;
	/* Keys and values that come after those of every sequence (torch's bias_k, bias_v, add_zero_attn):
	 * counted in keys, always allowed, and without a column in masks and biases; causal mode, window and
	 * key_length know of the keys before them alone. [appended, kv_heads * width] after projection; NULL:
	 * none */
	size_t appended;
	const float *appended_key, *appended_value;
} attn_layer;

/* One sequence through a layer. */
typedef struct attn_layer_sequence {
	const float *query;   /* [queries, layer->query.in] */
	const float *key;     /* [keys - past, layer->key.in]; may be the same pointer as query */
	const float *value;   /* [keys - past, layer->value.in]; likewise */
	float *output;        /* [queries, layer->output.out] */
	attn_sequence attend; /* all but query, key, value and context, which are the layer's */
} attn_layer_sequence;

/* Fills heads, kv_heads and widths of the shape from the layer; false when the parts of the layer do not fit
 * each other (heads that do not divide, an output of another input width) or past is over keys, which are at
 * least the appended ones. */
bool attn_layer_shape(const attn_layer *layer, size_t queries, size_t keys, size_t past, attn_shape *out);

/* Projections, attn_attend, output projection, for count sequences of equal lengths. Rows of all sequences
 * share one product per projection (query, key and value one where they adjoin in memory and read the same
 * input). Bits as for attn_attend. Whether key and value are the query's memory must be the same for all
 * sequences of a call. Errors as attn_attend; ATTN_INVALID also where a layer with appended keys gets a past
 * or positions by rotation, slopes or relative biases. */
attn_status attn_layer_run(const attn_kernels *kernels, attn_executor *executor, const attn_layer *layer,
                           size_t queries, size_t keys, size_t past, const attn_options *options,
                           const attn_layer_sequence *sequences, size_t count);

/* Bytes of scratch an attn_layer_run of count sequences may take on the calling thread (an upper bound; each
 * helping thread takes at most attn_attend_tile_bytes more). SIZE_MAX on overflow. */
size_t attn_layer_scratch_bytes(const attn_layer *layer, size_t queries, size_t keys, size_t past,
                                const attn_options *options, size_t count);
/* The same for attn_attend. */
size_t attn_attend_scratch_bytes(const attn_shape *shape, const attn_options *options, size_t count);
size_t attn_attend_tile_bytes(const attn_shape *shape);

/* ------------------------------------------------------------------ element types */

typedef enum attn_dtype {
	ATTN_FLOAT32,
	ATTN_FLOAT16,
	ATTN_BFLOAT16,
	ATTN_FLOAT64,
	ATTN_INT64,
	ATTN_INT32,
	ATTN_UINT8,
	ATTN_BOOL,
} attn_dtype;

size_t attn_dtype_size(attn_dtype dtype);
const char *attn_dtype_name(attn_dtype dtype); /* safetensors' name: "F32", ... */
/* count little-endian elements at any alignment to float32; float64 and integers round to nearest even.
 * ATTN_UNSUPPORTED for BOOL. */
attn_status attn_to_float32(attn_dtype dtype, const void *source, size_t count, float *out);
/* The other way for FLOAT32, FLOAT16, BFLOAT16 and FLOAT64, rounded to nearest even; else ATTN_UNSUPPORTED.
 */
attn_status attn_from_float32(attn_dtype dtype, const float *source, size_t count, void *out);

/* ------------------------------------------------------------------ safetensors */

/* A parsed safetensors text or file: names and views into its bytes. */
typedef struct attn_safetensors attn_safetensors;

#define ATTN_MAX_RANK 8

typedef struct attn_stored_tensor {
	const char *name;
	attn_dtype dtype;
	size_t rank;
	size_t shape[ATTN_MAX_RANK];
	const void *data; /* little-endian, may be unaligned */
	size_t bytes;
} attn_stored_tensor;

/* Reads a header and checks it against size by every rule of the format; the bytes must outlive the result.
 * ATTN_FORMAT with the tensor's name in err->message; ATTN_MEMORY. */
attn_status attn_safetensors_parse(const void *bytes, size_t size, attn_safetensors **out, attn_error *err);
/* Maps a file read-only; unmapped by attn_safetensors_free. ATTN_FILE besides. */
attn_status attn_safetensors_open(const char *path, attn_safetensors **out, attn_error *err);
void attn_safetensors_free(attn_safetensors *file);
size_t attn_safetensors_count(const attn_safetensors *file);
/* By order of data; index < count. */
const attn_stored_tensor *attn_safetensors_at(const attn_safetensors *file, size_t index);
/* NULL when there is none of that name. */
const attn_stored_tensor *attn_safetensors_find(const attn_safetensors *file, const char *name);
/* A string of __metadata__, or NULL. */
const char *attn_safetensors_metadata(const attn_safetensors *file, const char *key);
/* The key of __metadata__ after one of its keys, or the first after NULL, in the order of the text; NULL past
 * the last. */
const char *attn_safetensors_metadata_next(const attn_safetensors *file, const char *key);

/* ------------------------------------------------------------------ models */

/* A loaded model: immutable, its weights copied and packed, no file kept open. */
typedef struct attn_model attn_model;

typedef enum attn_layer_kind { ATTN_SELF, ATTN_CROSS } attn_layer_kind;

/* The stacks of a model: the first reads `tokens` (an encoder, or a decoder without one), the second, which
 * only encoder-decoders have, reads `decoder_tokens`. */
enum { ATTN_FIRST_STACK, ATTN_SECOND_STACK, ATTN_STACKS };
/* Attention inside a stack, numbered as it, and the second stack's attention to the first. */
enum { ATTN_CROSS_STACKS = ATTN_STACKS, ATTN_STACK_KINDS };

typedef struct attn_stack_info {
	size_t layers;     /* blocks; 0: there is no such stack */
	size_t heads;      /* of each block */
	size_t width;      /* of embeddings and hidden states */
	size_t positions;  /* longest sequence; 0: without bound */
	size_t vocabulary; /* the tokens it reads are below it; 0: it takes embeddings only */
	bool causal;
} attn_stack_info;

typedef struct attn_model_info {
	const char *architecture;      /* model_type of config.json */
	size_t layers;                 /* attention layers of kind ATTN_SELF, numbered from 0 */
	size_t cross_layers;           /* of kind ATTN_CROSS */
	size_t heads, kv_heads;        /* of layer 0 of the first kind that has one; so the widths */
	size_t width;                  /* of query embeddings */
	size_t key_width, value_width; /* of key and value embeddings */
	size_t output_width;
	size_t parameters; /* numbers in the weights */
	size_t bytes;      /* memory they take */
	attn_stack_info stacks[ATTN_STACKS];
	size_t vocabulary;  /* of the first stack */
	bool logits;        /* there is a head that predicts tokens */
	size_t logit_count; /* numbers of a row of logits; 0: there is no head */
} attn_model_info;

/* Reads <directory>/config.json and model.safetensors (or model.safetensors.index.json and its shards), and
 * packs the weights for these kernels, with which alone the model runs. err->message names the file, key or
 * tensor, with the shape wanted and the shape found; a model larger than the memory of the machine is
 * refused with both numbers. */
attn_status attn_model_open(const char *directory, const attn_kernels *kernels, attn_model **out,
                            attn_error *err);
void attn_model_free(attn_model *model);
attn_model_info attn_model_info_of(const attn_model *model);
/* Attention layers in the order data meets them (those of the first stack, then those of the second). NULL
 * when there is no such layer of that kind. */
const attn_layer *attn_model_layer(const attn_model *model, size_t layer, attn_layer_kind kind);
/* The model's own options of that layer: scale, causal, window, softcap, sink, positions. The layer exists.
 */
attn_options attn_model_options(const attn_model *model, size_t layer, attn_layer_kind kind);

/* ------------------------------------------------------------------ forward */

typedef enum attn_pooling { ATTN_POOL_MEAN, ATTN_POOL_FIRST, ATTN_POOL_LAST } attn_pooling;

/* A head whose weights are multiplied by zero after the softmax. kind is one of the stack kinds above. */
typedef struct attn_ablation {
	size_t kind, layer, head;
} attn_ablation;

/* What sequences of one forward call share. */
typedef struct attn_forward_call {
	size_t lengths[ATTN_STACKS]; /* positions that each stack reads */
	bool second;                 /* run the second stack too */
	/* Of weights, by stack kind, since stacks differ in heads and lengths; each NULL: everything, no top
	 * k */
	const attn_selection *selections[ATTN_STACK_KINDS];
	const attn_ablation *ablations;
	size_t ablation_count;
	attn_pooling pooling;
	bool normalize;    /* pooled vectors to length 1 */
	bool rollout;      /* sequences may ask for rollouts, for which there is more scratch then */
	size_t top_logits; /* columns of top_logit_*, at most logit_count */
} attn_forward_call;

/* Results of one attention layer; each contiguous, NULL when not asked for. keys are the positions of the
 * stack, or for cross-attention of the first. */
typedef struct attn_layer_results {
	float *weights;       /* [H', Lq', keys]; zeros for an ablated head */
	int64_t *top_indices; /* [H', Lq', top_k] */
	float *top_values;
	float *entropy, *logsumexp, *maximum; /* [heads, queries] */
} attn_layer_results;

/* One sequence in one stack: tokens or embeddings, and its results. */
typedef struct attn_forward_stack {
	const int64_t *tokens;   /* [length], each in [0, the stack's vocabulary); NULL: embeddings */
	const float *embeddings; /* [length, width], in the place of token embeddings: before positions */
	/* [layers + 1] pointers, or NULL: the embedded input, then what each block gives, as transformers'
	 * output_hidden_states; the last is after the final norm. Each NULL or [length, width]. */
	float *const *hidden;
	float *rollout; /* [length, length] (Abnar, Zuidema 2020): mean over heads, half identity, upwards */
} attn_forward_stack;

typedef struct attn_forward_sequence {
	attn_forward_stack stacks[ATTN_STACKS];
	const attn_layer_results *attention[ATTN_STACK_KINDS]; /* each NULL or [layers] */
	float *pooled;     /* [width], of the first stack's last hidden states; zeros without positions */
	float *logits;     /* [logit_count], at the last position of the last stack that ran */
	float *logits_all; /* [length, logit_count] */
	int64_t *top_logit_indices; /* [top_logits] of the last position, largest first */
	float *top_logit_values;
} attn_forward_sequence;

/* Runs count sequences of equal lengths through the model's stacks: embedding, positions, blocks, final norm,
 * head. A layer's weights cost their write-back and nothing more. The bits of a sequence's results depend on
 * its own inputs and the call only: not on count, its place, the executor, or which results were asked for.
 * ATTN_INVALID when there is no such stack, a length is over its positions, a token is out of range, a model
 * without a vocabulary gets tokens, logits are asked of a model without a head or of a last position that is
 * not there, or an ablation or a selection is out of range; ATTN_OVERFLOW; ATTN_MEMORY; what the executor
 * returned. */
attn_status attn_model_forward(const attn_model *model, const attn_kernels *kernels, attn_executor *executor,
                               const attn_forward_call *call, const attn_forward_sequence *sequences,
                               size_t count);
/* Bytes of scratch of such a call on the calling thread (an upper bound; each helping thread takes at most
 * attn_forward_tile_bytes more). SIZE_MAX on overflow. */
size_t attn_forward_scratch_bytes(const attn_model *model, const attn_forward_call *call, size_t count);
size_t attn_forward_tile_bytes(const attn_model *model, const attn_forward_call *call);
/* Floating point operations of one sequence, about. */
double attn_forward_work(const attn_model *model, const attn_forward_call *call);

#ifdef __cplusplus
}
#endif

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#endif
