/*
 * kernels_activation.h - the functions of activation.h for whatever vec_* the includer has.
 *
 * Each is within 1e-6 times the larger of 1 and its value.
 */
#ifndef ATTN_KERNELS_ACTIVATION_H
#define ATTN_KERNELS_ACTIVATION_H

#include "activation.h"
#include "kernels_exp.h"

/* x / (1 + exp(-ax)) */
VEC_INLINE vec vec_times_sigmoid(vec x, vec ax)
{
	const vec one = vec_set(1.0f);
	return vec_div(x, vec_add(one, vec_exp(vec_sub(vec_zero(), ax))));
}

/* With q = Phi(-|x|), the chance of a normal number under it: x q for negative x, else x - x q.
 * q = exp(-x^2 / 2) times a polynomial in t = 1 / (1 + 0.3 |x|), fitted to erfcx(|x| / sqrt 2) / 2 over
 * [0, 14.5] within 1.7e-7 of its value. */
VEC_INLINE vec vec_gelu(vec x)
{
	const vec size = vec_abs(x), one = vec_set(1.0f);
	const vec t = vec_div(one, vec_fma(size, vec_set(0.3f), one));
	vec q = vec_set(0.03542511757142826f);
	q = vec_fma(q, t, vec_set(-0.15616427431680163f));
	q = vec_fma(q, t, vec_set(0.20456691499595933f));
	q = vec_fma(q, t, vec_set(-0.05204339712149483f));
	q = vec_fma(q, t, vec_set(0.12769674657832641f));
	q = vec_fma(q, t, vec_set(0.10017444306564914f));
	q = vec_fma(q, t, vec_set(0.1207123756624314f));
	q = vec_fma(q, t, vec_set(0.119631991798601f));
	q = vec_mul(vec_mul(q, t), vec_exp(vec_mul(vec_mul(x, x), vec_set(-0.5f))));
	const vec part = vec_mul(x, q);
	return vec_select(vec_less(x, vec_zero()), part, vec_sub(x, part));
}

VEC_INLINE vec vec_gelu_tanh(vec x)
{
	/* sqrt(8/pi) (x + 0.044715 x^3) */
	const vec inner = vec_fma(vec_mul(x, x), vec_set(0.0713548162726f), vec_set(1.59576912160573f));
	return vec_times_sigmoid(x, vec_mul(x, inner));
}

/* 1 - 2 / (exp(2 |x|) + 1) with the sign of x; under 0.625, where that cancels, x + x^3 times a polynomial
 * (coefficients of Cephes' tanhf). */
VEC_INLINE vec vec_tanh(vec x)
{
	const vec size = vec_abs(x), square = vec_mul(x, x), one = vec_set(1.0f);
	const vec far = vec_sub(one, vec_div(vec_set(2.0f), vec_add(vec_exp(vec_add(size, size)), one)));
	vec near = vec_set(-5.70498872745e-3f);
	near = vec_fma(near, square, vec_set(2.06390887954e-2f));
	near = vec_fma(near, square, vec_set(-5.37397155531e-2f));
	near = vec_fma(near, square, vec_set(1.33314422036e-1f));
	near = vec_fma(near, square, vec_set(-3.33332819422e-1f));
	near = vec_fma(vec_mul(near, square), x, x);
	return vec_select(vec_less(vec_set(0.625f), size), vec_with_sign(far, x), near);
}

VEC_INLINE vec vec_activate(enum attn_activation activation, vec x)
{
	switch (activation) {
	case ATTN_ACTIVATION_NONE:
		break;
	case ATTN_ACTIVATION_RELU:
		return vec_max(vec_zero(), x);
	case ATTN_ACTIVATION_GELU:
		return vec_gelu(x);
	case ATTN_ACTIVATION_GELU_TANH:
		return vec_gelu_tanh(x);
	case ATTN_ACTIVATION_QUICK_GELU:
		return vec_times_sigmoid(x, vec_mul(x, vec_set(1.702f)));
	case ATTN_ACTIVATION_SILU:
		return vec_times_sigmoid(x, x);
	case ATTN_ACTIVATION_TANH:
		return vec_tanh(x);
	}
	return x;
}

#endif
