#include "position.h"

#include <assert.h>
#include <math.h>

void attn_frequencies(double base, size_t width, size_t pairs, double *out)
{
	for (size_t i = 0; i < pairs; i++)
		out[i] = pow(base, -2.0 * (double)i / (double)width);
}

void attn_turns(const double *frequencies, size_t pairs, double position, double *out)
{
	for (size_t i = 0; i < pairs; i++) {
		double angle = position * frequencies[i];
		out[2 * i] = cos(angle);
		out[2 * i + 1] = sin(angle);
	}
}

void attn_rotate(attn_rotation rotation, const double *turns, size_t width, const float *in, float *out)
{
	assert(rotation != ATTN_ROTATE_NONE && width % 2 == 0);
	const size_t pairs = width / 2;
	const bool halves = rotation == ATTN_ROTATE_HALVES;
	for (size_t i = 0; i < pairs; i++) {
		size_t first = halves ? i : 2 * i, second = halves ? i + pairs : 2 * i + 1;
		double a = (double)in[first], b = (double)in[second];
		double cosine = turns[2 * i], sine = turns[2 * i + 1];
		out[first] = (float)(a * cosine - b * sine);
		out[second] = (float)(a * sine + b * cosine);
	}
}

void attn_sinusoid_add_turns(const double *turns, size_t width, float *out)
{
	for (size_t i = 0; i < width; i++) {
		double wave = i % 2 == 0 ? turns[i + 1] : turns[i - 1];
		out[i] = (float)((double)out[i] + wave);
	}
}

void attn_sinusoid_add(float *out, size_t width, int64_t position)
{
	for (size_t i = 0; i < width; i += 2) {
		double turns[2];
		const double frequency = pow(ATTN_SINUSOID_BASE, -(double)i / (double)width);
		attn_turns(&frequency, 1, (double)position, turns);
		attn_sinusoid_add_turns(turns, width - i < 2 ? 1 : 2, out + i);
	}
}

/* 2^(-8h/heads) for every step-th h from 1 on. */
static void slopes_of_power(size_t heads, size_t step, size_t count, float *out)
{
	for (size_t i = 0; i < count; i++)
		out[i] = (float)exp2(-8.0 * (double)(1 + i * step) / (double)heads);
}

void attn_alibi_slopes(size_t heads, float *out)
{
	size_t power = 1;
	while (power <= heads / 2)
		power *= 2;
	const size_t first = heads < power ? heads : power;
	slopes_of_power(power, 1, first, out);
	slopes_of_power(2 * power, 2, heads - first, out + first);
}
