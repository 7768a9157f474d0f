/*
 * Tensors from JSON and back, ours against jansson's, on the same random float32 in [-1, 1], one thread; and
 * the routines for a single number.
 */
#include "bench.h"

#include "codec/json_scan.h"
#include "codec/json_writer.h"
#include "codec/numbers.h"

#include <jansson.h>
#include <stdint.h>
#include <string.h>

#define NUMBERS 20000
#define TARGET_READING 15
#define TARGET_WRITING 10

static const size_t dims[] = {NUMBERS};

struct codec_bench {
	float numbers[NUMBERS];
	json_t *array;                             /* the same numbers */
	char body[NUMBERS * NUMBER_TEXT_MAX + 16]; /* {"query":[0.5,...]} */
	const char *text;                          /* the array in it */
	size_t body_length, text_length;
	struct json_writer writer;
	char out[NUMBERS * 32];
};

static void fail(const char *what)
{
	fprintf(stderr, "bench_codec: %s\n", what);
	exit(1);
}

static void write_ours(void *arg)
{
	struct codec_bench *bench = arg;
	size_t index[1];
	bench->writer.length = 0;
	if (json_writer_tensor(&bench->writer, bench->numbers, dims, 1, index) != JSON_WRITTEN)
		fail("the numbers are not finite");
}

static void fill(struct codec_bench *bench)
{
	static const char field[] = "{\"query\":";
	uint64_t state = 1;
	bench->array = json_array();
	for (size_t i = 0; i < NUMBERS; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		bench->numbers[i] = (float)((double)(state >> 11) / 4503599627370496.0 - 1.0);
		json_array_append_new(bench->array, json_real((double)bench->numbers[i]));
	}
	if (!json_writer_open(&bench->writer, NUMBERS * NUMBER_TEXT_MAX + 3, 0, NULL))
		fail("no memory");
	write_ours(bench);
	bench->text = bench->body + strlen(field);
	bench->text_length = bench->writer.length;
	bench->body_length = (size_t)snprintf(bench->body, sizeof(bench->body), "%s%.*s}", field,
	                                      (int)bench->writer.length, bench->writer.text);
}

static void scan_ours(void *arg)
{
	static const struct json_rule rule = {"/query", JSON_FLOATS};
	static const struct json_limits limits = {.elements = NUMBERS, .envelope = 4096};
	struct codec_bench *bench = arg;
	struct json_scan scan;
	struct problem problem = {.code = PROBLEM_NONE};
	if (!json_scan(bench->body, bench->body_length, &rule, 1, &limits, NULL, &scan, &problem) ||
	    scan.arrays[0].count != NUMBERS)
		fail("json_scan refused its own text");
	json_scan_clear(&scan);
}

static void scan_jansson(void *arg)
{
	struct codec_bench *bench = arg;
	json_t *array = json_loadb(bench->text, bench->text_length, 0, NULL);
	if (array == NULL)
		fail("jansson refused the text");
	json_decref(array);
}

static void write_jansson(void *arg)
{
	struct codec_bench *bench = arg;
	if (json_dumpb(bench->array, bench->out, sizeof(bench->out), JSON_COMPACT | JSON_REAL_PRECISION(9)) >
	    sizeof(bench->out))
		fail("jansson's text is larger than thought");
}

static void scan_each(void *arg)
{
	struct codec_bench *bench = arg;
	const char *at = bench->text, *end = bench->text + bench->text_length;
	float number;
	for (size_t i = 0; i < NUMBERS; i++) {
		if (number_scan(at + 1, end, &number, &at) != NUMBER_OK)
			fail("number_scan refused its own text");
	}
}

static void print_each(void *arg)
{
	struct codec_bench *bench = arg;
	char *at = bench->out;
	for (size_t i = 0; i < NUMBERS; i++) {
		at += number_print_shortest(bench->numbers[i], at);
		*at++ = ',';
	}
}

static void print_four_digits(void *arg)
{
	struct codec_bench *bench = arg;
	bench->writer.precision = 4;
	write_ours(bench);
	bench->writer.precision = 0;
}

int main(void)
{
	static struct codec_bench bench;
	fill(&bench);
	struct bench_case cases[] = {
	    {scan_ours, &bench, NUMBERS, {0}},        {scan_jansson, &bench, NUMBERS, {0}},
	    {write_ours, &bench, NUMBERS, {0}},       {write_jansson, &bench, NUMBERS, {0}},
	    {scan_each, &bench, NUMBERS, {0}},        {print_each, &bench, NUMBERS, {0}},
	    {print_four_digits, &bench, NUMBERS, {0}}};
	bench_interleave(cases, sizeof(cases) / sizeof(cases[0]));
	printf("codec: %d random float32, %.1f bytes each as shortest text, one thread\n", NUMBERS,
	       (double)bench.text_length / NUMBERS);
	bench_row("json_scan of a tensor, a number", 1e9 * bench_seconds(&cases[0]), "ns");
	bench_row("json_loadb, a number", 1e9 * bench_seconds(&cases[1]), "ns");
	bench_row_at_least("jansson / ours, reading", bench_ratio(&cases[1], &cases[0]), TARGET_READING);
	bench_row("json_writer_tensor, shortest, a number", 1e9 * bench_seconds(&cases[2]), "ns");
	bench_row("json_dumpb with 9 digits, a number", 1e9 * bench_seconds(&cases[3]), "ns");
	bench_row_at_least("jansson / ours, writing", bench_ratio(&cases[3], &cases[2]), TARGET_WRITING);
	bench_row("json_writer_tensor with 4 digits, a number", 1e9 * bench_seconds(&cases[6]), "ns");
	bench_row("number_scan alone, a number", 1e9 * bench_seconds(&cases[4]), "ns");
	bench_row("number_print_shortest alone, a number", 1e9 * bench_seconds(&cases[5]), "ns");
	free(bench.writer.text);
	json_decref(bench.array);
	return 0;
}
