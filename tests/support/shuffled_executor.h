/*
 * shuffled_executor.h - an executor of several threads that takes tiles in a random order.
 *
 * For tests that results do not depend on who computed what, or when.
 */
#ifndef ATTND_TESTS_SHUFFLED_EXECUTOR_H
#define ATTND_TESTS_SHUFFLED_EXECUTOR_H

#include "attn.h"

#define SHUFFLED_THREADS_MAX 8

struct shuffled_executor {
	attn_executor executor; /* first, so that the one is the other */
	size_t threads;         /* at most SHUFFLED_THREADS_MAX */
	uint64_t seed;          /* changes with every call */
	attn_arena *scratch[SHUFFLED_THREADS_MAX];
};

void shuffled_executor_init(struct shuffled_executor *shuffled, size_t threads, uint64_t seed);
void shuffled_executor_close(struct shuffled_executor *shuffled);

#endif
