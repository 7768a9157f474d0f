#include "pipeline/budget.h"

#include <assert.h>

void budget_init(struct budget *budget, size_t limit)
{
	budget->limit = limit;
	atomic_init(&budget->used, 0);
}

enum budget_result budget_grow(struct budget *budget, size_t held, size_t wanted)
{
	assert(wanted >= held);
	if (wanted > budget->limit)
		return BUDGET_NEVER;
	size_t more = wanted - held;
	size_t used = atomic_load_explicit(&budget->used, memory_order_relaxed);
	do {
		if (used > budget->limit || more > budget->limit - used)
			return BUDGET_LATER;
	} while (!atomic_compare_exchange_weak_explicit(&budget->used, &used, used + more,
	                                                memory_order_relaxed, memory_order_relaxed));
	return BUDGET_OK;
}

void budget_give_back(struct budget *budget, size_t bytes)
{
	size_t before = atomic_fetch_sub_explicit(&budget->used, bytes, memory_order_relaxed);
	assert(before >= bytes);
	(void)before;
}

size_t budget_used(const struct budget *budget)
{
	return atomic_load_explicit(&budget->used, memory_order_relaxed);
}
