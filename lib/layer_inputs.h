/*
 * layer_inputs.h - the embeddings a layer projects, with sinusoids of their positions added.
 */
#ifndef ATTN_LAYER_INPUTS_H
#define ATTN_LAYER_INPUTS_H

#include "attn.h"

/* *out [count]: sequences whose query, key and value have attn_sinusoid_add of positions position_offset,
 * position_offset + 1, ... added; rows of all sequences lie one after the other, and inputs that were the
 * same memory still are. Everything is scratch of the executor. ATTN_MEMORY; what the executor returned. */
attn_status attn_inputs_add_sinusoids(attn_executor *executor, const attn_layer *layer, size_t queries,
                                      size_t new_keys, int64_t position_offset,
                                      const attn_layer_sequence *sequences, size_t count,
                                      const attn_layer_sequence **out);

/* Bytes it may take: an upper bound; SIZE_MAX on overflow. */
size_t attn_inputs_bytes(const attn_layer *layer, size_t queries, size_t new_keys, size_t count);

#endif
