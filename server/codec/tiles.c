#include "codec/tiles.h"

attn_status tiles_run(attn_executor *executor, size_t tiles, attn_tile_fn *run, void *arg)
{
	if (executor != NULL)
		return executor->parallel_for(executor, tiles, run, arg);
	attn_status status = ATTN_OK;
	for (size_t tile = 0; tile < tiles && status == ATTN_OK; tile++)
		status = run(arg, tile, NULL);
	return status;
}

static attn_status nothing(void *arg, size_t tile, attn_arena *scratch)
{
	(void)arg;
	(void)tile;
	(void)scratch;
	return ATTN_OK;
}

attn_status tiles_wanted(attn_executor *executor)
{
	return tiles_run(executor, 1, nothing, NULL);
}
