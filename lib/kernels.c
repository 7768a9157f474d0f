#include "kernels.h"

#include <stdlib.h>
#include <string.h>

static bool any_cpu(void)
{
	return true;
}

/* Fastest first. */
static const struct kernel_set {
	const char *name;
	bool (*is_there)(void); /* on this CPU */
	void (*fill)(attn_kernels *kernels);
} SETS[] = {
    {"native", attn_cpu_has_avx2, attn_kernels_fill_native},
    {"blas", any_cpu, attn_kernels_fill_blas},
    {"reference", any_cpu, attn_kernels_fill_reference},
};

#define SET_COUNT (sizeof(SETS) / sizeof(SETS[0]))

const char *attn_kernels_list(size_t index)
{
	for (size_t i = 0; i < SET_COUNT; i++)
		if (SETS[i].is_there() && index-- == 0)
			return SETS[i].name;
	return NULL;
}

attn_status attn_kernels_new(const char *name, attn_kernels **out)
{
	*out = NULL;
	for (size_t i = 0; i < SET_COUNT; i++) {
		if (strcmp(SETS[i].name, name) != 0 || !SETS[i].is_there())
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

void attn_kernels_fill_native(attn_kernels *kernels)
{
	attn_kernels_fill_blas(kernels);
	if (attn_cpu_has_avx512()) {
		attn_kernels_fill_avx512(kernels);
		return;
	}
	attn_kernels_fill_avx2(kernels);
	attn_kernels_fill_avx2_packed(kernels);
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
