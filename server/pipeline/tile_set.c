#include "pipeline/tile_set.h"

bool tile_set_open(const struct tile_set *set)
{
	return atomic_load_explicit(&set->next, memory_order_relaxed) < set->tiles;
}

bool tile_set_claim(struct tile_set *set, size_t *tile)
{
	*tile = atomic_fetch_add_explicit(&set->next, 1, memory_order_relaxed);
	return *tile < set->tiles;
}

static bool tile_set_wanted(const struct tile_set *set)
{
	if (atomic_load_explicit(set->stopping, memory_order_relaxed))
		return false;
	size_t cancelled = 0;
	while (cancelled < set->count &&
	       atomic_load_explicit(&set->jobs[cancelled]->cancelled, memory_order_relaxed))
		cancelled++;
	return set->count == 0 || cancelled < set->count;
}

void tile_set_run(struct tile_set *set, size_t tile, attn_arena *scratch)
{
	attn_status status = ATTN_CANCELLED;
	if (tile_set_wanted(set)) {
		attn_arena_mark mark = attn_arena_here(scratch);
		status = set->run(set->arg, tile, scratch);
		attn_arena_rewind(scratch, mark);
	}
	if (status == ATTN_OK)
		return;
	int first = ATTN_OK;
	atomic_compare_exchange_strong(&set->status, &first, (int)status);
	atomic_store_explicit(&set->next, set->tiles, memory_order_relaxed);
}
