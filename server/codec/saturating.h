/*
 * saturating.h - sums and products of sizes that stay at SIZE_MAX once anything overflows. Pure.
 */
#ifndef ATTND_CODEC_SATURATING_H
#define ATTND_CODEC_SATURATING_H

#include "attn.h"

static inline size_t saturating_add(size_t a, size_t b)
{
	size_t sum;
	return attn_size_add(a, b, &sum) ? sum : SIZE_MAX;
}

/* The product with 0 is 0, whatever the other. */
static inline size_t saturating_mul(size_t a, size_t b)
{
	size_t product;
	return attn_size_mul(a, b, &product) ? product : SIZE_MAX;
}

#endif
