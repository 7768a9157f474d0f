#include "top_keys.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

/* Whether key a comes before key b. */
static bool before(const float *weights, size_t a, size_t b)
{
	const bool a_nan = isnan(weights[a]), b_nan = isnan(weights[b]);
	if (a_nan != b_nan)
		return a_nan;
	if (!a_nan && weights[a] != weights[b])
		return weights[a] > weights[b];
	return a < b;
}

/* Lets the key at the root sink to its place in a heap whose root comes last of all. */
static void heap_sink(const float *weights, size_t *heap, size_t count, size_t root)
{
	const size_t key = heap[root];
	for (size_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
		if (child + 1 < count && before(weights, heap[child], heap[child + 1]))
			child++;
		if (!before(weights, key, heap[child]))
			break;
		heap[root] = heap[child];
		root = child;
	}
	heap[root] = key;
}

void attn_top_keys(const float *weights, size_t keys, size_t count, size_t *out)
{
	assert(count <= keys);
	for (size_t i = 0; i < count; i++)
		out[i] = i;
	for (size_t root = count / 2; root-- > 0;)
		heap_sink(weights, out, count, root);
	for (size_t key = count; count > 0 && key < keys; key++) {
		if (!before(weights, key, out[0]))
			continue;
		out[0] = key;
		heap_sink(weights, out, count, 0);
	}
	for (size_t left = count; left-- > 1;) { /* the last of all goes behind the rest */
		size_t last = out[0];
		out[0] = out[left];
		out[left] = last;
		heap_sink(weights, out, left, 0);
	}
}
