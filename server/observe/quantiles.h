/*
 * quantiles.h - a histogram of durations by log-linear buckets: 32 to each doubling, so that a quantile is
 * within 1/32 of a value that was seen there. Plain data of its owner.
 */
#ifndef ATTND_OBSERVE_QUANTILES_H
#define ATTND_OBSERVE_QUANTILES_H

#include <stddef.h>
#include <stdint.h>

/* Durations below 2^-24 s (60 ns) count as that, those of 2^10 s (17 minutes) and more as that. */
#define QUANTILES_LOWEST_POWER (-24)
#define QUANTILES_POWERS 34
#define QUANTILES_STEPS 32

struct quantiles {
	uint64_t count;
	uint32_t
	    buckets[QUANTILES_POWERS * QUANTILES_STEPS]; /* each stays at UINT32_MAX when it gets there */
};

void quantiles_add(struct quantiles *quantiles, double seconds);

/* The value below which the fraction q (0 to 1) of the counts lies; 0 when there are none. */
double quantiles_at(const struct quantiles *quantiles, double q);

#endif
