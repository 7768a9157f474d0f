#include "wide_kernels.h"

#include <stdlib.h>

#include "vec_wide.h"

#include "kernels_attention.h"
#include "kernels_packed.h"

attn_kernels *wide_kernels_new(void)
{
	attn_kernels *kernels = calloc(1, sizeof(*kernels));
	if (kernels == NULL)
		return NULL;
	attn_kernels_fill_reference(kernels);
	kernels->name = "wide";
	kernels->packed = packed_product;
	kernels->strip = PACKED_STRIP;
	kernels->attention = &ATTEND_KERNELS;
	return kernels;
}
