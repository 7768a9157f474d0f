#include "attention_kernels.h"
#include "kernel_sets.h"
#include "kernels.h"

#include <math.h>
#include <stdalign.h>
#include <string.h>

/* Kernels of attention, one by one, against double; what they make together is compared by test_attention_*.
 */

enum { LANES = 512, MOST_ROWS = 30, WIDTH = 37, KEYS = 301, STRIPS = 320, STRIDE = 336 };

static const struct attn_attention_kernels *kernels_of(const attn_kernels *kernels)
{
	ck_assert_ptr_nonnull(kernels->attention);
	return kernels->attention;
}

static void fill(float *numbers, size_t count, float seed)
{
	for (size_t i = 0; i < count; i++)
		numbers[i] = sinf((float)i * 1.7f + seed);
}

/* Units in the last place of the wanted value; subnormals count in their own unit. */
static double ulps(float found, double wanted)
{
	int exponent = 0;
	frexp(wanted, &exponent);
	return fabs((double)found - wanted) / ldexp(1, (exponent > -125 ? exponent : -125) - 24);
}

static struct attn_softmax_panel one_row(float *row, size_t columns, float *maximum, double *sum)
{
	return (struct attn_softmax_panel){row, columns, 1, columns, 0, maximum, sum};
}

static void exponentials_are_within_two_units_in_the_last_place(attn_kernels *set)
{
	const struct attn_attention_kernels *kernels = kernels_of(set);
	alignas(64) float row[LANES];
	float asked[LANES], maximum = 0;
	double sum = 0, worst = 0;
	uint32_t bits = 0x80000000u; /* -0, then every 1571st down to where all is 0 */
	while (bits < 0xc2f00000u) {
		for (size_t i = 0; i < LANES; i++, bits += 1571)
			memcpy(&asked[i], &bits, sizeof(bits));
		memcpy(row, asked, sizeof(row));
		const struct attn_softmax_panel panel = one_row(row, LANES, &maximum, &sum);
		kernels->softmax(&panel);
		for (size_t i = 0; i < LANES; i++)
			worst = fmax(worst, ulps(row[i], exp((double)asked[i])));
	}
	ck_assert_msg(worst <= 2, "off by %g units", worst);
}

static void a_softmax_of_special_values_is_what_arithmetic_says(attn_kernels *set)
{
	const struct attn_attention_kernels *kernels = kernels_of(set);
	alignas(64) float row[ATTN_LANES] = {0, -0.0f, -INFINITY, -1e30f, -104, -3.4e38f, -1e-40f};
	float maximum = 0;
	double sum = 0;
	for (size_t i = 7; i < ATTN_LANES; i++)
		row[i] = -INFINITY;
	struct attn_softmax_panel panel = one_row(row, ATTN_LANES, &maximum, &sum);
	panel.floor = -INFINITY;
	kernels->softmax(&panel);
	ck_assert(row[0] == 1 && row[1] == 1 && row[6] == 1 && maximum == 0 && sum == 3);
	for (size_t i = 2; i < ATTN_LANES; i++)
		ck_assert(i == 6 || row[i] == 0);
	row[3] = NAN;
	kernels->softmax(&panel);
	ck_assert(maximum == 1 && isnan(row[3]) && isnan(sum));
	for (size_t i = 0; i < ATTN_LANES; i++)
		row[i] = i == 5 ? INFINITY : -INFINITY;
	kernels->softmax(&panel);
	ck_assert(maximum == INFINITY && row[5] == INFINITY && row[0] == -INFINITY);
}

static void softcap_is_softcap_times_tanh(attn_kernels *set)
{
	const struct attn_attention_kernels *kernels = kernels_of(set);
	static const float CAPS[] = {0.01f, 1, 2, 50, 1e6f};
	float scores[LANES + 3], asked[LANES + 3];
	for (size_t c = 0; c < sizeof(CAPS) / sizeof(CAPS[0]); c++) {
		for (size_t i = 0; i < LANES + 3; i++)
			asked[i] = ((float)i - 256) * 0.05f * CAPS[c];
		asked[0] = -INFINITY;
		asked[1] = 1e-30f;
		memcpy(scores, asked, sizeof(scores));
		kernels->cap(scores, LANES + 3, CAPS[c]);
		for (size_t i = 0; i < LANES + 3; i++) {
			double wanted = (double)CAPS[c] * tanh((double)asked[i] / (double)CAPS[c]);
			ck_assert_double_le(fabs((double)scores[i] - wanted),
			                    fmin(2e-7 * (double)CAPS[c], 4e-7 * fabs(wanted) + 1e-37));
		}
	}
	scores[0] = NAN;
	kernels->cap(scores, 1, 2);
	ck_assert(isnan(scores[0]));
}

static void biases_add_and_masks_select_at_any_length_and_place(attn_kernels *set)
{
	const struct attn_attention_kernels *kernels = kernels_of(set);
	float scores[80], bias[80];
	uint8_t mask[80];
	for (size_t n = 0; n < 70; n++) {
		fill(scores, 80, 1);
		fill(bias, 80, 2);
		for (size_t i = 0; i < 80; i++)
			mask[i] = i % 3 == 0 ? 0 : (uint8_t)(i % 2 == 0 ? 1 : 128);
		bias[5] = -INFINITY;
		scores[5 + n % 3] = NAN;
		kernels->add(scores + n % 3, n, bias);
		kernels->slope(scores + n % 3, n, 0.25f, 20);
		kernels->mask(scores + n % 3, n, mask);
		for (size_t i = 0; i < n; i++) {
			const float score = sinf((float)(i + n % 3) * 1.7f + 1);
			const float wanted = score + bias[i] - 0.25f * fabsf(20 - (float)i);
			if (i % 3 == 0 || i == 5)
				ck_assert_float_eq(scores[i + n % 3], -INFINITY);
			else
				ck_assert_float_le(fabsf(scores[i + n % 3] - wanted), 4e-6f);
		}
		for (size_t i = n + n % 3; i < 80; i++)
			ck_assert(isnan(scores[i]) || scores[i] == sinf((float)i * 1.7f + 1));
	}
}

static void scaled_rows_are_the_same_wherever_they_go(attn_kernels *set)
{
	const struct attn_attention_kernels *kernels = kernels_of(set);
	float row[100];
	alignas(64) float out[140];
	fill(row, 100, 3);
	for (size_t n = 0; n < 100; n++) {
		for (size_t i = 0; i < 140; i++)
			out[i] = -7;
		kernels->scale(out + n % 19, row, n, 0.37f);
		for (size_t i = 0; i < 140; i++) {
			const bool inside = i >= n % 19 && i < n % 19 + n;
			ck_assert_float_eq(out[i], inside ? row[i - n % 19] * 0.37f : -7);
		}
	}
}

/* Scores, exponentials and context of some rows of one call. */
struct products {
	alignas(64) float query[MOST_ROWS * WIDTH], keys[KEYS * WIDTH], values[KEYS * WIDTH];
	alignas(64) float key_strips[STRIPS * WIDTH], value_strips[KEYS * 64];
	alignas(64) float scores[MOST_ROWS * STRIDE];
	float inverse[MOST_ROWS], context[MOST_ROWS * WIDTH], scaled[MOST_ROWS * KEYS];
};

static void products_pack(const struct attn_attention_kernels *kernels, struct products *p)
{
	fill(p->query, MOST_ROWS * WIDTH, 1);
	fill(p->keys, KEYS * WIDTH, 2);
	fill(p->values, KEYS * WIDTH, 3);
	kernels->pack_keys(p->key_strips, p->keys, WIDTH, KEYS, WIDTH, 0.5f);
	kernels->pack_values(p->value_strips, p->values, WIDTH, KEYS, WIDTH);
}

static bool products_run(const struct attn_attention_kernels *kernels, struct products *p, size_t first,
                         size_t rows, float *scaled)
{
	const struct attn_score_panel scores = {
	    .query = p->query + first * WIDTH,
	    .query_stride = WIDTH,
	    .rows = rows,
	    .width = WIDTH,
	    .strips = p->key_strips,
	    .columns = (KEYS + kernels->strip - 1) / kernels->strip * kernels->strip,
	    .scores = p->scores,
	    .stride = STRIDE,
	};
	const struct attn_value_panel context = {
	    .weights = p->scores,
	    .stride = STRIDE,
	    .rows = rows,
	    .depth = KEYS,
	    .values = p->value_strips,
	    .strip_stride = KEYS * kernels->strip,
	    .row_stride = kernels->strip,
	    .width = WIDTH,
	    .inverse = p->inverse,
	    .context = p->context,
	    .context_stride = WIDTH,
	    .scaled = scaled,
	    .scaled_stride = KEYS,
	    .scaled_streams = true,
	};
	for (size_t r = 0; r < rows; r++)
		p->inverse[r] = 0.125f;
	kernels->scores(&scores);
	return kernels->context(&context);
}

static void products_agree_with_double(attn_kernels *set)
{
	const struct attn_attention_kernels *kernels = kernels_of(set);
	static struct products p;
	products_pack(kernels, &p);
	ck_assert(products_run(kernels, &p, 0, MOST_ROWS, p.scaled));
	for (size_t r = 0; r < MOST_ROWS; r++) {
		for (size_t d = 0; d < WIDTH; d++) {
			double sum = 0, size = 0;
			for (size_t key = 0; key < KEYS; key++) {
				double term =
				    (double)p.scores[r * STRIDE + key] * (double)p.values[key * WIDTH + d];
				sum += term;
				size += fabs(term);
			}
			if (!(fabs((double)p.context[r * WIDTH + d] * 8 - sum) <= 1e-6 * size))
				ck_abort_msg("context [%zu,%zu]", r, d);
		}
		for (size_t key = 0; key < KEYS; key++) {
			double sum = 0;
			for (size_t d = 0; d < WIDTH; d++)
				sum += (double)p.query[r * WIDTH + d] * (double)p.keys[key * WIDTH + d];
			if (!(fabs((double)p.scores[r * STRIDE + key] - sum / 2) <= 1e-5))
				ck_abort_msg("score [%zu,%zu]", r, key);
			if (p.scaled[r * KEYS + key] != p.scores[r * STRIDE + key] * 0.125f)
				ck_abort_msg("scaled weight [%zu,%zu]", r, key);
		}
	}
}

static void rows_of_products_keep_their_bits_among_any_number_of_others(attn_kernels *set)
{
	const struct attn_attention_kernels *kernels = kernels_of(set);
	static struct products all, some;
	products_pack(kernels, &all);
	products_pack(kernels, &some);
	products_run(kernels, &all, 0, MOST_ROWS, NULL);
	for (size_t rows = 1; rows < MOST_ROWS; rows++) {
		const size_t first = MOST_ROWS - rows;
		products_run(kernels, &some, first, rows, rows % 2 == 0 ? some.scaled : NULL);
		for (size_t r = 0; r < rows; r++) {
			const float *row = all.scores + (first + r) * STRIDE;
			ck_assert_mem_eq(some.scores + r * STRIDE, row, KEYS * sizeof(float));
			ck_assert_mem_eq(some.context + r * WIDTH, all.context + (first + r) * WIDTH,
			                 WIDTH * sizeof(float));
		}
	}
}

static void a_context_that_is_not_finite_is_told(attn_kernels *set)
{
	const struct attn_attention_kernels *kernels = kernels_of(set);
	static struct products p;
	static const float ODD[] = {NAN, INFINITY, -INFINITY};
	products_pack(kernels, &p);
	for (size_t i = 0; i < 3; i++) {
		const float kept = p.values[(KEYS - 1 - i) * WIDTH + 36];
		p.values[(KEYS - 1 - i) * WIDTH + 36] = ODD[i];
		kernels->pack_values(p.value_strips, p.values, WIDTH, KEYS, WIDTH);
		ck_assert(!products_run(kernels, &p, 0, 7, NULL));
		p.values[(KEYS - 1 - i) * WIDTH + 36] = kept;
	}
	kernels->pack_values(p.value_strips, p.values, WIDTH, KEYS, WIDTH);
	ck_assert(products_run(kernels, &p, 0, 7, NULL));
}

#define ON_BOTH(rule) ON_SET(rule, native) ON_SET(rule, wide)
#define BOTH(rule) rule##_on_native, rule##_on_wide

ON_BOTH(exponentials_are_within_two_units_in_the_last_place)
ON_BOTH(a_softmax_of_special_values_is_what_arithmetic_says)
ON_BOTH(softcap_is_softcap_times_tanh)
ON_BOTH(biases_add_and_masks_select_at_any_length_and_place)
ON_BOTH(scaled_rows_are_the_same_wherever_they_go)
ON_BOTH(products_agree_with_double)
ON_BOTH(rows_of_products_keep_their_bits_among_any_number_of_others)
ON_BOTH(a_context_that_is_not_finite_is_told)

SUITE_MAIN("attention_kernels", BOTH(exponentials_are_within_two_units_in_the_last_place),
           BOTH(a_softmax_of_special_values_is_what_arithmetic_says), BOTH(softcap_is_softcap_times_tanh),
           BOTH(biases_add_and_masks_select_at_any_length_and_place),
           BOTH(scaled_rows_are_the_same_wherever_they_go), BOTH(products_agree_with_double),
           BOTH(rows_of_products_keep_their_bits_among_any_number_of_others),
           BOTH(a_context_that_is_not_finite_is_told))
