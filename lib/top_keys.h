/*
 * top_keys.h - the keys of largest weight, in order.
 */
#ifndef ATTN_TOP_KEYS_H
#define ATTN_TOP_KEYS_H

#include <stddef.h>

/* out [count]: the indices of the count largest of keys weights, largest first, ties to the lower index; NaN
 * counts as larger than any number. count is at most keys. Time keys * log(count), no memory. */
void attn_top_keys(const float *weights, size_t keys, size_t count, size_t *out);

#endif
