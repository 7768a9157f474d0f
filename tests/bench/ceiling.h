/*
 * ceiling.h - what one thread of this machine can do at most: fused multiply-adds, and reading memory.
 *
 * Cases for bench.h, to be timed beside what is compared with them.
 */
#ifndef ATTND_TESTS_CEILING_H
#define ATTND_TESTS_CEILING_H

#include "bench.h"

#include <stdint.h>

#define CEILING_CHAINS 12 /* enough to hide the latency of each */
#define CEILING_STEPS 4096

/* STEPS multiply-adds in each of CHAINS vectors, held in registers: every loop over them is unrolled. */
#define CEILING_EACH _Pragma("GCC unroll 12") for (int i = 0; i < CEILING_CHAINS; i++)
#define CEILING_MULTIPLY_ADDS(name, feature, bytes)                                                          \
	__attribute__((target(feature))) static void name(void *arg)                                         \
	{                                                                                                    \
		typedef float vector __attribute__((vector_size(bytes)));                                    \
		vector chains[CEILING_CHAINS], factor = {0.5f};                                              \
		(void)arg;                                                                                   \
		CEILING_EACH chains[i] = factor;                                                             \
		for (int step = 0; step < CEILING_STEPS; step++) {                                           \
			CEILING_EACH                                                                         \
			{                                                                                    \
				chains[i] = chains[i] * factor + factor;                                     \
				__asm__ volatile("" : "+x"(chains[i]));                                      \
			}                                                                                    \
		}                                                                                            \
	}

#if defined(__x86_64__)
CEILING_MULTIPLY_ADDS(ceiling_multiply_adds_256, "avx2,fma", 32)
CEILING_MULTIPLY_ADDS(ceiling_multiply_adds_512, "avx512f", 64)
#endif

/* Its unit is an operation, two a multiply-add; run is NULL where this architecture has no such case. */
static inline struct bench_case ceiling_multiply_adds(void)
{
	struct bench_case item = {NULL, NULL, 2.0 * CEILING_CHAINS * CEILING_STEPS, {0}};
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx512f")) {
		item.run = ceiling_multiply_adds_512;
		item.units *= 16;
	} else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
		item.run = ceiling_multiply_adds_256;
		item.units *= 8;
	}
#endif
	return item;
}

/* Larger than any cache. */
#define CEILING_NUMBERS ((size_t)64 << 20)
/* Read side by side: one alone does not keep memory busy. */
#define CEILING_STREAMS ((size_t)4)

struct ceiling_memory {
	uint64_t *numbers; /* to be freed */
	uint64_t sum;      /* so that reading is not left out */
};

static inline struct ceiling_memory ceiling_memory_new(void)
{
	struct ceiling_memory memory = {malloc(CEILING_NUMBERS * sizeof(uint64_t)), 0};
	if (memory.numbers == NULL)
		bench_check(ATTN_MEMORY, "memory to read");
	for (size_t i = 0; i < CEILING_NUMBERS; i++)
		memory.numbers[i] = i;
	return memory;
}

static inline void ceiling_read(void *arg)
{
	struct ceiling_memory *memory = arg;
	typedef uint64_t vector __attribute__((vector_size(32), aligned(8), may_alias));
	const size_t part = CEILING_NUMBERS / CEILING_STREAMS;
	vector sums[CEILING_STREAMS] = {{0}};
	for (size_t i = 0; i < part; i += 8) {
		for (size_t stream = 0; stream < CEILING_STREAMS; stream++) {
			const uint64_t *line = memory->numbers + stream * part + i;
			sums[stream] += *(const vector *)line + *(const vector *)(line + 4);
		}
	}
	for (size_t stream = 0; stream < CEILING_STREAMS; stream++)
		memory->sum += sums[stream][0] + sums[stream][3];
}

/* Its unit is a byte. */
static inline struct bench_case ceiling_reading(struct ceiling_memory *memory)
{
	return (struct bench_case){ceiling_read, memory, (double)(CEILING_NUMBERS * sizeof(uint64_t)), {0}};
}

#endif
