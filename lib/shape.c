#include "attn.h"

bool attn_size_mul(size_t a, size_t b, size_t *out)
{
	return !__builtin_mul_overflow(a, b, out);
}

bool attn_size_add(size_t a, size_t b, size_t *out)
{
	return !__builtin_add_overflow(a, b, out);
}

bool attn_size_product(const size_t *dims, size_t rank, size_t *out)
{
	size_t product = 1;
	bool empty = false;
	for (size_t i = 0; i < rank; i++) {
		if (dims[i] == 0)
			empty = true;
		else if (!attn_size_mul(product, dims[i], &product))
			return false;
	}
	*out = empty ? 0 : product;
	return true;
}
