#include "attn.h"
#include "suite.h"

#include <string.h>

START_TEST(blocks_are_aligned_and_do_not_overlap)
{
	attn_arena *arena = attn_arena_new(1 << 20);
	unsigned char *blocks[200];
	for (size_t i = 0; i < 200; i++) {
		blocks[i] = attn_arena_alloc(arena, i * 37);
		ck_assert_ptr_nonnull(blocks[i]);
		ck_assert_uint_eq((uintptr_t)blocks[i] % 64, 0);
		memset(blocks[i], (int)i, i * 37);
	}
	for (size_t i = 0; i < 200; i++)
		for (size_t j = 0; j < i * 37; j++)
			ck_assert_uint_eq(blocks[i][j], i);
	attn_arena_free(arena);
}
END_TEST

START_TEST(a_rewind_gives_back_what_came_after_its_mark)
{
	attn_arena *arena = attn_arena_new(0);
	float *first = attn_arena_floats(arena, 10);
	first[0] = 42;
	attn_arena_mark mark = attn_arena_here(arena);
	void *second = attn_arena_alloc(arena, 100);
	ck_assert_ptr_nonnull(attn_arena_alloc(arena, 1 << 20));
	ck_assert_ptr_nonnull(attn_arena_alloc(arena, 1 << 22));
	attn_arena_rewind(arena, mark);
	ck_assert_ptr_eq(attn_arena_alloc(arena, 100), second);
	ck_assert_float_eq(first[0], 42);
	attn_arena_free(arena);
}
END_TEST

START_TEST(kept_memory_is_used_again)
{
	attn_arena *arena = attn_arena_new(1 << 20);
	attn_arena_mark empty = attn_arena_here(arena);
	void *block = attn_arena_alloc(arena, 1 << 19);
	attn_arena_rewind(arena, empty);
	ck_assert_ptr_eq(attn_arena_alloc(arena, 1 << 19), block);
	attn_arena_free(arena);
}
END_TEST

START_TEST(the_peak_is_the_most_in_use_at_one_time)
{
	attn_arena *arena = attn_arena_new(0);
	attn_arena_mark empty = attn_arena_here(arena);
	attn_arena_alloc(arena, 1000);
	attn_arena_alloc(arena, 1 << 20);
	attn_arena_rewind(arena, empty);
	attn_arena_alloc(arena, 5000);
	ck_assert_uint_eq(attn_arena_peak(arena), 1024 + (1 << 20));
	attn_arena_free(arena);
}
END_TEST

START_TEST(impossible_sizes_are_refused_and_leave_the_arena_usable)
{
	attn_arena *arena = attn_arena_new(0);
	ck_assert_ptr_null(attn_arena_alloc(arena, SIZE_MAX));
	ck_assert_ptr_null(attn_arena_alloc(arena, SIZE_MAX - 100));
	ck_assert_ptr_null(attn_arena_floats(arena, SIZE_MAX / 2));
	ck_assert_ptr_nonnull(attn_arena_alloc(arena, 0));
	attn_arena_free(arena);
	attn_arena_free(NULL);
}
END_TEST

static attn_status count_until(void *arg, size_t tile, attn_arena *scratch)
{
	size_t *runs = arg;
	ck_assert_uint_eq(tile, *runs);
	ck_assert_ptr_nonnull(attn_arena_alloc(scratch, 1000));
	++*runs;
	return tile == 5 ? ATTN_MEMORY : ATTN_OK;
}

START_TEST(the_serial_executor_stops_at_the_first_failure_and_rewinds_scratch)
{
	attn_arena *arena = attn_arena_new(0);
	attn_executor executor = attn_executor_serial(arena);
	size_t runs = 0;
	ck_assert_int_eq(executor.parallel_for(&executor, 5, count_until, &runs), ATTN_OK);
	ck_assert_uint_eq(runs, 5);
	runs = 0;
	ck_assert_int_eq(executor.parallel_for(&executor, 9, count_until, &runs), ATTN_MEMORY);
	ck_assert_uint_eq(runs, 6);
	ck_assert_uint_eq(attn_arena_peak(arena), 1024);
	attn_arena_free(arena);
}
END_TEST

SUITE_MAIN("arena", blocks_are_aligned_and_do_not_overlap, a_rewind_gives_back_what_came_after_its_mark,
           kept_memory_is_used_again, the_peak_is_the_most_in_use_at_one_time,
           impossible_sizes_are_refused_and_leave_the_arena_usable,
           the_serial_executor_stops_at_the_first_failure_and_rewinds_scratch)
