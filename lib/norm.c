#include "norm.h"

#include <math.h>
#include <string.h>

void attn_norm_row(const attn_norm *norm, size_t width, const float *in, float *out)
{
	double mean = 0, square = 0;
	if (norm->kind == ATTN_NORM_NONE) {
		memmove(out, in, width * sizeof(*out));
		return;
	}
	for (size_t i = 0; norm->kind == ATTN_NORM_LAYER && i < width; i++)
		mean += (double)in[i] / (double)width;
	for (size_t i = 0; i < width; i++)
		square += ((double)in[i] - mean) * ((double)in[i] - mean);
	const double factor = 1 / sqrt(square / (double)width + norm->eps);
	for (size_t i = 0; i < width; i++) {
		double x = ((double)in[i] - mean) * factor * (double)norm->weight[i];
		out[i] = (float)(norm->bias != NULL ? x + (double)norm->bias[i] : x);
	}
}

/* Numbers that compilers make a vector of. */
#define LANES ((size_t)16)

void attn_row_add(float *restrict row, const float *restrict add, size_t width)
{
	size_t i = 0;
	for (; i + LANES <= width; i += LANES)
		for (size_t lane = 0; lane < LANES; lane++)
			row[i + lane] += add[i + lane];
	for (; i < width; i++)
		row[i] += add[i];
}

void attn_row_scale(float *row, float factor, size_t width)
{
	for (size_t i = 0; i < width; i++)
		row[i] *= factor;
}
