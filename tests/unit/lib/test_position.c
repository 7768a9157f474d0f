#include "attn.h"
#include "kernel_sets.h"
#include "small_attention.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- rotation, seen through the queries and keys that enter the scores */

/* One head of one row at a position. */
static struct small small_rotated(attn_rotation rotation, size_t width, int64_t position)
{
	struct small small = small_make(1, 1, 1, 1, width, 1);
	small.options.rotation = rotation;
	small.options.position_offset = position;
	return small;
}

static void rotate(attn_kernels *kernels, struct small *small, float *query, float *key)
{
	small->sequence.used_query = query;
	small->sequence.used_key = key;
	small_run(kernels, small);
}

static void rule_12_rope_turns_pairs_of_halves_or_of_neighbours(attn_kernels *kernels)
{
	float query[4], key[4];
	struct small small = small_rotated(ATTN_ROTATE_HALVES, 4, 1);
	memcpy(small.query, (const float[]){1, 2, 3, 4}, 4 * sizeof(float));
	memcpy(small.key, small.query, 4 * sizeof(float));
	rotate(kernels, &small, query, key);
	SMALL_SAME(query, -1.984111f, 1.959901f, 2.462378f, 4.019800f);
	SMALL_SAME(key, -1.984111f, 1.959901f, 2.462378f, 4.019800f);
	small.options.rotation = ATTN_ROTATE_PAIRS;
	rotate(kernels, &small, query, key);
	SMALL_SAME(query, -1.142640f, 1.922076f, 2.959851f, 4.029800f);
	SMALL_SAME(key, -1.142640f, 1.922076f, 2.959851f, 4.029800f);
}
ON_EACH_SET(rule_12_rope_turns_pairs_of_halves_or_of_neighbours)

static double ulp_of(double value)
{
	float magnitude = fabsf((float)value);
	return (double)(nextafterf(magnitude, INFINITY) - magnitude);
}

static void check_rotated(const struct small *small, const float *found)
{
	const size_t width = small->shape.head_width;
	const bool halves = small->options.rotation == ATTN_ROTATE_HALVES;
	for (size_t pair = 0; pair < width / 2; pair++) {
		size_t first = halves ? pair : 2 * pair, second = halves ? pair + width / 2 : 2 * pair + 1;
		long double angle = (long double)small->options.position_offset /
		                    powl((long double)small->options.rope_theta,
		                         2.0L * (long double)pair / (long double)width);
		long double a = (long double)small->query[first], b = (long double)small->query[second];
		double x = (double)(a * cosl(angle) - b * sinl(angle));
		double y = (double)(a * sinl(angle) + b * cosl(angle));
		if (!(fabs((double)found[first] - x) <= 2 * ulp_of(x)) ||
		    !(fabs((double)found[second] - y) <= 2 * ulp_of(y)))
			ck_abort_msg("position %lld, pair %zu: (%.9g, %.9g), should be (%.9g, %.9g)",
			             (long long)small->options.position_offset, pair, (double)found[first],
			             (double)found[second], x, y);
	}
}

static void rule_12_rope_is_right_to_two_units_at_long_positions(attn_kernels *kernels)
{
	static const int64_t POSITIONS[] = {0, 1, 2, 100, 2047, 4096, 32767, 65535, 65536, -3};
	float query[128], key[128];
	for (size_t i = 0; i < sizeof(POSITIONS) / sizeof(POSITIONS[0]); i++) {
		for (int rotation = ATTN_ROTATE_HALVES; rotation <= ATTN_ROTATE_PAIRS; rotation++) {
			struct small small = small_rotated((attn_rotation)rotation, 128, POSITIONS[i]);
			small_fill(&small);
			small.options.rope_theta = i % 2 == 0 ? 10000 : 500000;
			memcpy(small.key, small.query, sizeof(key));
			rotate(kernels, &small, query, key);
			check_rotated(&small, query);
			ck_assert_mem_eq(query, key, sizeof(key));
		}
	}
}
ON_EACH_SET(rule_12_rope_is_right_to_two_units_at_long_positions)

static void rule_12_rope_leaves_scores_to_the_distance(attn_kernels *kernels)
{
	struct small near = small_make(2, 1, 5, 5, 8, 3);
	small_fill(&near);
	near.options.rotation = ATTN_ROTATE_PAIRS;
	struct small far = near, none = near;
	far.options.position_offset = 1000;
	none.options.rotation = ATTN_ROTATE_NONE;
	small_run(kernels, &near);
	small_run(kernels, &far);
	small_run(kernels, &none);
	small_close(far.weights, near.weights, 50, 2e-6);
	double largest = 0;
	for (size_t i = 0; i < 50; i++)
		largest = fmax(largest, fabs((double)near.weights[i] - (double)none.weights[i]));
	ck_assert_double_gt(largest, 0.01);
}
ON_EACH_SET(rule_12_rope_leaves_scores_to_the_distance)

static void rule_12_queries_and_new_keys_count_from_the_offset(attn_kernels *kernels)
{
	float used_query[3 * 2], used_key[4 * 2], wanted[2];
	struct small small = small_make(1, 1, 3, 4, 2, 1);
	for (size_t i = 0; i < 8; i += 2)
		small.query[i] = small.key[i] = 1; /* (1, 0) turned is (cos, sin) */
	small.shape.past = 2;
	small.options.rotation = ATTN_ROTATE_HALVES;
	small.options.position_offset = 7;
	rotate(kernels, &small, used_query, used_key);
	for (size_t i = 0; i < 3; i++) {
		wanted[0] = (float)cos(7.0 + (double)i);
		wanted[1] = (float)sin(7.0 + (double)i);
		small_close(used_query + 2 * i, wanted, 2, 1e-7);
		if (i < 2)
			small_close(used_key + 4 + 2 * i, wanted, 2, 1e-7);
	}
	SMALL_SAME(used_key, 1, 0, 1, 0); /* past is not turned again */
}
ON_EACH_SET(rule_12_queries_and_new_keys_count_from_the_offset)

static void rule_12_an_odd_width_or_a_bad_theta_is_refused(attn_kernels *kernels)
{
	small_refused(kernels, small_rotated(ATTN_ROTATE_HALVES, 3, 0), ATTN_INVALID);
	small_refused(kernels, small_rotated(ATTN_ROTATE_PAIRS, 1, 0), ATTN_INVALID);
	struct small small = small_rotated(ATTN_ROTATE_PAIRS, 2, 0);
	small.options.rope_theta = 0;
	small_refused(kernels, small, ATTN_INVALID);
	small.options.rope_theta = INFINITY;
	small_refused(kernels, small, ATTN_INVALID);
}
ON_EACH_SET(rule_12_an_odd_width_or_a_bad_theta_is_refused)

/* ---- sinusoids */

static void check_sinusoid(size_t width, int64_t position)
{
	float row[512];
	for (size_t i = 0; i < width; i++)
		row[i] = (float)i / 7;
	attn_sinusoid_add(row, width, position);
	for (size_t i = 0; i < width; i++) {
		long double angle =
		    (long double)position / powl(10000, (long double)(i - i % 2) / (long double)width);
		double wave = (double)(i % 2 == 0 ? sinl(angle) : cosl(angle));
		double wanted = (double)((float)i / 7) + wave;
		if (!(fabs((double)row[i] - wanted) <= ulp_of(wanted)))
			ck_abort_msg("position %lld, column %zu of %zu: %.9g, should be %.9g",
			             (long long)position, i, width, (double)row[i], wanted);
	}
}

START_TEST(rule_12_sinusoids_alternate_sine_and_cosine)
{
	float row[4] = {0};
	attn_sinusoid_add(row, 4, 1);
	SMALL_SAME(row, .841471f, .540302f, .010000f, .999950f);
	static const int64_t POSITIONS[] = {0, 1, 77, 65536, -2};
	for (size_t i = 0; i < sizeof(POSITIONS) / sizeof(POSITIONS[0]); i++) {
		check_sinusoid(512, POSITIONS[i]);
		check_sinusoid(7, POSITIONS[i]);
		check_sinusoid(1, POSITIONS[i]);
	}
}
END_TEST

/* A layer without projections: a single key weighs 1, so the output is its value. */
static void rule_12_sinusoids_are_added_to_query_key_and_value(attn_kernels *kernels)
{
	float x[6] = {1, 2, 3, 4, 5, 6}, output[6], used_query[6], used_key[6], wanted[6];
	const attn_linear identity = {.in = 3, .out = 3};
	const attn_layer layer = {.query = identity,
	                          .key = identity,
	                          .value = identity,
	                          .output = identity,
	                          .heads = 1,
	                          .kv_heads = 1,
	                          .head_width = 3,
	                          .value_width = 3};
	attn_options options = attn_options_default(3);
	attn_arena *scratch = attn_arena_new(0);
	attn_executor executor = attn_executor_serial(scratch);
	options.sinusoidal = true;
	options.position_offset = 5;
	options.window_left = options.window_right = 0;
	attn_layer_sequence sequence = {
	    x, x, x, output, {.key_length = 2, .used_query = used_query, .used_key = used_key}};
	memcpy(wanted, x, sizeof(x));
	attn_sinusoid_add(wanted, 3, 5);
	attn_sinusoid_add(wanted + 3, 3, 6);
	ck_assert_int_eq(attn_layer_run(kernels, &executor, &layer, 2, 2, 0, &options, &sequence, 1),
	                 ATTN_OK);
	ck_assert_mem_eq(output, wanted, sizeof(wanted));
	ck_assert_mem_eq(used_query, wanted, sizeof(wanted));
	ck_assert_mem_eq(used_key, wanted, sizeof(wanted));
	ck_assert_float_eq(x[0], 1);
	attn_arena_free(scratch);
}
ON_EACH_SET(rule_12_sinusoids_are_added_to_query_key_and_value)

/* ---- ALiBi */

START_TEST(rule_12_alibi_slopes_are_the_published_ones)
{
	float slopes[12];
	attn_alibi_slopes(1, slopes);
	SMALL_SAME(slopes, 1.0f / 256);
	attn_alibi_slopes(8, slopes);
	SMALL_SAME(slopes, .5f, .25f, .125f, .0625f, .03125f, .015625f, .0078125f, .00390625f);
	attn_alibi_slopes(3, slopes);
	SMALL_SAME(slopes, .0625f, .00390625f, .25f);
	attn_alibi_slopes(6, slopes);
	SMALL_SAME(slopes, .25f, .0625f, .015625f, .00390625f, .5f, .125f);
	attn_alibi_slopes(12, slopes);
	SMALL_SAME(slopes, .5f, .25f, .125f, .0625f, .03125f, .015625f, .0078125f, .00390625f, .7071068f,
	           .3535534f, .1767767f, .0883883f);
}
END_TEST

static void rule_12_alibi_lowers_scores_by_distance_from_the_aligned_diagonal(attn_kernels *kernels)
{
	float slopes[2], masked[2 * 2 * 3];
	struct small small = small_make(2, 2, 2, 3, 1, 1);
	attn_alibi_slopes(2, slopes); /* 1/16, 1/256 */
	small.options.slopes = slopes;
	small.sequence.masked = masked;
	small_run(kernels, &small);
	SMALL_SAME(masked, -1.0f / 16, 0, -1.0f / 16, -2.0f / 16, -1.0f / 16, 0, -1.0f / 256, 0, -1.0f / 256,
	           -2.0f / 256, -1.0f / 256, 0);
	small.options.causal = ATTN_CAUSAL_OFFSET;
	small.sequence.causal_offset = 0;
	small_run(kernels, &small);
	SMALL_SAME(masked, 0, -INFINITY, -INFINITY, -1.0f / 16, 0, -INFINITY, 0, -INFINITY, -INFINITY,
	           -1.0f / 256, 0, -INFINITY);
}
ON_EACH_SET(rule_12_alibi_lowers_scores_by_distance_from_the_aligned_diagonal)

SUITE_MAIN("position", EACH_SET(rule_12_rope_turns_pairs_of_halves_or_of_neighbours),
           EACH_SET(rule_12_rope_is_right_to_two_units_at_long_positions),
           EACH_SET(rule_12_rope_leaves_scores_to_the_distance),
           EACH_SET(rule_12_queries_and_new_keys_count_from_the_offset),
           EACH_SET(rule_12_an_odd_width_or_a_bad_theta_is_refused),
           rule_12_sinusoids_alternate_sine_and_cosine,
           EACH_SET(rule_12_sinusoids_are_added_to_query_key_and_value),
           rule_12_alibi_slopes_are_the_published_ones,
           EACH_SET(rule_12_alibi_lowers_scores_by_distance_from_the_aligned_diagonal))
