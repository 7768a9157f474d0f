/* Numbers from text and back, ours against jansson's, on the same random float32 in [-1, 1]. */
#include "bench.h"

#include "codec/numbers.h"

#include <jansson.h>
#include <stdint.h>
#include <string.h>

#define NUMBERS 20000

struct codec_bench {
	float numbers[NUMBERS];
	json_t *array;                            /* the same numbers */
	char text[NUMBERS * NUMBER_TEXT_MAX + 2]; /* "[0.5,...]" */
	size_t length;
	char out[NUMBERS * 32];
};

static void fail(const char *what)
{
	fprintf(stderr, "bench_codec: %s\n", what);
	exit(1);
}

static void fill(struct codec_bench *bench)
{
	uint64_t state = 1;
	bench->array = json_array();
	bench->text[bench->length++] = '[';
	for (size_t i = 0; i < NUMBERS; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		bench->numbers[i] = (float)((double)(state >> 11) / 4503599627370496.0 - 1.0);
		json_array_append_new(bench->array, json_real((double)bench->numbers[i]));
		bench->length += number_print_shortest(bench->numbers[i], bench->text + bench->length);
		bench->text[bench->length++] = i + 1 < NUMBERS ? ',' : ']';
	}
}

static void scan_ours(void *arg)
{
	struct codec_bench *bench = arg;
	const char *at = bench->text, *end = bench->text + bench->length;
	for (size_t i = 0; i < NUMBERS; i++) {
		if (number_scan(at + 1, end, &bench->numbers[i], &at) != NUMBER_OK)
			fail("number_scan refused its own text");
	}
}

static void scan_jansson(void *arg)
{
	struct codec_bench *bench = arg;
	json_t *array = json_loadb(bench->text, bench->length, 0, NULL);
	if (array == NULL)
		fail("jansson refused the text");
	json_decref(array);
}

static void print_ours(void *arg)
{
	struct codec_bench *bench = arg;
	char *at = bench->out;
	for (size_t i = 0; i < NUMBERS; i++) {
		at += number_print_shortest(bench->numbers[i], at);
		*at++ = ',';
	}
}

static void print_jansson(void *arg)
{
	struct codec_bench *bench = arg;
	if (json_dumpb(bench->array, bench->out, sizeof(bench->out), JSON_COMPACT | JSON_REAL_PRECISION(9)) >
	    sizeof(bench->out))
		fail("jansson's text is larger than thought");
}

int main(void)
{
	static struct codec_bench bench;
	fill(&bench);
	struct bench_case cases[] = {{scan_ours, &bench, NUMBERS, {0}},
	                             {scan_jansson, &bench, NUMBERS, {0}},
	                             {print_ours, &bench, NUMBERS, {0}},
	                             {print_jansson, &bench, NUMBERS, {0}}};
	bench_interleave(cases, 4);
	printf("codec: %d random float32, %.1f bytes each as shortest text, one thread\n", NUMBERS,
	       (double)bench.length / NUMBERS);
	bench_row("number_scan, a number", 1e9 * bench_seconds(&cases[0]), "ns");
	bench_row("json_loadb, a number", 1e9 * bench_seconds(&cases[1]), "ns");
	bench_row("jansson / ours, reading", bench_ratio(&cases[1], &cases[0]), "times");
	bench_row("number_print_shortest, a number", 1e9 * bench_seconds(&cases[2]), "ns");
	bench_row("json_dumpb with 9 digits, a number", 1e9 * bench_seconds(&cases[3]), "ns");
	bench_row("jansson / ours, writing", bench_ratio(&cases[3], &cases[2]), "times");
	json_decref(bench.array);
	return 0;
}
