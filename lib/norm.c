#include "norm.h"

#include <math.h>
#include <string.h>

#include "rounding.h"

/* Numbers worked on together, which compilers make vectors of. */
#define LANES ((size_t)16)

/* Sums of a row and of its squares, of numbers less shift. */
struct sums {
	double first, second;
};

/* Lane by lane, then across, so that the order of a sum follows from width alone. */
static struct sums row_sums(const float *row, size_t width, double shift)
{
	double first[LANES] = {0}, second[LANES] = {0};
	struct sums sums = {0, 0};
	size_t i = 0;
	for (; i + LANES <= width; i += LANES) {
		for (size_t lane = 0; lane < LANES; lane++) {
			double x = (double)row[i + lane] - shift;
			first[lane] += x;
			second[lane] += x * x;
		}
	}
	for (; i < width; i++) {
		double x = (double)row[i] - shift;
		sums.first += x;
		sums.second += x * x;
	}
	for (size_t lane = 0; lane < LANES; lane++) {
		sums.first += first[lane];
		sums.second += second[lane];
	}
	return sums;
}

/* out = (in - shift) * factor * weight (+ bias) */
static void row_apply(const attn_norm *norm, size_t width, double shift, double factor, const float *in,
                      float *out)
{
	const float less = (float)shift, times = (float)factor;
	if (norm->bias == NULL)
		for (size_t i = 0; i < width; i++)
			out[i] = (in[i] - less) * times * norm->weight[i];
	else
		for (size_t i = 0; i < width; i++)
			out[i] = (in[i] - less) * times * norm->weight[i] + norm->bias[i];
}

void attn_norm_row(const attn_norm *norm, size_t width, const float *in, float *out)
{
	double mean = 0;
	switch (norm->kind) {
	case ATTN_NORM_NONE:
		if (out != in)
			memcpy(out, in, width * sizeof(*out));
		return;
	case ATTN_NORM_LAYER:
		mean = row_sums(in, width, 0).first / (double)width;
		break;
	case ATTN_NORM_RMS:
		break;
	}
	double square = row_sums(in, width, mean).second / (double)width;
	row_apply(norm, width, mean, 1.0 / sqrt(square + norm->eps), in, out);
}

void attn_row_add(float *row, const float *add, size_t width)
{
	for (size_t i = 0; i < width; i++)
		row[i] += add[i];
}

void attn_row_scale(float *row, float factor, size_t width)
{
	for (size_t i = 0; i < width; i++)
		row[i] *= factor;
}
