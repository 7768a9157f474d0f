/*
 * kernels_exp.h - the exponential of a vector, for whatever vec_* the includer has.
 */
#ifndef ATTN_KERNELS_EXP_H
#define ATTN_KERNELS_EXP_H

/* exp(x) within 2 units in the last place, numbers under the least normal one included; NaN stays NaN.
 * x = n ln 2 + r, |r| <= ln 2 / 2, and a polynomial for exp(r) (coefficients of Cephes' expf). */
VEC_INLINE vec vec_exp(vec x)
{
	const vec high = vec_set(89.0f), low = vec_set(-104.0f); /* infinity and 0 from here on */
	x = vec_min(high, vec_max(low, x));                      /* x second: NaN comes through */
	const vec n = vec_round(vec_mul(x, vec_set(1.44269504088896341f)));
	vec r = vec_fnma(n, vec_set(0.693359375f), x);
	r = vec_fnma(n, vec_set(-2.12194440e-4f), r);
	vec p = vec_set(1.9875691500e-4f);
	p = vec_fma(p, r, vec_set(1.3981999507e-3f));
	p = vec_fma(p, r, vec_set(8.3334519073e-3f));
	p = vec_fma(p, r, vec_set(4.1665795894e-2f));
	p = vec_fma(p, r, vec_set(1.6666665459e-1f));
	p = vec_fma(p, r, vec_set(5.0000001201e-1f));
	p = vec_fma(p, vec_mul(r, r), r);
	return vec_scale(vec_add(p, vec_set(1.0f)), n);
}

#endif
