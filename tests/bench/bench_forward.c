/*
 * Our side of a comparison with peers: times a model's forward pass over tokens to the last hidden states,
 * for the shapes it is asked for on standard input, until that ends.
 *
 *   bench_forward MODEL_DIRECTORY
 *
 * The first line of output names the kernels. A line `LENGTH BATCH SECONDS` is answered with the processor
 * seconds of one call of BATCH sequences on one thread, over at least SECONDS of calls.
 */
#include "bench.h"

#include "attn.h"

#include <string.h>

#define MAX_BATCH 64

struct model_bench {
	attn_model *model;
	attn_kernels *kernels;
	attn_executor executor;
	attn_forward_call call;
	size_t batch, layers;
	int64_t *tokens;           /* [length], the same for every sequence */
	float *outputs[MAX_BATCH]; /* each [length, width] */
	float **hidden;            /* [batch, layers + 1], all but the last of a row NULL */
	attn_forward_sequence sequences[MAX_BATCH];
};

static void run_forward(void *arg)
{
	struct model_bench *bench = arg;
	attn_arena_mark mark = attn_arena_here(bench->executor.scratch);
	attn_status status = attn_model_forward(bench->model, bench->kernels, &bench->executor, &bench->call,
	                                        bench->sequences, bench->batch);
	bench_check(status, "attn_model_forward");
	attn_arena_rewind(bench->executor.scratch, mark);
}

static void shape_clear(struct model_bench *bench)
{
	for (size_t i = 0; i < bench->batch; i++)
		free(bench->outputs[i]);
	free(bench->tokens);
	free(bench->hidden);
	bench->batch = 0;
}

static void shape_set(struct model_bench *bench, size_t length, size_t batch)
{
	const attn_model_info info = attn_model_info_of(bench->model);
	shape_clear(bench);
	bench->call.lengths[0] = length;
	bench->batch = batch;
	bench->tokens = calloc(length, sizeof(int64_t));
	bench->hidden = calloc(batch * (bench->layers + 1), sizeof(float *));
	if (bench->tokens == NULL || bench->hidden == NULL)
		bench_check(ATTN_MEMORY, "sequences");
	for (size_t i = 0; i < length; i++)
		bench->tokens[i] = (int64_t)(i * 7919 % info.vocabulary);
	for (size_t i = 0; i < batch; i++) {
		float **hidden = bench->hidden + i * (bench->layers + 1);
		bench->outputs[i] = bench_random_floats(length * info.stacks[0].width);
		hidden[bench->layers] = bench->outputs[i];
		memset(&bench->sequences[i], 0, sizeof(bench->sequences[i]));
		bench->sequences[i].stacks[0] =
		    (attn_forward_stack){.tokens = bench->tokens, .hidden = hidden};
	}
}

/* Answers lines until there are no more. */
static void serve(struct model_bench *bench)
{
	char line[128];
	while (fgets(line, sizeof(line), stdin) != NULL) {
		size_t length, batch;
		double least;
		if (sscanf(line, "%zu %zu %lf", &length, &batch, &least) != 3 || batch > MAX_BATCH)
			bench_check(ATTN_INVALID, line);
		if (length != bench->call.lengths[0] || batch != bench->batch) {
			shape_set(bench, length, batch);
			run_forward(bench);
		}
		struct bench_case item = {run_forward, bench, 1, {0}};
		printf("%.9g forward\n", bench_time_by(bench_now, &item, least));
		fflush(stdout);
	}
	shape_clear(bench);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: bench_forward MODEL_DIRECTORY\n");
		return 2;
	}
	static struct model_bench bench;
	attn_error err = {0};
	bench_check(attn_kernels_new(attn_kernels_list(0), &bench.kernels), "kernels");
	bench_check(attn_kernels_self_check(bench.kernels, 1, &err), err.message);
	bench_check(attn_model_open(argv[1], bench.kernels, &bench.model, &err), err.message);
	bench.executor = attn_executor_serial(attn_arena_new((size_t)256 << 20));
	bench.layers = attn_model_info_of(bench.model).stacks[0].layers;
	printf("attnd, kernels %s\n", attn_kernels_name(bench.kernels));
	fflush(stdout);
	serve(&bench);
	attn_arena_free(bench.executor.scratch);
	attn_model_free(bench.model);
	attn_kernels_free(bench.kernels);
	return 0;
}
