#include "attn.h"

static attn_status serial_for(attn_executor *self, size_t tiles, attn_tile_fn *run, void *arg)
{
	attn_status status = ATTN_OK;
	for (size_t tile = 0; tile < tiles && status == ATTN_OK; tile++) {
		attn_arena_mark mark = attn_arena_here(self->scratch);
		status = run(arg, tile, self->scratch);
		attn_arena_rewind(self->scratch, mark);
	}
	return status;
}

attn_executor attn_executor_serial(attn_arena *scratch)
{
	return (attn_executor){.parallel_for = serial_for, .scratch = scratch};
}
