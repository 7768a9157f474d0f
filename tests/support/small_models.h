/*
 * small_models.h - the checkpoints of tests/models, and forward passes through them.
 *
 * Everything a pass needs lies in the arena of a draw.
 */
#ifndef ATTND_TESTS_SMALL_MODELS_H
#define ATTND_TESTS_SMALL_MODELS_H

#include "random_attention.h"

/* Folders of tests/models with a stack, one or two of each family; ended by NULL. */
extern const char *const small_models[];

/* The model of that folder of tests/models. */
attn_model *small_model_open(const char *name, const attn_kernels *kernels);

/* A call of all stacks that the model has, of so many positions or as many as they have. */
attn_forward_call small_call(const attn_model *model, size_t first, size_t second);

/* A sequence of random tokens, or embeddings where the model has no vocabulary, that asks for nothing. */
attn_forward_sequence small_sequence(struct draw *draw, const attn_model *model,
                                     const attn_forward_call *call);

/* The sequence with results of its own, zeroed: each there is, or each by chance. */
attn_forward_sequence small_results(struct draw *draw, const attn_model *model, const attn_forward_call *call,
                                    const attn_forward_sequence *sequence, unsigned percent);

#endif
