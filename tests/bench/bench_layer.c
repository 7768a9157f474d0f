/*
 * One layer of a model: what it costs over the bare BLAS calls of its shape, and what stacking sequences
 * saves.
 *
 *   bench_layer MODEL_DIRECTORY LENGTH
 */
#include "bench.h"

#include "attn.h"

#include <cblas.h>
#include <stdint.h>
#include <string.h>

#define BATCH 32

struct layer_bench {
	const attn_layer *layer;
	attn_kernels *kernels;
	attn_executor executor;
	attn_options options;
	size_t length, width;
	attn_layer_sequence sequences[BATCH];
	size_t count; /* sequences of a call */
};

static void run_layer(void *arg)
{
	struct layer_bench *bench = arg;
	attn_arena_mark mark = attn_arena_here(bench->executor.scratch);
	bench_check(attn_layer_run(bench->kernels, &bench->executor, bench->layer, bench->length,
	                           bench->length, 0, &bench->options, bench->sequences, bench->count),
	            "attn_layer_run");
	attn_arena_rewind(bench->executor.scratch, mark);
}

/* The products of the same shape and nothing else: no softmax, no bias, no masks. */
struct bare_bench {
	int length, width, heads;
	float *input, *packed, *projected, *scores, *context, *out_weight, *output;
};

static void run_bare(void *arg)
{
	const struct bare_bench *bare = arg;
	int length = bare->length, width = bare->width, head = width / bare->heads;
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, length, 3 * width, width, 1, bare->input,
	            width, bare->packed, 3 * width, 0, bare->projected, 3 * width);
	for (int h = 0; h < bare->heads; h++) {
		const float *query = bare->projected + h * head, *key = query + width, *value = key + width;
		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, length, length, head, 1, query,
		            3 * width, key, 3 * width, 0, bare->scores, length);
		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, length, head, length, 1, bare->scores,
		            length, value, 3 * width, 0, bare->context + h * head, width);
	}
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, length, width, width, 1, bare->context, width,
	            bare->out_weight, width, 0, bare->output, width);
}

static struct bare_bench bare_new(size_t length, size_t width, size_t heads)
{
	return (struct bare_bench){.length = (int)length,
	                           .width = (int)width,
	                           .heads = (int)heads,
	                           .input = bench_random_floats(length * width),
	                           .packed = bench_random_floats(3 * width * width),
	                           .projected = bench_random_floats(3 * length * width),
	                           .scores = bench_random_floats(length * length),
	                           .context = bench_random_floats(length * width),
	                           .out_weight = bench_random_floats(width * width),
	                           .output = bench_random_floats(length * width)};
}

static void bare_clear(struct bare_bench *bare)
{
	float *const all[] = {bare->input,   bare->packed,     bare->projected, bare->scores,
	                      bare->context, bare->out_weight, bare->output};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		free(all[i]);
}

static void sequences_new(struct layer_bench *bench)
{
	memset(bench->sequences, 0, sizeof(bench->sequences));
	for (size_t i = 0; i < BATCH; i++) {
		attn_layer_sequence *sequence = &bench->sequences[i];
		sequence->query = bench_random_floats(bench->length * bench->width);
		sequence->key = sequence->query;
		sequence->value = sequence->query;
		sequence->output = bench_random_floats(bench->length * bench->width);
		sequence->attend.key_length = bench->length;
	}
}

static void report(struct bench_case *alone, struct bench_case *bare, struct bench_case *batch)
{
	bench_row("bare BLAS calls, a sequence", 1e6 * bench_seconds(bare), "us");
	bench_row("layer, one sequence a call", 1e6 * bench_seconds(alone), "us");
	bench_row_at_most("layer alone / bare BLAS calls", bench_ratio(alone, bare), 1.3);
	bench_row("layer, 32 sequences a call, a sequence", 1e6 * bench_seconds(batch), "us");
	bench_row("alone / in a batch of 32, compute a sequence", bench_ratio(alone, batch), "times");
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: bench_layer MODEL_DIRECTORY LENGTH\n");
		return 2;
	}
	static struct layer_bench bench, stacked;
	attn_model *model = NULL;
	attn_error err = {0};
	bench_check(attn_kernels_new(attn_kernels_list(0), &bench.kernels), "kernels");
	bench_check(attn_kernels_self_check(bench.kernels, 1, &err), err.message);
	bench_check(attn_model_open(argv[1], bench.kernels, &model, &err), err.message);
	bench.layer = attn_model_layer(model, 0, ATTN_SELF);
	bench.options = attn_options_default(bench.layer->head_width);
	bench.executor = attn_executor_serial(attn_arena_new(64u << 20));
	bench.length = strtoul(argv[2], NULL, 10);
	bench.width = attn_model_info_of(model).width;
	sequences_new(&bench);
	stacked = bench;
	bench.count = 1;
	stacked.count = BATCH;
	struct bare_bench bare = bare_new(bench.length, bench.width, bench.layer->heads);

	struct bench_case cases[] = {
	    {run_layer, &bench, 1, {0}}, {run_bare, &bare, 1, {0}}, {run_layer, &stacked, BATCH, {0}}};
	bench_interleave(cases, 3);
	printf("layer: width %zu, %zu heads, length %zu, one thread, kernels %s\n", bench.width,
	       bench.layer->heads, bench.length, attn_kernels_name(bench.kernels));
	report(&cases[0], &cases[1], &cases[2]);

	bare_clear(&bare);
	for (size_t i = 0; i < BATCH; i++) {
		free((void *)(uintptr_t)bench.sequences[i].query);
		free(bench.sequences[i].output);
	}
	attn_arena_free(bench.executor.scratch);
	attn_kernels_free(bench.kernels);
	attn_model_free(model);
	return 0;
}
