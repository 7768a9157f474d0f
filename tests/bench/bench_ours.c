/*
 * Our side of a comparison with peers: times the layer it is asked for on standard input, until that ends.
 *
 *   bench_ours MODEL_DIRECTORY
 *
 * The first line of output names the kernels. A line `LENGTH WEIGHTS SECONDS` (WEIGHTS 1: per-head weights
 * are results too) is answered with the processor seconds of one run on one thread, over at least SECONDS of
 * runs; with a fourth word, THREADS, with the wall seconds of one run on so many threads.
 */
#include "bench.h"
#include "crew.h"

#include "attn.h"

#include <string.h>

struct ours {
	const attn_layer *layer;
	const attn_kernels *kernels;
	attn_options options;
	struct crew *crew;
	attn_executor *executor;
	size_t length, width;
	attn_layer_sequence sequence; /* of `length`; its tensors belong to it */
	float *input;
};

static void run_layer(void *arg)
{
	struct ours *ours = arg;
	attn_executor *executor = ours->executor;
	attn_arena_mark mark = attn_arena_here(executor->scratch);
	attn_status status = attn_layer_run(ours->kernels, executor, ours->layer, ours->length, ours->length,
	                                    0, &ours->options, &ours->sequence, 1);
	bench_check(status, "attn_layer_run");
	attn_arena_rewind(executor->scratch, mark);
}

static void sequence_clear(struct ours *ours)
{
	free(ours->input);
	free(ours->sequence.output);
	free(ours->sequence.attend.weights);
	memset(&ours->sequence, 0, sizeof(ours->sequence));
	ours->input = NULL;
}

static void sequence_new(struct ours *ours, size_t length, bool weights)
{
	sequence_clear(ours);
	ours->length = length;
	ours->input = bench_random_floats(length * ours->width);
	ours->sequence = (attn_layer_sequence){.query = ours->input,
	                                       .key = ours->input,
	                                       .value = ours->input,
	                                       .output = bench_random_floats(length * ours->width),
	                                       .attend.key_length = length};
	if (weights)
		ours->sequence.attend.weights = bench_random_floats(ours->layer->heads * length * length);
}

static void answer(struct ours *ours, size_t threads, double least)
{
	attn_executor serial = attn_executor_serial(crew_executor(ours->crew)->scratch);
	struct bench_case item = {run_layer, ours, 1, {0}};
	ours->executor = threads < 2 ? &serial : crew_executor(ours->crew);
	printf("%.9g layer\n", bench_time_by(threads == 0 ? bench_now : bench_wall, &item, least));
	fflush(stdout);
}

static void serve(struct ours *ours)
{
	char line[128];
	bool had_weights = false;
	while (fgets(line, sizeof(line), stdin) != NULL) {
		size_t length, threads = 0;
		int weights;
		double least;
		if (sscanf(line, "%zu %d %lf %zu", &length, &weights, &least, &threads) < 3 || threads > 2)
			bench_check(ATTN_INVALID, line);
		if (length != ours->length || (weights != 0) != had_weights) {
			sequence_new(ours, length, weights != 0);
			ours->executor = crew_executor(ours->crew);
			run_layer(ours);
		}
		had_weights = weights != 0;
		answer(ours, threads, least);
	}
	sequence_clear(ours);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: bench_ours MODEL_DIRECTORY\n");
		return 2;
	}
	static struct ours ours;
	attn_kernels *kernels = NULL;
	attn_model *model = NULL;
	attn_error err = {0};
	bench_check(attn_kernels_new(attn_kernels_list(0), &kernels), "kernels");
	bench_check(attn_kernels_self_check(kernels, 1, &err), err.message);
	bench_check(attn_model_open(argv[1], kernels, &model, &err), err.message);
	ours.kernels = kernels;
	ours.layer = attn_model_layer(model, 0, ATTN_SELF);
	ours.options = attn_options_default(ours.layer->head_width);
	ours.width = attn_model_info_of(model).width;
	ours.crew = crew_new();
	printf("attnd, kernels %s\n", attn_kernels_name(kernels));
	fflush(stdout);
	serve(&ours);
	crew_free(ours.crew);
	attn_model_free(model);
	attn_kernels_free(kernels);
	return 0;
}
