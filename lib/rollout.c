#include "rollout.h"

#include <string.h>

#include "linear.h"
#include "rounding.h"

/* Numbers of a tile. */
#define TILE_NUMBERS ((size_t)32 << 10)
#define SCRATCH_BLOCKS ((size_t)4 * 64)

struct step {
	const struct attn_rollout *rollouts;
	size_t count, length, tile_rows;
	bool first;
};

/* Row p: half of what was multiplied out and half of the row as it was, which is the identity's below the
 * first layer. */
static void row_mix(const struct step *step, const struct attn_rollout *rollout, size_t p)
{
	const size_t length = step->length;
	const float *product = (step->first ? rollout->weights : rollout->product) + p * length;
	float *row = rollout->rollout + p * length;
	if (step->first) {
		memset(row, 0, length * sizeof(*row));
		row[p] = 1;
	}
	for (size_t i = 0; i < length; i++)
		row[i] = 0.5f * (product[i] + row[i]);
}

static attn_status mix_tile(void *arg, size_t tile, attn_arena *scratch)
{
	(void)scratch;
	const struct step *step = arg;
	const size_t first = tile * step->tile_rows;
	const size_t end = attn_smaller(step->count * step->length, first + step->tile_rows);
	for (size_t row = first; row < end; row++)
		row_mix(step, &step->rollouts[row / step->length], row % step->length);
	return ATTN_OK;
}

/* product = weights times the rollout of the layer below. */
static attn_status multiply(const attn_kernels *kernels, attn_executor *executor,
                            const struct attn_rollout *rollouts, size_t count, size_t length)
{
	attn_linear *linears = attn_arena_alloc(executor->scratch, count * sizeof(*linears));
	struct attn_linear_call *calls = attn_arena_alloc(executor->scratch, count * sizeof(*calls));
	if (linears == NULL || calls == NULL)
		return ATTN_MEMORY;
	for (size_t s = 0; s < count; s++) {
		linears[s] = (attn_linear){.weight = rollouts[s].rollout,
		                           .in = length,
		                           .out = length,
		                           .stride = length,
		                           .layout = ATTN_IN_OUT};
		calls[s] = (struct attn_linear_call){.linear = &linears[s],
		                                     .rows = length,
		                                     .count = 1,
		                                     .x = {.data = rollouts[s].weights},
		                                     .y = {.data = rollouts[s].product}};
	}
	return attn_linear_run(kernels, executor, calls, count);
}

attn_status attn_rollout_step(const attn_kernels *kernels, attn_executor *executor,
                              const struct attn_rollout *rollouts, size_t count, size_t length, bool first)
{
	struct step step = {.rollouts = rollouts,
	                    .count = count,
	                    .length = length,
	                    .tile_rows = attn_larger(TILE_NUMBERS / length, 1),
	                    .first = first};
	attn_arena_mark mark = attn_arena_here(executor->scratch);
	attn_status status = first ? ATTN_OK : multiply(kernels, executor, rollouts, count, length);
	if (status == ATTN_OK)
		status = executor->parallel_for(executor, attn_divide_up(count * length, step.tile_rows),
		                                mix_tile, &step);
	attn_arena_rewind(executor->scratch, mark);
	return status;
}

size_t attn_rollout_scratch_bytes(size_t length, size_t count)
{
	const attn_linear linear = {.weight = &(const float){0},
	                            .in = length,
	                            .out = length,
	                            .stride = length,
	                            .layout = ATTN_IN_OUT};
	size_t bytes = attn_linear_scratch_bytes(&linear, length, 1);
	if (!attn_size_add(bytes, sizeof(attn_linear) + sizeof(struct attn_linear_call), &bytes) ||
	    !attn_size_mul(bytes, count, &bytes) || !attn_size_add(bytes, SCRATCH_BLOCKS, &bytes))
		return SIZE_MAX;
	return bytes;
}
