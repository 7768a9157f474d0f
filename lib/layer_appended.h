/*
 * layer_appended.h - keys and values that a layer appends to those of every sequence.
 *
 * Attention itself knows keys of one kind only: so what the rules for the keys before them leave to a query
 * is written out as a mask, in which the appended ones are always allowed.
 */
#ifndef ATTN_LAYER_APPENDED_H
#define ATTN_LAYER_APPENDED_H

#include "attn.h"

/* Whether a layer with appended keys can run with these options. */
bool attn_appended_valid(const attn_layer *layer, size_t past, const attn_options *options);

/* Sequences with keys [kv_heads, keys - appended, head_width] and values likewise get copies of them with the
 * appended ones behind, and masks and biases with columns for them; options lose what the masks now hold.
 * shape counts the appended keys. All copies are scratch. */
attn_status attn_appended_add(const attn_layer *layer, const attn_shape *shape, attn_options *options,
                              attn_sequence *sequences, size_t count, attn_arena *scratch);

/* Bytes of scratch of that, an upper bound; 0 without appended keys, SIZE_MAX on overflow. */
size_t attn_appended_bytes(const attn_layer *layer, const attn_shape *shape, size_t count);

#endif
