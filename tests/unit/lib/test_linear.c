#include "attn.h"
#include "kernel_sets.h"
#include "kernels.h"
#include "linear.h"
#include "packed.h"
#include "random_linear.h"
#include "reference.h"
#include "shuffled_executor.h"

#include <math.h>
#include <string.h>

static const enum attn_activation ACTIVATIONS[] = {
    ATTN_ACTIVATION_NONE,       ATTN_ACTIVATION_RELU, ATTN_ACTIVATION_GELU, ATTN_ACTIVATION_GELU_TANH,
    ATTN_ACTIVATION_QUICK_GELU, ATTN_ACTIVATION_SILU, ATTN_ACTIVATION_TANH};

struct fixture {
	struct draw draw;
	struct shuffled_executor threads;
	attn_executor serial;
};

static void fixture_init(struct fixture *fixture, uint64_t seed)
{
	fixture->draw = (struct draw){.state = seed, .arena = attn_arena_new((size_t)64 << 20)};
	shuffled_executor_init(&fixture->threads, 4, seed);
	fixture->serial = attn_executor_serial(attn_arena_new((size_t)4 << 20));
}

static void fixture_close(struct fixture *fixture)
{
	attn_arena_free(fixture->draw.arena);
	attn_arena_free(fixture->serial.scratch);
	shuffled_executor_close(&fixture->threads);
}

/* ---- against plain loops in double */

static double activation(enum attn_activation which, double x)
{
	switch (which) {
	case ATTN_ACTIVATION_RELU:
		return x > 0 ? x : 0;
	case ATTN_ACTIVATION_GELU:
		return x / 2 * (1 + erf(x / sqrt(2)));
	case ATTN_ACTIVATION_GELU_TANH:
		return x / 2 * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * pow(x, 3))));
	case ATTN_ACTIVATION_QUICK_GELU:
		return x / (1 + exp(-1.702 * x));
	case ATTN_ACTIVATION_SILU:
		return x / (1 + exp(-x));
	case ATTN_ACTIVATION_TANH:
		return tanh(x);
	case ATTN_ACTIVATION_NONE:
		break;
	}
	return x;
}

/* wanted [rows, out] of contiguous operands; factor and residual may be NULL. */
static double *wanted_of(struct draw *draw, const struct attn_linear_call *call, const float *x,
                         const float *factor, const float *residual)
{
	const attn_linear *linear = call->linear;
	const size_t rows = call->rows * call->count;
	double *input = attn_arena_alloc(draw->arena, rows * linear->in * sizeof(double));
	double *y = attn_arena_alloc(draw->arena, rows * linear->out * sizeof(double));
	for (size_t i = 0; i < rows * linear->in; i++)
		input[i] = (double)x[i];
	reference_linear(linear, input, rows, y);
	for (size_t i = 0; i < rows * linear->out; i++) {
		y[i] = activation(call->activation, y[i]);
		y[i] *= factor != NULL ? (double)factor[i] : 1;
		y[i] += residual != NULL ? (double)residual[i] : 0;
	}
	return y;
}

static void near(const float *found, const double *wanted, size_t count, size_t in)
{
	const double limit = 1e-6 * (4 + 0.2 * (double)in);
	for (size_t i = 0; i < count; i++)
		if (!(fabs((double)found[i] - wanted[i]) <= limit))
			ck_abort_msg("number %zu of %zu is %.9g, should be %.9g (in %zu)", i, count,
			             (double)found[i], wanted[i], in);
}

static void run(attn_kernels *kernels, attn_executor *executor, const struct attn_linear_call *call)
{
	ck_assert_int_eq(attn_linear_run(kernels, executor, call, 1), ATTN_OK);
}

/* Pointers to count parts of a tensor, at places of their own. */
static float **parts_of(struct draw *draw, const float *tensor, size_t count, size_t part)
{
	float **parts = attn_arena_alloc(draw->arena, count * sizeof(*parts));
	for (size_t s = count; s-- > 0;) {
		parts[s] = draw_floats(draw, part + draw_size(draw, 0, 3));
		memcpy(parts[s], tensor + s * part, part * sizeof(float));
	}
	return parts;
}

struct shape {
	size_t in, out, rows, count;
};

static void check_case(attn_kernels *kernels, struct fixture *fixture, struct shape shape, bool packed)
{
	struct draw *draw = &fixture->draw;
	const size_t rows = shape.rows * shape.count, numbers = rows * shape.out;
	attn_linear linear = draw_linear(draw, shape.in, shape.out);
	if (packed)
		linear = pack_linear(draw, kernels, &linear);
	const float *x = draw_floats(draw, rows * shape.in), *factor = draw_floats(draw, numbers),
	            *residual = draw_floats(draw, numbers);
	struct attn_linear_call call = {
	    .linear = &linear,
	    .rows = shape.rows,
	    .count = shape.count,
	    .x = {.data = x},
	    .y = {.data = draw_floats(draw, numbers)},
	    .activation = ACTIVATIONS[draw_size(draw, 0, sizeof(ACTIVATIONS) / sizeof(*ACTIVATIONS) - 1)],
	};
	if (draw_chance(draw, 50))
		call.factor.data = factor;
	if (draw_chance(draw, 50))
		call.residual.data = residual;
	const double *wanted = wanted_of(draw, &call, x, call.factor.data, call.residual.data);
	run(kernels, &fixture->threads.executor, &call);
	near(call.y.data, wanted, numbers, shape.in);

	struct attn_linear_call apart = call; /* each sequence for itself, the residual where y goes */
	apart.x = (struct attn_linear_rows){
	    .sequences = (const float *const *)parts_of(draw, x, shape.count, shape.rows * shape.in)};
	apart.y = (struct attn_linear_output){
	    .sequences = parts_of(draw, residual, shape.count, shape.rows * shape.out)};
	if (call.residual.data != NULL)
		apart.residual =
		    (struct attn_linear_rows){.sequences = (const float *const *)apart.y.sequences};
	const size_t limit = attn_linear_scratch_bytes(&linear, shape.rows, shape.count);
	attn_arena *scratch = attn_arena_new(0);
	attn_executor executor = attn_executor_serial(scratch);
	run(kernels, &executor, &apart);
	ck_assert_uint_le(attn_arena_peak(scratch), limit);
	attn_arena_free(scratch);
	for (size_t s = 0; s < shape.count; s++)
		ck_assert_mem_eq(apart.y.sequences[s], call.y.data + s * shape.rows * shape.out,
		                 shape.rows * shape.out * sizeof(float));
}

static void a_linear_map_is_what_plain_loops_give(attn_kernels *kernels)
{
	struct fixture fixture;
	fixture_init(&fixture, 21);
	attn_arena_mark empty = attn_arena_here(fixture.draw.arena);
	const bool slow = kernel_set_is_slow(kernels);
	for (size_t i = 0; i < 150; i++) {
		struct draw *draw = &fixture.draw;
		const bool wide = i % 10 == 0 && !slow;
		struct shape shape = {draw_size(draw, 1, wide ? 900 : 70),
		                      draw_size(draw, 1, wide ? 900 : 90), draw_size(draw, 0, wide ? 60 : 20),
		                      draw_size(draw, 0, 4)};
		check_case(kernels, &fixture, shape, i % 3 != 0);
		attn_arena_rewind(draw->arena, empty);
	}
	fixture_close(&fixture);
}
ON_EACH_SET(a_linear_map_is_what_plain_loops_give)

/* ---- bits */

static void a_row_keeps_its_bits_among_any_others(attn_kernels *kernels)
{
	enum { MOST = 70 };
	struct fixture fixture;
	fixture_init(&fixture, 22);
	struct draw *draw = &fixture.draw;
	attn_arena_mark empty = attn_arena_here(draw->arena);
	for (size_t i = 0; i < 40; i++) {
		const size_t in = draw_size(draw, 1, 300), out = draw_size(draw, 1, 300);
		attn_linear linear = draw_linear(draw, in, out);
		linear = pack_linear(draw, kernels, &linear);
		float *x = draw_floats(draw, MOST * in), alone[300];
		struct attn_linear_call call = {.linear = &linear,
		                                .rows = 1,
		                                .count = 1,
		                                .x = {.data = x},
		                                .y = {.data = alone},
		                                .activation = ATTN_ACTIVATION_GELU};
		run(kernels, &fixture.serial, &call);
		float *y = draw_floats(draw, MOST * out);
		call.y.data = y;
		for (call.count = 1; call.count <= MOST; call.count += 1 + call.count / 8) {
			const size_t place = draw_size(draw, 0, call.count - 1);
			float *mates = draw_floats(draw, MOST * in);
			memcpy(mates + place * in, x, in * sizeof(float));
			call.x.data = mates;
			run(kernels, &fixture.threads.executor, &call);
			ck_assert_mem_eq(y + place * out, alone, out * sizeof(float));
		}
		attn_arena_rewind(draw->arena, empty);
	}
	fixture_close(&fixture);
}
ON_EACH_SET(a_row_keeps_its_bits_among_any_others)

/* ---- what is not finite */

static void a_nan_stays_in_its_row(attn_kernels *kernels)
{
	struct fixture fixture;
	fixture_init(&fixture, 23);
	struct draw *draw = &fixture.draw;
	attn_linear linear = draw_linear(draw, 40, 37);
	linear = pack_linear(draw, kernels, &linear);
	float *x = draw_floats(draw, 20 * 40), *y = draw_floats(draw, 20 * 37);
	x[7 * 40 + 3] = NAN;
	x[9 * 40 + 3] = INFINITY;
	for (size_t a = 0; a < sizeof(ACTIVATIONS) / sizeof(*ACTIVATIONS); a++) {
		struct attn_linear_call call = {.linear = &linear,
		                                .rows = 20,
		                                .count = 1,
		                                .x = {.data = x},
		                                .y = {.data = y},
		                                .activation = ACTIVATIONS[a]};
		run(kernels, &fixture.serial, &call);
		for (size_t i = 0; i < 20 * 37; i++)
			ck_assert(i / 37 == 9 || (isnan(y[i]) != 0) == (i / 37 == 7));
	}
	fixture_close(&fixture);
}
ON_EACH_SET(a_nan_stays_in_its_row)

/* ---- packing */

static void packed_weights_read_back_as_they_were(attn_kernels *kernels)
{
	struct fixture fixture;
	fixture_init(&fixture, 24);
	struct draw *draw = &fixture.draw;
	for (size_t i = 0; i < 20; i++) {
		attn_linear linear = draw_linear(draw, draw_size(draw, 1, 90), draw_size(draw, 1, 90));
		attn_linear packed = pack_linear(draw, kernels, &linear);
		if (packed.packed == NULL)
			break;
		float *column = draw_floats(draw, linear.in), *row = draw_floats(draw, linear.out);
		const size_t along = linear.layout == ATTN_OUT_IN ? 1 : linear.stride;
		const size_t across = linear.layout == ATTN_OUT_IN ? linear.stride : 1;
		for (size_t j = 0; j < linear.out; j++) {
			attn_packed_column(packed.packed, packed.packed_first + j, column);
			for (size_t p = 0; p < linear.in; p++)
				ck_assert(column[p] == linear.weight[p * along + j * across]);
		}
		for (size_t p = 0; p < linear.in; p++) {
			attn_packed_row(packed.packed, p, packed.packed_first, linear.out, row);
			for (size_t j = 0; j < linear.out; j++)
				ck_assert(row[j] == linear.weight[p * along + j * across]);
		}
	}
	fixture_close(&fixture);
}
ON_EACH_SET(packed_weights_read_back_as_they_were)

START_TEST(weights_packed_for_other_kernels_are_refused)
{
	struct fixture fixture;
	fixture_init(&fixture, 25);
	attn_kernels *native = NULL, *blas = NULL;
	ck_assert_int_eq(attn_kernels_new(attn_kernels_list(0), &native), ATTN_OK);
	ck_assert_int_eq(attn_kernels_new("blas", &blas), ATTN_OK);
	attn_linear linear = draw_linear(&fixture.draw, 8, 8);
	linear = pack_linear(&fixture.draw, native, &linear);
	float x[8] = {0}, y[8];
	struct attn_linear_call call = {
	    .linear = &linear, .rows = 1, .count = 1, .x = {.data = x}, .y = {.data = y}};
	if (linear.packed != NULL)
		ck_assert_int_eq(attn_linear_run(blas, &fixture.serial, &call, 1), ATTN_INVALID);
	else
		suite_skip("this CPU has no kernels for packed weights");
	attn_kernels_free(native);
	attn_kernels_free(blas);
	fixture_close(&fixture);
}
END_TEST

START_TEST(sizes_that_overflow_are_told)
{
	attn_kernels *native = NULL;
	ck_assert_int_eq(attn_kernels_new(attn_kernels_list(0), &native), ATTN_OK);
	if (attn_packed_bytes(native, 1, 1) > 0) {
		ck_assert_uint_eq(attn_packed_bytes(native, SIZE_MAX / 8, 16), SIZE_MAX);
		ck_assert_uint_eq(attn_packed_bytes(native, 1, SIZE_MAX), SIZE_MAX);
	}
	const attn_linear linear = {.weight = (const float[]){1}, .in = SIZE_MAX / 16, .out = 1, .stride = 1};
	ck_assert_uint_eq(attn_linear_scratch_bytes(&linear, 9, 9), SIZE_MAX);
	attn_kernels_free(native);
}
END_TEST

/* ---- activations */

static void an_activation_is_close_to_its_definition(attn_kernels *kernels)
{
	enum { COUNT = 20000 };
	struct fixture fixture;
	fixture_init(&fixture, 26);
	struct draw *draw = &fixture.draw;
	const float one = 1;
	attn_linear linear = {.weight = &one, .in = 1, .out = 1, .stride = 1};
	linear = pack_linear(draw, kernels, &linear);
	float *x = draw_floats(draw, COUNT), *y = draw_floats(draw, COUNT);
	for (size_t i = 0; i < COUNT; i++) /* dense near 0, out to 100 */
		x[i] = 100 * x[i] * x[i] * x[i];
	for (size_t a = 0; a < sizeof(ACTIVATIONS) / sizeof(*ACTIVATIONS); a++) {
		struct attn_linear_call call = {.linear = &linear,
		                                .rows = COUNT,
		                                .count = 1,
		                                .x = {.data = x},
		                                .y = {.data = y},
		                                .activation = ACTIVATIONS[a]};
		run(kernels, &fixture.serial, &call);
		for (size_t i = 0; i < COUNT; i++) {
			const double wanted = activation(ACTIVATIONS[a], (double)x[i]);
			if (!(fabs((double)y[i] - wanted) <= 4e-7 * fmax(fabs((double)x[i]), 1e-3)))
				ck_abort_msg("activation %zu of %.9g is %.9g, should be %.9g", a,
				             (double)x[i], (double)y[i], wanted);
		}
	}
	fixture_close(&fixture);
}
ON_EACH_SET(an_activation_is_close_to_its_definition)

SUITE_MAIN("linear", EACH_SET(a_linear_map_is_what_plain_loops_give),
           EACH_SET(a_row_keeps_its_bits_among_any_others), EACH_SET(a_nan_stays_in_its_row),
           EACH_SET(packed_weights_read_back_as_they_were),
           EACH_SET(an_activation_is_close_to_its_definition), weights_packed_for_other_kernels_are_refused,
           sizes_that_overflow_are_told)
