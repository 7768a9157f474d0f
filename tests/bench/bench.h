/*
 * bench.h - what the C benchmarks share: timing in interleaved rounds, medians, rows of one table.
 *
 * A figure that is compared is a ratio of two cases timed in turn in one run: the median over rounds of
 * the ratio in each round, so that a machine that slows down slows both. Seconds are of processor time: the
 * cases run on one thread and wait for nothing, and time lent to other programs is not theirs.
 */
#ifndef ATTND_TESTS_BENCH_H
#define ATTND_TESTS_BENCH_H

#include "attn.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BENCH_ROUNDS 25
#define BENCH_SLICE 0.01 /* seconds of one case in one round, at least */

struct bench_case {
	void (*run)(void *arg);
	void *arg;
	double units;                 /* sequences, numbers: what a run is divided by */
	double seconds[BENCH_ROUNDS]; /* of one unit */
};

/* Processor seconds of this program. */
static inline double bench_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline double bench_wall(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Ends the program unless status is ATTN_OK. */
static inline void bench_check(attn_status status, const char *what)
{
	if (status == ATTN_OK)
		return;
	fprintf(stderr, "benchmark: %s: %s\n", what, attn_status_text(status));
	exit(1);
}

/* Numbers in [-1, 1], to be freed. */
static inline float *bench_random_floats(size_t count)
{
	static uint64_t state = 1;
	float *numbers = malloc(count * sizeof(float));
	if (numbers == NULL)
		bench_check(ATTN_MEMORY, "numbers");
	for (size_t i = 0; i < count; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		numbers[i] = (float)(state >> 40) / 8388608.0f - 1.0f;
	}
	return numbers;
}

/* Seconds of one unit by that clock, over at least `least` seconds of runs. */
static inline double bench_time_by(double (*now)(void), const struct bench_case *item, double least)
{
	double begun = now(), passed = 0;
	size_t runs = 0;
	for (; passed < least; runs++, passed = now() - begun)
		item->run(item->arg);
	return passed / (double)runs / item->units;
}

static inline double bench_time(const struct bench_case *item)
{
	return bench_time_by(bench_now, item, BENCH_SLICE);
}

/* Times every case once in each round; a round before them all warms up. */
static inline void bench_interleave(struct bench_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++)
		bench_time(&cases[i]);
	for (size_t round = 0; round < BENCH_ROUNDS; round++) {
		for (size_t i = 0; i < count; i++)
			cases[i].seconds[round] = bench_time(&cases[i]);
	}
}

static inline int bench_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Sorts values. */
static inline double bench_median(double values[BENCH_ROUNDS])
{
	qsort(values, BENCH_ROUNDS, sizeof(values[0]), bench_compare);
	return values[BENCH_ROUNDS / 2];
}

static inline double bench_seconds(const struct bench_case *item)
{
	double values[BENCH_ROUNDS];
	for (size_t i = 0; i < BENCH_ROUNDS; i++)
		values[i] = item->seconds[i];
	return bench_median(values);
}

static inline double bench_ratio(const struct bench_case *above, const struct bench_case *below)
{
	double values[BENCH_ROUNDS];
	for (size_t i = 0; i < BENCH_ROUNDS; i++)
		values[i] = above->seconds[i] / below->seconds[i];
	return bench_median(values);
}

static inline void bench_row(const char *name, double value, const char *unit)
{
	printf("  %-62s %9.4g %s\n", name, value, unit);
}

static inline void bench_row_at_most(const char *name, double value, double target)
{
	printf("  %-62s %9.4g times    target <= %g: %s\n", name, value, target,
	       value <= target ? "met" : "MISSED");
}

static inline void bench_row_at_least(const char *name, double value, double target)
{
	printf("  %-62s %9.4g times    target >= %g: %s\n", name, value, target,
	       value >= target ? "met" : "MISSED");
}

#endif
