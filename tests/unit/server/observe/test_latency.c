/* Quantiles against sorting, the fit against known curves, the bounds of the table, the JSON. */
#include "observe/latency.h"
#include "observe/quantiles.h"
#include "suite.h"

#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static double random_unit(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return ((double)(*state >> 11) + 0.5) / 9007199254740992.0;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

START_TEST(a_quantile_is_within_its_resolution_of_the_sorted_samples)
{
	enum { SAMPLES = 20000 };
	static double samples[SAMPLES];
	struct quantiles quantiles = {0};
	uint64_t state = 7;
	for (size_t i = 0; i < SAMPLES; i++) {
		samples[i] = 1e-7 * pow(10, 9 * random_unit(&state)); /* 100 ns to 100 s */
		quantiles_add(&quantiles, samples[i]);
	}
	qsort(samples, SAMPLES, sizeof(samples[0]), by_value);
	const double fractions[] = {0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999};
	for (size_t i = 0; i < sizeof(fractions) / sizeof(fractions[0]); i++) {
		double exact = samples[(size_t)(fractions[i] * SAMPLES) - 1];
		ck_assert_double_lt(fabs(quantiles_at(&quantiles, fractions[i]) / exact - 1), 0.035);
	}
}
END_TEST

START_TEST(a_single_sample_is_every_quantile)
{
	for (double seconds = 1.1e-7; seconds < 900; seconds *= 1.7) {
		struct quantiles quantiles = {0};
		quantiles_add(&quantiles, seconds);
		ck_assert_double_lt(fabs(quantiles_at(&quantiles, 0.5) / seconds - 1), 0.035);
		ck_assert_double_lt(fabs(quantiles_at(&quantiles, 0.99) / seconds - 1), 0.035);
	}
}
END_TEST

START_TEST(durations_out_of_range_count_at_the_ends)
{
	struct quantiles quantiles = {0};
	ck_assert_double_eq(quantiles_at(&quantiles, 0.5), 0);
	const double odd[] = {0, 1e-300, -1, 1e9, INFINITY, 1024};
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		quantiles_add(&quantiles, odd[i]);
	ck_assert_uint_eq(quantiles.count, 6);
	ck_assert_double_lt(quantiles_at(&quantiles, 0.25), 1e-7);
	ck_assert_double_gt(quantiles_at(&quantiles, 0.99), 1000);
}
END_TEST

static size_t make_points(struct latency_point *points, double a, double b, double c)
{
	size_t count = 0;
	for (double length = 16; length <= 4096; length *= 2, count++)
		points[count] = (struct latency_point){length, a + b * length + c * length * length};
	return count;
}

START_TEST(the_fit_finds_the_curve_it_was_given)
{
	struct latency_point points[16];
	size_t count = make_points(points, 3e-5, 2e-7, 4e-9);
	struct latency_fit fit;
	ck_assert(latency_fit_points(points, count, &fit));
	ck_assert_double_eq_tol(fit.a, 3e-5, 3e-11);
	ck_assert_double_eq_tol(fit.b, 2e-7, 2e-13);
	ck_assert_double_eq_tol(fit.c, 4e-9, 4e-15);
	ck_assert_uint_eq(fit.from, 16);
	ck_assert_uint_eq(fit.to, 4096);
}
END_TEST

START_TEST(the_fit_follows_short_lengths_under_noise)
{
	struct latency_point points[16];
	uint64_t state = 3;
	size_t count = make_points(points, 3e-5, 2e-7, 4e-9);
	for (size_t i = 0; i < count; i++)
		points[i].seconds *= 1 + 0.04 * (random_unit(&state) - 0.5);
	struct latency_fit fit;
	ck_assert(latency_fit_points(points, count, &fit));
	for (size_t i = 0; i < count; i++) {
		double length = points[i].length;
		double fitted = fit.a + fit.b * length + fit.c * length * length;
		ck_assert_double_lt(fabs(fitted / points[i].seconds - 1), 0.05);
	}
}
END_TEST

START_TEST(quadratic_growth_has_exponent_two)
{
	struct latency_point points[16];
	struct latency_fit fit;
	size_t count = make_points(points, 0, 0, 7e-9);
	ck_assert(latency_fit_points(points, count, &fit));
	ck_assert_double_eq_tol(fit.exponent, 2, 1e-9);
	count = make_points(points, 0, 5e-8, 0);
	ck_assert(latency_fit_points(points, count, &fit));
	ck_assert_double_eq_tol(fit.exponent, 1, 1e-9);
}
END_TEST

START_TEST(the_exponent_looks_at_lengths_from_128_up_only)
{
	struct latency_point points[16];
	struct latency_fit fit;
	size_t count = make_points(points, 0, 0, 7e-9);
	for (size_t i = 0; i < count && points[i].length < 128; i++)
		points[i].seconds = 1e-3;
	ck_assert(latency_fit_points(points, count, &fit));
	ck_assert_double_eq_tol(fit.exponent, 2, 1e-9);
	const struct latency_point two_long[] = {{16, 1e-5}, {32, 2e-5}, {128, 9e-5}, {256, 3e-4}};
	ck_assert(latency_fit_points(two_long, 4, &fit));
	ck_assert(isnan(fit.exponent));
}
END_TEST

START_TEST(there_is_no_fit_through_two_points)
{
	const struct latency_point points[] = {{16, 1e-5}, {32, 2e-5}, {32, 2e-5}};
	struct latency_fit fit;
	ck_assert(!latency_fit_points(points, 2, &fit));
	ck_assert(!latency_fit_points(points, 3, &fit)); /* two lengths leave c free */
}
END_TEST

static void record(struct latency *latency, const char *model, size_t width, size_t length, double seconds)
{
	struct latency_sample sample = {.operation =
	                                    model != NULL ? METRICS_MODEL_ATTENTION : METRICS_ATTENTION,
	                                .model = model,
	                                .heads = 2,
	                                .width = width,
	                                .length = length,
	                                .total = 2 * seconds,
	                                .compute = seconds};
	latency_record(latency, &sample);
}

static json_t *read_back(const struct latency *latency)
{
	size_t length = 0;
	char *text = latency_to_json(latency, &length);
	ck_assert_ptr_nonnull(text);
	ck_assert_uint_eq(length, strlen(text));
	json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
	ck_assert_ptr_nonnull(root);
	free(text);
	return root;
}

static double number_at(const json_t *object, const char *first, const char *second)
{
	const json_t *value = json_object_get(json_object_get(object, first), second);
	ck_assert(json_is_number(value));
	return json_number_value(value);
}

START_TEST(the_json_names_each_combination_with_its_lengths_in_order)
{
	struct latency *latency = latency_new();
	const size_t lengths[] = {512, 16, 128, 256, 64};
	for (size_t i = 0; i < 5; i++) {
		double seconds = 1e-8 * (double)(lengths[i] * lengths[i]);
		for (int n = 0; n < 10; n++)
			record(latency, NULL, 64, lengths[i], seconds);
	}
	record(latency, "tiny", 32, 8, 1e-3);
	json_t *root = read_back(latency);
	json_t *data = json_object_get(root, "data");
	ck_assert_uint_eq(json_array_size(data), 2);

	json_t *raw = json_array_get(data, 0), *list = json_object_get(raw, "lengths");
	ck_assert_str_eq(json_string_value(json_object_get(raw, "operation")), "attention");
	ck_assert(json_is_null(json_object_get(raw, "model")));
	ck_assert_int_eq(json_integer_value(json_object_get(raw, "heads")), 2);
	ck_assert_int_eq(json_integer_value(json_object_get(raw, "width")), 64);
	const json_int_t sorted[] = {16, 64, 128, 256, 512};
	ck_assert_uint_eq(json_array_size(list), 5);
	for (size_t i = 0; i < 5; i++) {
		json_t *entry = json_array_get(list, i);
		double seconds = 1e-8 * (double)(sorted[i] * sorted[i]);
		ck_assert_int_eq(json_integer_value(json_object_get(entry, "length")), sorted[i]);
		ck_assert_int_eq(json_integer_value(json_object_get(entry, "count")), 10);
		ck_assert_double_lt(fabs(number_at(entry, "compute", "p50") / seconds - 1), 0.035);
		ck_assert_double_lt(fabs(number_at(entry, "total", "p99") / seconds / 2 - 1), 0.035);
		ck_assert_double_le(number_at(entry, "total", "p50"), number_at(entry, "total", "p90"));
	}
	ck_assert_double_eq_tol(number_at(raw, "fit", "exponent"), 2, 0.05);
	ck_assert_double_eq(number_at(raw, "fit", "from"), 16);
	ck_assert_double_eq(number_at(raw, "fit", "to"), 512);
	ck_assert_double_eq_tol(number_at(raw, "fit", "c"), 1e-8, 1e-9);

	json_t *model = json_array_get(data, 1);
	ck_assert_str_eq(json_string_value(json_object_get(model, "model")), "tiny");
	ck_assert(json_is_null(json_object_get(model, "fit")));
	json_decref(root);
	latency_free(latency);
}
END_TEST

START_TEST(an_exponent_that_cannot_be_known_is_null)
{
	struct latency *latency = latency_new();
	for (size_t length = 8; length <= 64; length *= 2)
		record(latency, NULL, 64, length, 1e-6 * (double)length);
	json_t *root = read_back(latency);
	json_t *fit = json_object_get(json_array_get(json_object_get(root, "data"), 0), "fit");
	ck_assert(json_is_object(fit));
	ck_assert(json_is_null(json_object_get(fit, "exponent")));
	json_decref(root);
	latency_free(latency);
}
END_TEST

START_TEST(an_empty_table_is_an_empty_list)
{
	struct latency *latency = latency_new();
	json_t *root = read_back(latency);
	ck_assert(json_is_array(json_object_get(root, "data")));
	ck_assert_uint_eq(json_array_size(json_object_get(root, "data")), 0);
	json_decref(root);
	latency_free(latency);
	latency_free(NULL);
}
END_TEST

/* Counts over all entries; *lengths: of the entries but "other". */
static json_int_t total_count(const json_t *data, size_t *lengths)
{
	json_int_t sum = 0;
	*lengths = 0;
	for (size_t i = 0; i < json_array_size(data); i++) {
		const json_t *entry = json_array_get(data, i), *list = json_object_get(entry, "lengths");
		bool other = strcmp(json_string_value(json_object_get(entry, "operation")), "other") == 0;
		*lengths += other ? 0 : json_array_size(list);
		for (size_t j = 0; j < json_array_size(list); j++)
			sum += json_integer_value(json_object_get(json_array_get(list, j), "count"));
	}
	return sum;
}

START_TEST(the_table_is_bounded_and_what_is_over_goes_to_other)
{
	struct latency *latency = latency_new();
	for (size_t width = 1; width <= 100; width++)
		record(latency, NULL, width, 8, 1e-4);
	json_t *root = read_back(latency);
	json_t *data = json_object_get(root, "data");
	size_t lengths;
	ck_assert_uint_eq(json_array_size(data), LATENCY_MAX_SERIES + 1);
	ck_assert_int_eq(total_count(data, &lengths), 100);
	json_t *other = json_array_get(data, LATENCY_MAX_SERIES);
	ck_assert_str_eq(json_string_value(json_object_get(other, "operation")), "other");
	ck_assert(json_is_null(json_object_get(other, "fit")));
	json_decref(root);

	for (size_t length = 1; length <= 3000; length++)
		record(latency, NULL, 1, length, 1e-4);
	root = read_back(latency);
	ck_assert_int_eq(total_count(json_object_get(root, "data"), &lengths), 3100);
	ck_assert_uint_eq(lengths, LATENCY_MAX_LENGTHS);
	json_decref(root);
	latency_free(latency);
}
END_TEST

START_TEST(a_long_model_name_is_cut_and_still_one_entry)
{
	struct latency *latency = latency_new();
	char name[200];
	memset(name, 'm', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	record(latency, name, 8, 8, 1e-4);
	record(latency, name, 8, 8, 1e-4);
	json_t *root = read_back(latency);
	json_t *data = json_object_get(root, "data");
	ck_assert_uint_eq(json_array_size(data), 1);
	ck_assert_uint_eq(strlen(json_string_value(json_object_get(json_array_get(data, 0), "model"))), 128);
	json_decref(root);
	latency_free(latency);
}
END_TEST

SUITE_MAIN("latency", a_quantile_is_within_its_resolution_of_the_sorted_samples,
           a_single_sample_is_every_quantile, durations_out_of_range_count_at_the_ends,
           the_fit_finds_the_curve_it_was_given, the_fit_follows_short_lengths_under_noise,
           quadratic_growth_has_exponent_two, the_exponent_looks_at_lengths_from_128_up_only,
           there_is_no_fit_through_two_points, the_json_names_each_combination_with_its_lengths_in_order,
           an_exponent_that_cannot_be_known_is_null, an_empty_table_is_an_empty_list,
           the_table_is_bounded_and_what_is_over_goes_to_other, a_long_model_name_is_cut_and_still_one_entry)
