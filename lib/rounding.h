/*
 * rounding.h - whole numbers rounded to parts and multiples.
 */
#ifndef ATTN_ROUNDING_H
#define ATTN_ROUNDING_H

#include <stddef.h>

static inline size_t attn_divide_up(size_t n, size_t by)
{
	return n / by + (n % by != 0);
}

static inline size_t attn_round_up(size_t n, size_t multiple)
{
	return attn_divide_up(n, multiple) * multiple;
}

static inline size_t attn_smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

static inline size_t attn_larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

#endif
