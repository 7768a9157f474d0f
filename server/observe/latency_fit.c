#include "observe/latency.h"

#include <math.h>

#define TERMS 3
#define EXPONENT_FROM 128
#define EXPONENT_POINTS 3

/* Solves m x = right for the symmetric positive definite m, both overwritten; false when m is singular to
 * working precision. m is scaled to a diagonal of ones first, so that the test does not depend on units. */
static bool solve(double m[TERMS][TERMS], double right[TERMS])
{
	double scale[TERMS];
	for (int i = 0; i < TERMS; i++)
		scale[i] = 1 / sqrt(m[i][i]);
	for (int i = 0; i < TERMS; i++) {
		right[i] *= scale[i];
		for (int j = 0; j < TERMS; j++)
			m[i][j] *= scale[i] * scale[j];
	}
	for (int pivot = 0; pivot < TERMS; pivot++) {
		if (!(m[pivot][pivot] > 1e-13))
			return false;
		for (int i = pivot + 1; i < TERMS; i++) {
			double factor = m[i][pivot] / m[pivot][pivot];
			for (int j = pivot; j < TERMS; j++)
				m[i][j] -= factor * m[pivot][j];
			right[i] -= factor * right[pivot];
		}
	}
	for (int i = TERMS - 1; i >= 0; i--) {
		for (int j = i + 1; j < TERMS; j++)
			right[i] -= m[i][j] * right[j];
		right[i] /= m[i][i];
	}
	for (int i = 0; i < TERMS; i++)
		right[i] *= scale[i];
	return true;
}

/* Minimises the sum of ((a + b x + c x^2 - t) / t)^2, x = length / longest. */
static bool fit_curve(const struct latency_point *points, size_t count, double longest,
                      struct latency_fit *out)
{
	double m[TERMS][TERMS] = {{0}}, right[TERMS] = {0};
	for (size_t n = 0; n < count; n++) {
		double x = points[n].length / longest, weight = 1 / points[n].seconds;
		double row[TERMS] = {weight, weight * x, weight * x * x};
		for (int i = 0; i < TERMS; i++) {
			right[i] += row[i]; /* times t * weight = 1 */
			for (int j = 0; j < TERMS; j++)
				m[i][j] += row[i] * row[j];
		}
	}
	if (!solve(m, right))
		return false;
	out->a = right[0];
	out->b = right[1] / longest;
	out->c = right[2] / (longest * longest);
	return isfinite(out->a) && isfinite(out->b) && isfinite(out->c);
}

/* Slope of the straight line through (log length, log seconds), least squares. */
static double fit_exponent(const struct latency_point *points, size_t count)
{
	double n = 0, mean_x = 0, mean_y = 0;
	for (size_t i = 0; i < count; i++) {
		if (points[i].length < EXPONENT_FROM)
			continue;
		n++;
		mean_x += (log(points[i].length) - mean_x) / n;
		mean_y += (log(points[i].seconds) - mean_y) / n;
	}
	if (n < EXPONENT_POINTS)
		return NAN;
	double xx = 0, xy = 0;
	for (size_t i = 0; i < count; i++) {
		if (points[i].length < EXPONENT_FROM)
			continue;
		double x = log(points[i].length) - mean_x;
		xx += x * x;
		xy += x * (log(points[i].seconds) - mean_y);
	}
	return xy / xx;
}

bool latency_fit_points(const struct latency_point *points, size_t count, struct latency_fit *out)
{
	if (count < TERMS)
		return false;
	double shortest = points[0].length, longest = points[0].length;
	for (size_t i = 1; i < count; i++) {
		shortest = fmin(shortest, points[i].length);
		longest = fmax(longest, points[i].length);
	}
	if (longest <= 0 || !fit_curve(points, count, longest, out))
		return false;
	out->exponent = fit_exponent(points, count);
	out->from = (size_t)shortest;
	out->to = (size_t)longest;
	return true;
}
