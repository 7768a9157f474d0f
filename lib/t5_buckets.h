/*
 * t5_buckets.h - T5's classes of distances between a query and a key (Raffel et al. 2020, 2.1).
 *
 * Near distances have a class each, further ones share them on a logarithmic scale, and from a maximum on all
 * are one; in a decoder, keys to the right count as distance 0. Pure functions of their arguments.
 */
#ifndef ATTN_T5_BUCKETS_H
#define ATTN_T5_BUCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct attn_t5_buckets {
	size_t count;        /* classes; at least 4 */
	size_t max_distance; /* over count / 2 and at most 2^30 */
	bool both_sides;     /* half of the classes for keys to the right of the query, as encoders have it */
} attn_t5_buckets;

/* Class of a key at position of the query + distance; below count. Computed in float32, as transformers does,
 * so that distances on the edge of a class fall on the same side. */
size_t attn_t5_bucket(const attn_t5_buckets *buckets, int64_t distance);

#endif
