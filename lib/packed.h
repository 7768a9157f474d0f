/*
 * packed.h - weights of a linear map in the order in which the kernels of a set read them.
 *
 * A packed matrix [in, out] is made once, when a model is loaded, in memory of its owner, and read by any
 * thread from then on. Several linear maps of the same input may lie side by side in one, so that one product
 * serves them all. It runs with kernels of the strip it was packed for alone.
 *
 * Layout: strips of columns, each [in, strip], the columns that the last one lacks being zeros.
 */
#ifndef ATTN_PACKED_H
#define ATTN_PACKED_H

#include "attn.h"

/* Bytes that a packed matrix takes; 0 when these kernels read none, SIZE_MAX on overflow. */
size_t attn_packed_bytes(const attn_kernels *kernels, size_t in, size_t out);

/* Makes memory (64-byte aligned, of attn_packed_bytes, which are not 0) a packed matrix of zeros. */
attn_packed *attn_packed_init(void *memory, const attn_kernels *kernels, size_t in, size_t out);

/* Columns [first, first + columns) take those of a weight of [in, columns] (IN_OUT) or of the transpose of
 * [columns, in] (OUT_IN); stride: elements from one row of weight to the next. */
void attn_packed_put(attn_packed *packed, size_t first, size_t columns, const float *weight, size_t stride,
                     attn_layout layout);

/* out [in]: one column, bit for bit what was put there: a row of a table [out, in] that is also a head. */
void attn_packed_column(const attn_packed *packed, size_t column, float *out);
/* out [columns]: part of one row. */
void attn_packed_row(const attn_packed *packed, size_t row, size_t first, size_t columns, float *out);

size_t attn_packed_in(const attn_packed *packed);
size_t attn_packed_out(const attn_packed *packed);
/* Columns of a strip. */
size_t attn_packed_strip(const attn_packed *packed);
/* Strip number index, [in, strip]; 64-byte aligned where strip is a multiple of 16. */
const float *attn_packed_at(const attn_packed *packed, size_t index);

#endif
