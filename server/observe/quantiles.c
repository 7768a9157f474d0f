#include "observe/quantiles.h"

#include <math.h>

#define BUCKETS (QUANTILES_POWERS * QUANTILES_STEPS)

/* Bucket p * STEPS + s holds [2^P (1 + s/STEPS), 2^P (1 + (s+1)/STEPS)), P = LOWEST_POWER + p. */
static size_t bucket_of(double seconds)
{
	int exponent;
	double fraction = frexp(seconds, &exponent); /* in [0.5, 1): seconds = fraction * 2^exponent */
	int power = exponent - 1 - QUANTILES_LOWEST_POWER;
	if (!(seconds > 0) || power < 0)
		return 0;
	if (isinf(seconds) || power >= QUANTILES_POWERS)
		return BUCKETS - 1;
	return (size_t)power * QUANTILES_STEPS + (size_t)((fraction * 2 - 1) * QUANTILES_STEPS);
}

static double bucket_begin(size_t bucket)
{
	double step = (double)(bucket % QUANTILES_STEPS) / QUANTILES_STEPS;
	return ldexp(1 + step, (int)(bucket / QUANTILES_STEPS) + QUANTILES_LOWEST_POWER);
}

void quantiles_add(struct quantiles *quantiles, double seconds)
{
	uint32_t *bucket = &quantiles->buckets[bucket_of(seconds)];
	if (*bucket == UINT32_MAX)
		return;
	(*bucket)++;
	quantiles->count++;
}

double quantiles_at(const struct quantiles *quantiles, double q)
{
	double rank = q * (double)quantiles->count, before = 0;
	for (size_t i = 0; i < BUCKETS; i++) {
		double here = quantiles->buckets[i];
		if (here > 0 && before + here >= rank) {
			double begin = bucket_begin(i), width = bucket_begin(i + 1) - begin;
			return begin + width * (rank - before) / here;
		}
		before += here;
	}
	return 0;
}
