#include "kernels.h"

#include <stdlib.h>
#include <string.h>

/* Fastest first. */
static const struct kernel_set {
	const char *name;
	void (*fill)(attn_kernels *kernels);
} SETS[] = {
    {"blas", attn_kernels_fill_blas},
    {"reference", attn_kernels_fill_reference},
};

#define SET_COUNT (sizeof(SETS) / sizeof(SETS[0]))

const char *attn_kernels_list(size_t index)
{
	return index < SET_COUNT ? SETS[index].name : NULL;
}

attn_status attn_kernels_new(const char *name, attn_kernels **out)
{
	*out = NULL;
	for (size_t i = 0; i < SET_COUNT; i++) {
		if (strcmp(SETS[i].name, name) != 0)
			continue;
		attn_kernels *kernels = calloc(1, sizeof(*kernels));
		if (kernels == NULL)
			return ATTN_MEMORY;
		SETS[i].fill(kernels);
		kernels->name = SETS[i].name;
		*out = kernels;
		return ATTN_OK;
	}
	return ATTN_UNSUPPORTED;
}

void attn_kernels_free(attn_kernels *kernels)
{
	free(kernels);
}

const char *attn_kernels_name(const attn_kernels *kernels)
{
	return kernels->name;
}

size_t attn_kernels_row_tile(const attn_kernels *kernels, size_t n, size_t k)
{
	size_t row = 0;
	if (kernels->gemm_rows == NULL || !attn_size_mul(n, k, &row) || row == 0)
		return 0;
	size_t tile = kernels->row_tile;
	size_t least = kernels->small_product / row + 1; /* rows that leave the path of small products */
	size_t needed = (least + tile - 1) / tile * tile;
	return needed <= ATTN_ROW_TILE_MAX ? needed : 0;
}
