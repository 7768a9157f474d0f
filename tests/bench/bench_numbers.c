/*
 * Nanoseconds a number to print and to read, over values of several kinds, beside the C library's.
 */
#include "codec/numbers.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COUNT 100000
#define ROUNDS 21

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

struct run {
	float values[COUNT], back[COUNT];
	char text[COUNT * NUMBER_TEXT_MAX];
	size_t length;
};

static void print_own(struct run *run)
{
	char *p = run->text;
	for (int i = 0; i < COUNT; i++) {
		p += number_print_shortest(run->values[i], p);
		*p++ = ',';
	}
	run->length = (size_t)(p - run->text);
}

static void scan_own(struct run *run)
{
	const char *p = run->text, *end = run->text + run->length;
	for (int i = 0; i < COUNT; i++, p++)
		if (number_scan(p, end, &run->back[i], &p) != NUMBER_OK)
			abort();
}

static void scan_library(struct run *run)
{
	char *p = run->text;
	for (int i = 0; i < COUNT; i++, p++)
		run->back[i] = strtof(p, &p);
}

static void print_library(struct run *run)
{
	char text[32];
	for (int i = 0; i < COUNT; i++)
		snprintf(text, sizeof text, "%.9g", (double)run->values[i]);
}

/* Best of the rounds. */
static double time_of(void (*work)(struct run *), struct run *run)
{
	double best = INFINITY;
	for (int round = 0; round < ROUNDS; round++) {
		double start = now();
		work(run);
		best = fmin(best, now() - start);
	}
	return best / COUNT;
}

static float uniform(void)
{
	return (float)random() / 1073741824.0f - 1.0f;
}

static float any_bits(void)
{
	uint32_t bits = (uint32_t)random() << 1;
	float value;
	memcpy(&value, &bits, sizeof value);
	return isfinite(value) ? value : 0.0f;
}

static float small_integer(void)
{
	return (float)(random() % 1000);
}

static float three_places(void)
{
	return (float)(random() % 1000) / 1000.0f;
}

int main(void)
{
	static const struct {
		const char *name;
		float (*make)(void);
	} kinds[] = {{"uniform in [-1,1]", uniform},
	             {"any float32", any_bits},
	             {"integers below 1000", small_integer},
	             {"three places", three_places}};
	static struct run run;
	printf("%-22s %10s %10s %14s %10s %10s\n", "ns a number", "print", "scan", "snprintf %.9g", "strtof",
	       "bytes");
	for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
		for (int i = 0; i < COUNT; i++)
			run.values[i] = kinds[k].make();
		double print = time_of(print_own, &run), scan = time_of(scan_own, &run);
		if (memcmp(run.values, run.back, sizeof run.back) != 0)
			abort();
		double library = time_of(scan_library, &run);
		printf("%-22s %10.1f %10.1f %14.1f %10.1f %10.1f\n", kinds[k].name, print, scan,
		       time_of(print_library, &run), library, (double)run.length / COUNT);
	}
	return 0;
}
