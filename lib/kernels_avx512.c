#include "kernels.h"

#if defined(__x86_64__)

#include "kernels_vec_avx512.h"

#include "kernels_attention.h"
#include "kernels_packed.h"

bool attn_cpu_has_avx512(void)
{
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

void attn_kernels_fill_avx512(attn_kernels *kernels)
{
	kernels->packed = packed_product;
	kernels->strip = PACKED_STRIP;
	kernels->attention = &ATTEND_KERNELS;
}

#else

bool attn_cpu_has_avx512(void)
{
	return false;
}

void attn_kernels_fill_avx512(attn_kernels *kernels)
{
	(void)kernels;
}

#endif
