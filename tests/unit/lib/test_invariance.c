#include "attn.h"
#include "kernel_sets.h"
#include "kernels.h"
#include "random_linear.h"
#include "shuffled_executor.h"

#include <string.h>

/* The reply to a sequence must have the same bits alone, in any batch, in any slot, on any number of threads,
 * whatever outputs were asked for. */

enum { MOST = 64, THREADS = 8 };

/* The thread sanitizer takes thirty times as long, and looks at something else. */
#ifdef __SANITIZE_THREAD__
enum { DRAWN = 100 };
#else
enum { DRAWN = 500 };
#endif

struct fixture {
	struct draw draw;
	struct shuffled_executor threads;
	attn_executor serial;
};

static void fixture_init(struct fixture *fixture, uint64_t seed)
{
	fixture->draw = (struct draw){.state = seed, .arena = attn_arena_new((size_t)64 << 20)};
	shuffled_executor_init(&fixture->threads, THREADS, seed);
	fixture->serial = attn_executor_serial(attn_arena_new((size_t)4 << 20));
}

static void fixture_close(struct fixture *fixture)
{
	fixture->threads.threads = THREADS;
	attn_arena_free(fixture->draw.arena);
	attn_arena_free(fixture->serial.scratch);
	shuffled_executor_close(&fixture->threads);
}

static void same_bits(const float *a, const float *b, size_t count, const char *what)
{
	if (a != NULL && b != NULL && memcmp(a, b, count * sizeof(float)) != 0)
		ck_abort_msg("%s of a sequence depend on its call", what);
}

/* ---- attention */

/* The sequence with outputs of its own, each asked for by chance. */
static attn_sequence attend_copy(struct draw *draw, const attn_shape *shape, const attn_options *options,
                                 const attn_sequence *sequence)
{
	attn_sequence copy = *sequence;
	draw_outputs(draw, shape, options, &copy);
	return copy;
}

/* All outputs that both have. */
static void outputs_same(const attn_shape *shape, const attn_options *options, const attn_sequence *a,
                         const attn_sequence *b)
{
	const size_t rows = shape->heads * shape->queries, key_rows = shape->kv_heads * shape->keys;
	const size_t shown = shown_rows(shape, options), top = shown * shown_top(options);
	same_bits(a->weights, b->weights, shown * shape->keys, "weights");
	same_bits(a->scores, b->scores, shown * shape->keys, "scores");
	same_bits(a->capped, b->capped, shown * shape->keys, "capped scores");
	same_bits(a->masked, b->masked, shown * shape->keys, "masked scores");
	same_bits(a->mean_weights, b->mean_weights, shape->queries * shape->keys, "mean weights");
	same_bits(a->top_values, b->top_values, top, "top values");
	if (a->top_indices != NULL && b->top_indices != NULL)
		ck_assert_mem_eq(a->top_indices, b->top_indices, top * sizeof(int64_t));
	same_bits(a->entropy, b->entropy, rows, "entropies");
	same_bits(a->logsumexp, b->logsumexp, rows, "logsumexps");
	same_bits(a->maximum, b->maximum, rows, "maxima");
	same_bits(a->used_query, b->used_query, rows * shape->head_width, "used queries");
	same_bits(a->used_key, b->used_key, key_rows * shape->head_width, "used keys");
	same_bits(a->used_value, b->used_value, key_rows * shape->value_width, "used values");
}

/* Sequence alone, then in the slot of a batch of count among mates of its shape. */
static void check_batch(attn_kernels *kernels, struct fixture *fixture, const attn_shape *shape,
                        const attn_options *options, const attn_sequence *alone, size_t count)
{
	struct draw *draw = &fixture->draw;
	attn_sequence mates[3], batch[MOST];
	const size_t slot = draw_size(draw, 0, count - 1);
	for (size_t i = 0; i < 3; i++)
		mates[i] = draw_sequence(draw, shape, options);
	for (size_t i = 0; i < count; i++)
		batch[i] = attend_copy(draw, shape, options, i == slot ? alone : &mates[i % 3]);
	fixture->threads.threads = (size_t[]){1, 2, 8}[draw_size(draw, 0, 2)];
	ck_assert_int_eq(attn_attend(kernels, &fixture->threads.executor, shape, options, batch, count),
	                 ATTN_OK);
	same_bits(alone->context, batch[slot].context, shape->heads * shape->queries * shape->value_width,
	          "context");
	outputs_same(shape, options, alone, &batch[slot]);
}

/* One sequence alone, then among one mate, eight, and now and then 63. */
static void check_attend(attn_kernels *kernels, struct fixture *fixture, size_t longest, bool crowded)
{
	struct draw *draw = &fixture->draw;
	attn_shape shape = draw_shape(draw, longest);
	attn_options options = draw_options(draw, &shape);
	attn_sequence alone = draw_sequence(draw, &shape, &options);
	ck_assert_int_eq(attn_attend(kernels, &fixture->serial, &shape, &options, &alone, 1), ATTN_OK);
	check_batch(kernels, fixture, &shape, &options, &alone, 2);
	check_batch(kernels, fixture, &shape, &options, &alone, 9);
	if (crowded)
		check_batch(kernels, fixture, &shape, &options, &alone, MOST);
}

/* DRAWN shapes, each with options, outputs, slots and numbers of threads of its own. */
static void attention_does_not_depend_on_batch_mates_slot_threads_or_outputs(attn_kernels *kernels)
{
	const bool slow = kernel_set_is_slow(kernels);
	struct fixture fixture;
	fixture_init(&fixture, 11);
	attn_arena_mark empty = attn_arena_here(fixture.draw.arena);
	for (size_t i = 0; i < DRAWN; i++) {
		const size_t longest = i % 20 == 0 ? 90 : slow ? 8 : 20;
		check_attend(kernels, &fixture, longest, i % 20 != 0 && (!slow || i % 7 == 0));
		attn_arena_rewind(fixture.draw.arena, empty);
	}
	fixture_close(&fixture);
}
ON_EACH_SET(attention_does_not_depend_on_batch_mates_slot_threads_or_outputs)

/* Keys of several segments for few queries, heads of several units, keys packed before the units. */
static void long_calls_do_not_depend_on_their_call_either(attn_kernels *kernels)
{
	static const attn_shape SHAPES[] = {
	    {.heads = 4, .kv_heads = 2, .queries = 1, .keys = 3001, .head_width = 24, .value_width = 17},
	    {.heads = 1, .kv_heads = 1, .queries = 4, .keys = 2050, .head_width = 64, .value_width = 64},
	    {.heads = 2, .kv_heads = 2, .queries = 300, .keys = 333, .head_width = 64, .value_width = 64},
	    {.heads = 2, .kv_heads = 1, .queries = 900, .keys = 1100, .head_width = 20, .value_width = 32},
	};
	struct fixture fixture;
	fixture_init(&fixture, 17);
	attn_arena_mark empty = attn_arena_here(fixture.draw.arena);
	for (size_t i = 0; i < 2 * sizeof(SHAPES) / sizeof(SHAPES[0]); i++) {
		const attn_shape *shape = &SHAPES[i / 2];
		attn_options options = draw_options(&fixture.draw, shape);
		options.selection = NULL;
		attn_sequence alone = draw_sequence(&fixture.draw, shape, &options);
		ck_assert_int_eq(attn_attend(kernels, &fixture.serial, shape, &options, &alone, 1), ATTN_OK);
		check_batch(kernels, &fixture, shape, &options, &alone, 2);
		attn_arena_rewind(fixture.draw.arena, empty);
	}
	fixture_close(&fixture);
}
START_TEST(long_calls_do_not_depend_on_their_call_either_on_native)
{
	kernel_set_run("native", long_calls_do_not_depend_on_their_call_either);
}
END_TEST

/* ---- layers */

/* A self-attention layer; every fifth is wide enough for several panels of columns. */
static attn_layer draw_plain_layer(struct draw *draw)
{
	size_t kv_heads = draw_size(draw, 1, 3), heads = kv_heads * draw_size(draw, 1, 2);
	size_t width = draw_chance(draw, 20) ? 64 : draw_size(draw, 1, 20);
	size_t value_width = draw_chance(draw, 50) ? width : draw_size(draw, 1, 20);
	size_t embedding = draw_chance(draw, 20) ? draw_size(draw, 250, 600) : draw_size(draw, 1, 70);
	return (attn_layer){
	    .query = draw_linear(draw, embedding, heads * width),
	    .key = draw_linear(draw, embedding, kv_heads * width),
	    .value = draw_linear(draw, embedding, kv_heads * value_width),
	    .output = draw_linear(draw, heads * value_width, embedding),
	    .heads = heads,
	    .kv_heads = kv_heads,
	    .head_width = width,
	    .value_width = value_width,
	};
}

/* Such a layer with none, some or all of its weights packed. */
static attn_layer draw_layer(struct draw *draw, const attn_kernels *kernels)
{
	attn_layer layer = draw_plain_layer(draw);
	attn_linear *const inputs[] = {&layer.query, &layer.key, &layer.value};
	if (draw_chance(draw, 50))
		pack_together(draw, kernels, inputs, 3);
	if (draw_chance(draw, 50))
		layer.output = pack_linear(draw, kernels, &layer.output);
	return layer;
}

/* What the calls of one check share. */
struct layer_case {
	attn_layer layer;
	attn_shape shape;
	attn_options options;
};

static struct layer_case draw_layer_case(struct draw *draw, const attn_kernels *kernels)
{
	struct layer_case c = {.layer = draw_layer(draw, kernels)};
	size_t length = draw_size(draw, 1, 25), past = draw_chance(draw, 30) ? draw_size(draw, 1, 9) : 0;
	ck_assert(attn_layer_shape(&c.layer, length, length + past, past, &c.shape));
	c.options = draw_options(draw, &c.shape);
	c.options.sinusoidal = draw_chance(draw, 30);
	return c;
}

static attn_layer_sequence layer_sequence(struct draw *draw, const struct layer_case *c, const float *x)
{
	attn_layer_sequence sequence = {
	    .query = x,
	    .key = x,
	    .value = x,
	    .output = draw_floats(draw, c->shape.queries * c->layer.output.out),
	    .attend = draw_sequence(draw, &c->shape, &c->options),
	};
	return sequence;
}

/* The same inputs, outputs of its own. */
static attn_layer_sequence layer_copy(struct draw *draw, const struct layer_case *c,
                                      const attn_layer_sequence *sequence)
{
	attn_layer_sequence copy = *sequence;
	copy.output = draw_floats(draw, c->shape.queries * c->layer.output.out);
	draw_outputs(draw, &c->shape, &c->options, &copy.attend);
	return copy;
}

static void run_layer(attn_kernels *kernels, attn_executor *executor, const struct layer_case *c,
                      const attn_layer_sequence *sequences, size_t count)
{
	ck_assert_int_eq(attn_layer_run(kernels, executor, &c->layer, c->shape.queries, c->shape.keys,
	                                c->shape.past, &c->options, sequences, count),
	                 ATTN_OK);
}

static void check_layer(attn_kernels *kernels, struct fixture *fixture)
{
	static const size_t BATCHES[] = {1, 2, 9, MOST};
	struct draw *draw = &fixture->draw;
	struct layer_case c = draw_layer_case(draw, kernels);
	size_t numbers = c.shape.queries * c.layer.query.in;
	attn_layer_sequence alone = layer_sequence(draw, &c, draw_floats(draw, numbers)), mates[3],
	                    batch[MOST];
	for (size_t i = 0; i < 3; i++)
		mates[i] = layer_sequence(draw, &c, draw_floats(draw, numbers));
	run_layer(kernels, &fixture->serial, &c, &alone, 1);
	for (size_t b = 0; b < sizeof(BATCHES) / sizeof(BATCHES[0]); b++) {
		size_t slot = draw_size(draw, 0, BATCHES[b] - 1);
		for (size_t i = 0; i < BATCHES[b]; i++)
			batch[i] = layer_copy(draw, &c, i == slot ? &alone : &mates[i % 3]);
		run_layer(kernels, &fixture->threads.executor, &c, batch, BATCHES[b]);
		same_bits(alone.output, batch[slot].output, c.shape.queries * c.layer.output.out, "outputs");
		outputs_same(&c.shape, &c.options, &alone.attend, &batch[slot].attend);
	}
}

static void check_layers(attn_kernels *kernels, uint64_t seed, size_t cases)
{
	struct fixture fixture;
	fixture_init(&fixture, seed);
	attn_arena_mark empty = attn_arena_here(fixture.draw.arena);
	for (size_t i = 0; i < cases; i++) {
		check_layer(kernels, &fixture);
		attn_arena_rewind(fixture.draw.arena, empty);
	}
	fixture_close(&fixture);
}

static size_t cases_for(const attn_kernels *kernels)
{
	return kernel_set_is_slow(kernels) ? 15 : 60;
}

static void a_layer_does_not_depend_on_batch_mates_slot_threads_or_outputs(attn_kernels *kernels)
{
	check_layers(kernels, 12, cases_for(kernels));
}
ON_EACH_SET(a_layer_does_not_depend_on_batch_mates_slot_threads_or_outputs)

static void a_layer_without_stacking_does_not_depend_on_its_call_either(attn_kernels *kernels)
{
	kernels->gemm_rows = NULL;
	check_layers(kernels, 13, cases_for(kernels));
}
ON_EACH_SET(a_layer_without_stacking_does_not_depend_on_its_call_either)

/* The set as a start leaves it, which may have been told not to stack. */
static void a_checked_set_does_not_depend_on_its_call(attn_kernels *kernels)
{
	attn_error err;
	ck_assert_int_eq(attn_kernels_self_check(kernels, 1, &err), ATTN_OK);
	check_layers(kernels, 14, cases_for(kernels) / 2);
}
ON_EACH_SET(a_checked_set_does_not_depend_on_its_call)

/* ---- kernels called by several threads at a time */

struct crowd {
	const attn_kernels *kernels;
	struct attn_gemm gemm;
	const float *wanted; /* [m, n] */
};

static attn_status crowd_tile(void *arg, size_t tile, attn_arena *scratch)
{
	const struct crowd *crowd = arg;
	struct attn_gemm gemm = crowd->gemm;
	(void)tile;
	gemm.c = attn_arena_floats(scratch, gemm.m * gemm.n);
	if (gemm.c == NULL)
		return ATTN_MEMORY;
	crowd->kernels->gemm(&gemm);
	bool same = memcmp(gemm.c, crowd->wanted, gemm.m * gemm.n * sizeof(float)) == 0;
	return same ? ATTN_OK : ATTN_SELF_CHECK;
}

static void products_of_several_threads_do_not_disturb_each_other(attn_kernels *kernels)
{
	enum { M = 17, N = 70, K = 65 };
	struct fixture fixture;
	fixture_init(&fixture, 16);
	float wanted[M * N];
	struct crowd crowd = {kernels,
	                      {.m = M,
	                       .n = N,
	                       .k = K,
	                       .alpha = 1,
	                       .a = draw_floats(&fixture.draw, M * K),
	                       .lda = K,
	                       .b = draw_floats(&fixture.draw, K * N),
	                       .ldb = N,
	                       .c = wanted,
	                       .ldc = N},
	                      wanted};
	kernels->gemm(&crowd.gemm);
	attn_executor *threads = &fixture.threads.executor;
	size_t tiles = kernel_set_is_slow(kernels) ? 1000 : 50000;
	ck_assert_int_eq(threads->parallel_for(threads, tiles, crowd_tile, &crowd), ATTN_OK);
	fixture_close(&fixture);
}
ON_EACH_SET(products_of_several_threads_do_not_disturb_each_other)

/* ---- failures */

struct failing {
	attn_executor executor;
	size_t calls; /* left until one that leaves out its last tile */
};

static attn_status fail_once(attn_executor *self, size_t tiles, attn_tile_fn *run, void *arg)
{
	struct failing *failing = (struct failing *)self;
	const bool fails = --failing->calls == 0;
	for (size_t tile = 0; tile < tiles - fails; tile++)
		run(arg, tile, self->scratch);
	return fails ? ATTN_CANCELLED : ATTN_OK;
}

static void what_the_executor_returned_is_returned_and_scratch_given_back(attn_kernels *kernels)
{
	struct draw draw = {.state = 15, .arena = attn_arena_new(0)};
	struct layer_case c = {.layer = draw_layer(&draw, kernels)};
	c.options = attn_options_default(c.layer.head_width);
	ck_assert(attn_layer_shape(&c.layer, 5, 5, 0, &c.shape));
	const float *x = draw_floats(&draw, 5 * c.layer.query.in);
	attn_layer_sequence sequences[2] = {layer_sequence(&draw, &c, x), layer_sequence(&draw, &c, x)};
	attn_status status = ATTN_CANCELLED;
	size_t fails_at = 1;
	for (; status != ATTN_OK; fails_at++) {
		struct failing failing = {{fail_once, attn_arena_new(0)}, fails_at};
		attn_arena_mark before = attn_arena_here(failing.executor.scratch);
		status =
		    attn_layer_run(kernels, &failing.executor, &c.layer, 5, 5, 0, &c.options, sequences, 2);
		ck_assert_int_eq(status, failing.calls == 0 ? ATTN_CANCELLED : ATTN_OK);
		attn_arena_mark after = attn_arena_here(failing.executor.scratch);
		ck_assert(after.chunk == before.chunk && after.used == before.used);
		attn_arena_free(failing.executor.scratch);
	}
	ck_assert_uint_gt(fails_at, 3); /* projections, attention, output */
	attn_arena_free(draw.arena);
}
ON_EACH_SET(what_the_executor_returned_is_returned_and_scratch_given_back)

SUITE_MAIN("invariance", EACH_SET(attention_does_not_depend_on_batch_mates_slot_threads_or_outputs),
           long_calls_do_not_depend_on_their_call_either_on_native,
           EACH_SET(a_layer_does_not_depend_on_batch_mates_slot_threads_or_outputs),
           EACH_SET(a_layer_without_stacking_does_not_depend_on_its_call_either),
           EACH_SET(a_checked_set_does_not_depend_on_its_call),
           EACH_SET(products_of_several_threads_do_not_disturb_each_other),
           EACH_SET(what_the_executor_returned_is_returned_and_scratch_given_back))
