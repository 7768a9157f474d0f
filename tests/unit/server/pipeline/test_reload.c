/* Reloads over a real loop, with loads that stop at a gate. */
#include "pipeline/reload.h"

#include "suite.h"

#include <stdbool.h>
#include <stdio.h>

/* What a step was told, and whether loads succeed. */
static struct world {
	uv_loop_t loop;
	struct reload *reload;
	uv_sem_t gate; /* a load passes when it is posted */
	bool fails;
	char *served;
	int begun, swapped, failed, discarded;
	uv_thread_t loop_thread;
	bool off_loop; /* every load and discard ran on another thread */
} world;

static bool elsewhere(void)
{
	uv_thread_t self = uv_thread_self();
	return !uv_thread_equal(&self, &world.loop_thread);
}

static void begun(void *context)
{
	ck_assert_ptr_eq(context, &world);
	world.begun++;
}

static void *load(void *context, attn_error *err)
{
	ck_assert_ptr_eq(context, &world);
	uv_sem_wait(&world.gate);
	world.off_loop = world.off_loop && elsewhere();
	if (!world.fails)
		return malloc(1);
	err->status = ATTN_FILE;
	snprintf(err->message, sizeof(err->message), "no such thing");
	return NULL;
}

static void *swap(void *context, void *loaded)
{
	ck_assert_ptr_eq(context, &world);
	void *old = world.served;
	world.served = loaded;
	world.swapped++;
	return old;
}

static void failed(void *context, const attn_error *err)
{
	ck_assert_ptr_eq(context, &world);
	ck_assert_str_eq(err->message, "no such thing");
	world.failed++;
}

static void discard(void *state)
{
	ck_assert_ptr_ne(state, world.served);
	world.off_loop = world.off_loop && elsewhere();
	world.discarded++;
	free(state);
}

static void open_world(bool fails)
{
	const struct reload_steps steps = {.context = &world,
	                                   .begun = begun,
	                                   .load = load,
	                                   .swap = swap,
	                                   .failed = failed,
	                                   .discard = discard};
	world = (struct world){.fails = fails, .off_loop = true, .served = malloc(1)};
	world.loop_thread = uv_thread_self();
	ck_assert_int_eq(uv_loop_init(&world.loop), 0);
	ck_assert_int_eq(uv_sem_init(&world.gate, 0), 0);
	world.reload = reload_new(&world.loop, &steps);
	ck_assert_ptr_nonnull(world.reload);
}

static void close_world(void)
{
	uv_run(&world.loop, UV_RUN_DEFAULT);
	reload_free(world.reload);
	ck_assert_int_eq(uv_loop_close(&world.loop), 0);
	uv_sem_destroy(&world.gate);
	free(world.served);
	ck_assert(world.off_loop);
}

static void let_loads_pass(int count)
{
	while (count-- > 0)
		uv_sem_post(&world.gate);
}

START_TEST(what_is_loaded_off_the_loop_is_swapped_on_it_and_the_old_is_freed)
{
	open_world(false);
	char *first = world.served;
	reload_request(world.reload);
	ck_assert_int_eq(world.begun, 1);
	let_loads_pass(1);
	uv_run(&world.loop, UV_RUN_DEFAULT);
	ck_assert_ptr_ne(world.served, first);
	ck_assert_int_eq(world.swapped, 1);
	ck_assert_int_eq(world.discarded, 1);
	close_world();
}
END_TEST

START_TEST(requests_while_a_load_runs_are_remembered_once)
{
	open_world(false);
	for (int i = 0; i < 5; i++)
		reload_request(world.reload);
	ck_assert_int_eq(world.begun, 1);
	let_loads_pass(5);
	uv_run(&world.loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(world.begun, 2);
	ck_assert_int_eq(world.swapped, 2);
	reload_request(world.reload);
	uv_run(&world.loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(world.swapped, 3);
	close_world();
}
END_TEST

START_TEST(a_load_that_fails_is_told_and_changes_nothing)
{
	open_world(true);
	char *first = world.served;
	reload_request(world.reload);
	let_loads_pass(2);
	uv_run(&world.loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(world.failed, 1);
	ck_assert_int_eq(world.swapped + world.discarded, 0);
	ck_assert_ptr_eq(world.served, first);
	world.fails = false;
	reload_request(world.reload);
	uv_run(&world.loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(world.swapped, 1);
	close_world();
}
END_TEST

START_TEST(a_request_remembered_while_a_load_fails_begins_another)
{
	open_world(true);
	reload_request(world.reload);
	reload_request(world.reload);
	let_loads_pass(2);
	uv_run(&world.loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(world.begun, 2);
	ck_assert_int_eq(world.failed, 2);
	close_world();
}
END_TEST

START_TEST(after_the_stop_a_running_load_is_freed_unused_and_none_begins)
{
	open_world(false);
	char *first = world.served;
	reload_request(world.reload);
	reload_request(world.reload);
	reload_stop(world.reload);
	reload_request(world.reload);
	let_loads_pass(3);
	uv_run(&world.loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(world.begun, 1);
	ck_assert_int_eq(world.swapped, 0);
	ck_assert_int_eq(world.discarded, 1);
	ck_assert_ptr_eq(world.served, first);
	close_world();
}
END_TEST

START_TEST(a_load_that_fails_after_the_stop_is_not_told)
{
	open_world(true);
	reload_request(world.reload);
	reload_stop(world.reload);
	let_loads_pass(1);
	uv_run(&world.loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(world.failed, 0);
	close_world();
}
END_TEST

SUITE_MAIN("reload", what_is_loaded_off_the_loop_is_swapped_on_it_and_the_old_is_freed,
           requests_while_a_load_runs_are_remembered_once, a_load_that_fails_is_told_and_changes_nothing,
           a_request_remembered_while_a_load_fails_begins_another,
           after_the_stop_a_running_load_is_freed_unused_and_none_begins,
           a_load_that_fails_after_the_stop_is_not_told)
