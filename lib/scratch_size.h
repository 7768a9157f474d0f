/*
 * scratch_size.h - sums of blocks of scratch that saturate.
 */
#ifndef ATTN_SCRATCH_SIZE_H
#define ATTN_SCRATCH_SIZE_H

#include "attn.h"

/* Blocks of an arena come in multiples of it. */
#define ATTN_SCRATCH_ALIGNMENT ((size_t)64)

/* *bytes += product of dims[0..rank) and what rounding the block up may take; SIZE_MAX, where it stays, on
 * overflow. */
static inline void attn_scratch_add(size_t *bytes, const size_t *dims, size_t rank)
{
	size_t product;
	if (!attn_size_product(dims, rank, &product) ||
	    !attn_size_add(product, ATTN_SCRATCH_ALIGNMENT, &product) ||
	    !attn_size_add(*bytes, product, bytes))
		*bytes = SIZE_MAX;
}

#endif
