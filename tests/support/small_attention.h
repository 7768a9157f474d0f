/*
 * small_attention.h - one small call of attn_attend with tensors of its own, head-major, for tests by
 * example.
 *
 * A struct small is made, changed, copied at will and run; running points its sequence at its tensors.
 */
#ifndef ATTND_TESTS_SMALL_ATTENTION_H
#define ATTND_TESTS_SMALL_ATTENTION_H

#include "attn.h"

#define SMALL_MOST 4096

struct small {
	attn_shape shape;
	attn_options options;
	attn_sequence sequence;
	float query[SMALL_MOST], key[SMALL_MOST], value[SMALL_MOST]; /* keys and values of past, then new */
	float context[SMALL_MOST], weights[SMALL_MOST], mean[SMALL_MOST];
};

/* The values of the cases in ATTENTION. */
extern const float SMALL_COLUMN[6];

/* Zeros, default options, no masks, no past. */
struct small small_make(size_t heads, size_t kv_heads, size_t queries, size_t keys, size_t width,
                        size_t value_width);
/* One head of width 1 with Q = K = 0 and values as a column: every allowed key weighs the same. */
struct small small_flat(size_t queries, size_t keys, const float *values);
/* Scores given as a bias, so that they are exact. */
struct small small_scores(const float *scores, size_t keys, const float *values);
/* Random-looking tensors, the same each time. */
void small_fill(struct small *small);

/* Masks and biases [queries, keys] for every head. */
attn_mask small_mask(const uint8_t *data, size_t keys);
attn_bias small_bias(const float *data, size_t keys);

/* Points the sequence at the tensors, of which the first shape.past keys are past, and fills outputs with
 * NaN; asks for weights. */
void small_point(struct small *small);
/* Runs a sequence that has been pointed. */
attn_status small_attend(attn_kernels *kernels, const struct small *small);
/* Both, and asserts success. */
void small_run(attn_kernels *kernels, struct small *small);
/* The same, asking for the mean instead of weights. */
void small_run_mean(attn_kernels *kernels, struct small *small);
/* Asserts that the call is refused with that status and writes nothing. */
void small_refused(attn_kernels *kernels, struct small small, attn_status wanted);
/* Asserts that weights and context have the same bits. */
void small_same(const struct small *a, const struct small *b);

/* Asserts count numbers within limit; NaN and infinity equal themselves. */
void small_close(const float *found, const float *wanted, size_t count, double limit);

#define SMALL_SAME(found, ...)                                                                               \
	small_close((found), (const float[]){__VA_ARGS__},                                                   \
	            sizeof((const float[]){__VA_ARGS__}) / sizeof(float), 1e-6)

#endif
