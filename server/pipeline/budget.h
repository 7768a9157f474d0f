/*
 * budget.h - the in-flight byte budget: what all requests together may hold. Charged, never waited for.
 *
 * Any thread (one atomic). Every charge is given back exactly once, by whoever frees what it stood for.
 */
#ifndef ATTND_PIPELINE_BUDGET_H
#define ATTND_PIPELINE_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct budget {
	size_t limit; /* bytes; fixed at start */
	atomic_size_t used;
};

/* BUDGET_NEVER: bytes alone are over the limit; BUDGET_LATER: they do not fit beside what is charged now. */
enum budget_result { BUDGET_OK, BUDGET_LATER, BUDGET_NEVER };

void budget_init(struct budget *budget, size_t limit);
/* Grows one holder's charge from `held` to `wanted` bytes at once (wanted >= held), or changes nothing.
 * NEVER is judged on wanted, LATER on what is charged now. */
enum budget_result budget_grow(struct budget *budget, size_t held, size_t wanted);
void budget_give_back(struct budget *budget, size_t bytes);
size_t budget_used(const struct budget *budget);

#endif
