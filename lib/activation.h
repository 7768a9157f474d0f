/*
 * activation.h - the element-wise functions between the products of a feed-forward block.
 */
#ifndef ATTN_ACTIVATION_H
#define ATTN_ACTIVATION_H

#include <stddef.h>

enum attn_activation {
	ATTN_ACTIVATION_NONE,
	ATTN_ACTIVATION_RELU,       /* max(x, 0) */
	ATTN_ACTIVATION_GELU,       /* x/2 (1 + erf(x / sqrt 2)) (Hendrycks, Gimpel 2016) */
	ATTN_ACTIVATION_GELU_TANH,  /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (ibid.) */
	ATTN_ACTIVATION_QUICK_GELU, /* x sigmoid(1.702 x) */
	ATTN_ACTIVATION_SILU,       /* x sigmoid(x) (Elfwing et al. 2018) */
	ATTN_ACTIVATION_TANH,
};

/* y[i] = activation(y[i]), computed in double. NaN stays NaN. */
void attn_activation_apply(enum attn_activation activation, float *y, size_t count);

#endif
