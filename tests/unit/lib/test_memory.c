#include "attn.h"
#include "kernel_sets.h"
#include "random_attention.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Arenas of this program get their memory here: refused once allowed is used up. */
static long allowed = -1;

void *aligned_alloc(size_t alignment, size_t size)
{
	void *block = NULL;
	if (allowed == 0) {
		errno = ENOMEM;
		return NULL;
	}
	if (allowed > 0)
		allowed--;
	return posix_memalign(&block, alignment, size) == 0 ? block : NULL;
}

static attn_linear wide(struct draw *draw, size_t in, size_t out)
{
	return (attn_linear){.weight = draw_floats(draw, in * out),
	                     .bias = draw_floats(draw, out),
	                     .in = in,
	                     .out = out,
	                     .stride = out,
	                     .layout = ATTN_IN_OUT};
}

/* Every block of this call is larger than what an arena shares between blocks. */
enum { WIDTH = 300, LENGTH = 200, PAST = 60, KEYS = PAST + LENGTH, COUNT = 2 };

/* Which keys may be seen: all but the first new one. */
static const uint8_t NOT_FIRST[KEYS] = {[0 ... PAST - 1] = 1, [PAST + 1 ... KEYS - 1] = 1};

struct call {
	attn_layer layer;
	attn_layer_sequence sequences[COUNT];
};

static struct call call_make(struct draw *draw)
{
	struct call call = {.layer = {.query = wide(draw, WIDTH, WIDTH),
	                              .key = wide(draw, WIDTH, WIDTH),
	                              .value = wide(draw, WIDTH, WIDTH),
	                              .output = wide(draw, WIDTH, WIDTH),
	                              .heads = 3,
	                              .kv_heads = 3,
	                              .head_width = WIDTH / 3,
	                              .value_width = WIDTH / 3}};
	for (size_t s = 0; s < COUNT; s++) {
		float *x = draw_floats(draw, LENGTH * WIDTH);
		const attn_heads past = {draw_floats(draw, PAST * WIDTH), WIDTH / 3, WIDTH};
		x[0] = s == 0 ? NAN : x[0]; /* takes the path of values that are not finite too */
		call.sequences[s] = (attn_layer_sequence){
		    .query = draw_floats(draw, LENGTH * WIDTH),
		    .key = x,
		    .value = x,
		    .output = draw_floats(draw, LENGTH * WIDTH),
		    .attend = {.key_length = KEYS,
		               .past_key = past,
		               .past_value = past,
		               .mask = {.data = NOT_FIRST, .key_stride = 1},
		               .mean_weights = draw_floats(draw, LENGTH * KEYS)},
		};
	}
	return call;
}

static void each_block_refused_in_turn_ends_the_call_with_memory(attn_kernels *kernels)
{
	struct draw draw = {.state = 21, .arena = attn_arena_new(0)};
	attn_arena *scratch = attn_arena_new(0);
	attn_executor executor = attn_executor_serial(scratch);
	struct call call = call_make(&draw);
	attn_options options = attn_options_default(WIDTH / 3);
	options.rotation = ATTN_ROTATE_HALVES;
	options.sinusoidal = true;
	attn_status status = ATTN_MEMORY;
	long blocks = 0;
	for (; status != ATTN_OK; blocks++) {
		ck_assert_int_eq(status, ATTN_MEMORY);
		ck_assert_int_lt(blocks, 100);
		allowed = blocks;
		status = attn_layer_run(kernels, &executor, &call.layer, LENGTH, KEYS, PAST, &options,
		                        call.sequences, COUNT);
		allowed = -1;
		ck_assert_ptr_null(attn_arena_here(scratch).chunk);
	}
	ck_assert_int_gt(blocks, 10);
	attn_arena_free(scratch);
	attn_arena_free(draw.arena);
}
ON_EACH_SET(each_block_refused_in_turn_ends_the_call_with_memory)

static void a_self_check_without_memory_says_so(attn_kernels *kernels)
{
	for (allowed = 0; allowed < 5;) {
		long given = allowed;
		attn_error err = {.status = ATTN_OK};
		attn_status status = attn_kernels_self_check(kernels, 1, &err);
		if (status == ATTN_OK)
			break;
		ck_assert_int_eq(status, ATTN_MEMORY);
		ck_assert_int_eq(err.status, ATTN_MEMORY);
		allowed = given + 1;
	}
	allowed = -1;
}
ON_EACH_SET(a_self_check_without_memory_says_so)

SUITE_MAIN("memory", EACH_SET(each_block_refused_in_turn_ends_the_call_with_memory),
           EACH_SET(a_self_check_without_memory_says_so))
