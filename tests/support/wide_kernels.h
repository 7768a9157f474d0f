/*
 * wide_kernels.h - the templates of kernels that AVX-512 fills, run on any CPU by vec_wide.h.
 */
#ifndef ATTND_TESTS_WIDE_KERNELS_H
#define ATTND_TESTS_WIDE_KERNELS_H

#include "kernels.h"

/* Its name is "wide"; what has no template is the reference's. Freed by attn_kernels_free; NULL: no memory.
 */
attn_kernels *wide_kernels_new(void);

#endif
