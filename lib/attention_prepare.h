/*
 * attention_prepare.h - queries, keys and values as they enter the scores: past before new, turned by
 * position.
 *
 * Where nothing is turned and nothing is past, attention reads its inputs where they are, and used_* are mere
 * copies; else it reads what was assembled, contiguous, whether the caller keeps it or not. Thus asking for
 * used_* changes no bit of the context.
 */
#ifndef ATTN_ATTENTION_PREPARE_H
#define ATTN_ATTENTION_PREPARE_H

#include "attn.h"

/* *out [count]: the sequences with query, key and value as they enter the scores, key and value of all keys;
 * writes the used_* that are asked for. *out is sequences itself or scratch of the executor, with all it
 * points at. ATTN_MEMORY; what the executor returned. */
attn_status attn_prepare(attn_executor *executor, const attn_shape *shape, const attn_options *options,
                         const attn_sequence *sequences, size_t count, const attn_sequence **out);

/* Bytes attn_prepare may take of scratch: an upper bound; SIZE_MAX on overflow. */
size_t attn_prepare_bytes(const attn_shape *shape, const attn_options *options, size_t count);

#endif
