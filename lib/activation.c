#include "activation.h"

#include <math.h>

static double sigmoid(double x)
{
	return 1.0 / (1.0 + exp(-x));
}

static double gelu(double x)
{
	return 0.5 * x * erfc(-x * M_SQRT1_2);
}

static double gelu_tanh(double x)
{
	/* (1 + tanh(u)) / 2 is the sigmoid of 2u */
	return x * sigmoid(2.0 * sqrt(M_2_PI) * (x + 0.044715 * x * x * x));
}

static double activate(enum attn_activation activation, double x)
{
	switch (activation) {
	case ATTN_ACTIVATION_NONE:
		break;
	case ATTN_ACTIVATION_RELU:
		return x < 0 ? 0 : x;
	case ATTN_ACTIVATION_GELU:
		return gelu(x);
	case ATTN_ACTIVATION_GELU_TANH:
		return gelu_tanh(x);
	case ATTN_ACTIVATION_QUICK_GELU:
		return x * sigmoid(1.702 * x);
	case ATTN_ACTIVATION_SILU:
		return x * sigmoid(x);
	case ATTN_ACTIVATION_TANH:
		return tanh(x);
	}
	return x;
}

void attn_activation_apply(enum attn_activation activation, float *y, size_t count)
{
	if (activation == ATTN_ACTIVATION_NONE)
		return;
	for (size_t i = 0; i < count; i++)
		y[i] = (float)activate(activation, (double)y[i]);
}
