/*
 * Attention alone, 12 heads of width 64 in rows of 3 * 768 numbers as a projection leaves them, on one
 * thread: with and without weights, against the rate of bare multiply-adds; causal against full; one query
 * against many keys, against the rate at which this machine reads memory; two threads against one.
 */
#include "bench.h"
#include "ceiling.h"
#include "crew.h"

#include "attn.h"

#include <string.h>

#define HEADS ((size_t)12)
#define WIDTH ((size_t)64)
#define EMBEDDING (HEADS * WIDTH)

struct attention {
	attn_kernels *kernels;
	attn_executor *executor;
	attn_shape shape;
	attn_options options;
	attn_sequence sequence;
	float *inputs, *weights; /* [length, 3, heads, width], [heads, queries, keys] */
};

static void run_attention(void *arg)
{
	struct attention *attention = arg;
	attn_arena_mark mark = attn_arena_here(attention->executor->scratch);
	bench_check(attn_attend(attention->kernels, attention->executor, &attention->shape,
	                        &attention->options, &attention->sequence, 1),
	            "attn_attend");
	attn_arena_rewind(attention->executor->scratch, mark);
}

/* The last queries of keys positions. Long ones have fewer heads, so that weights fit in memory. */
static struct attention attention_new(attn_kernels *kernels, attn_executor *executor, size_t queries,
                                      size_t keys)
{
	const size_t heads = queries >= 2048 ? HEADS / 4 : HEADS;
	struct attention attention = {
	    .kernels = kernels,
	    .executor = executor,
	    .shape = {.heads = heads,
	              .kv_heads = heads,
	              .queries = queries,
	              .keys = keys,
	              .head_width = WIDTH,
	              .value_width = WIDTH},
	    .options = attn_options_default(WIDTH),
	    .inputs = bench_random_floats(keys * 3 * EMBEDDING),
	    .weights = bench_random_floats(heads * queries * keys),
	};
	const float *first = attention.inputs + (keys - queries) * 3 * EMBEDDING;
	attention.sequence = (attn_sequence){
	    .query = {first, WIDTH, 3 * EMBEDDING},
	    .key = {attention.inputs + EMBEDDING, WIDTH, 3 * EMBEDDING},
	    .value = {attention.inputs + 2 * EMBEDDING, WIDTH, 3 * EMBEDDING},
	    .key_length = keys,
	    .context = bench_random_floats(queries * EMBEDDING),
	    .context_head_stride = WIDTH,
	    .context_row_stride = EMBEDDING,
	};
	return attention;
}

static void attention_clear(struct attention *attention)
{
	free(attention->inputs);
	free(attention->weights);
	free(attention->sequence.context);
}

static double flops(const attn_shape *shape)
{
	return 4.0 * (double)shape->heads * (double)shape->queries * (double)shape->keys * (double)WIDTH;
}

static void report_rate(const char *what, const attn_shape *shape, const struct bench_case *item,
                        const struct bench_case *peak)
{
	char name[96];
	const double rate = 1e-9 / bench_seconds(item);
	if (peak->run == NULL)
		snprintf(name, sizeof(name), "length %zu, %s", shape->keys, what);
	else
		snprintf(name, sizeof(name), "length %zu, %s (%.0f%% of bare multiply-adds)", shape->keys,
		         what, 100 * bench_ratio(peak, item));
	bench_row(name, rate, "GFLOP/s");
}

static void bench_length(attn_kernels *kernels, attn_executor *executor, size_t length)
{
	struct attention bare = attention_new(kernels, executor, length, length);
	struct attention weighted = bare;
	weighted.sequence.weights = weighted.weights;
	struct bench_case cases[] = {{run_attention, &bare, flops(&bare.shape), {0}},
	                             {run_attention, &weighted, flops(&bare.shape), {0}},
	                             ceiling_multiply_adds()};
	bench_interleave(cases, cases[2].run == NULL ? 2 : 3);
	report_rate("context", &bare.shape, &cases[0], &cases[2]);
	report_rate("context and weights", &bare.shape, &cases[1], &cases[2]);
	attention_clear(&bare);
}

static void bench_causal(attn_kernels *kernels, attn_executor *executor)
{
	struct attention full = attention_new(kernels, executor, 2048, 2048);
	struct attention causal = full;
	causal.options.causal = ATTN_CAUSAL_BOTTOM_RIGHT;
	struct bench_case cases[] = {{run_attention, &causal, 1, {0}}, {run_attention, &full, 1, {0}}};
	bench_interleave(cases, 2);
	bench_row_at_most("length 2048, causal / full", bench_ratio(&cases[0], &cases[1]), 0.65);
	attention_clear(&full);
}

/* One query, keys and values of each head together as a cache has them. */
static void bench_decode(attn_kernels *kernels, attn_executor *executor, size_t kv_heads)
{
	enum { KEYS = 16384 };
	struct attention decode = attention_new(kernels, executor, 1, KEYS);
	decode.shape.kv_heads = kv_heads;
	float *key = bench_random_floats(kv_heads * KEYS * WIDTH);
	float *value = bench_random_floats(kv_heads * KEYS * WIDTH);
	decode.sequence.key = (attn_heads){key, KEYS * WIDTH, WIDTH};
	decode.sequence.value = (attn_heads){value, KEYS * WIDTH, WIDTH};
	struct ceiling_memory memory = ceiling_memory_new();
	const double bytes = 2.0 * (double)(kv_heads * KEYS * WIDTH * sizeof(float));
	struct bench_case cases[] = {{run_attention, &decode, bytes, {0}}, ceiling_reading(&memory)};
	bench_interleave(cases, 2);
	char name[96];
	snprintf(name, sizeof(name), "1 query, %d keys, %zu of 12 heads have them: share of reading", KEYS,
	         kv_heads);
	bench_row_at_least(name, bench_ratio(&cases[1], &cases[0]), 0.7);
	free(memory.numbers);
	free(key);
	free(value);
	attention_clear(&decode);
}

/* Wall time, in turn: the median of the ratios. */
static void bench_two(attn_kernels *kernels, attn_executor *executor, size_t length)
{
	struct crew *crew = crew_new();
	struct attention alone = attention_new(kernels, executor, length, length), two = alone;
	two.executor = crew_executor(crew);
	double ratios[BENCH_ROUNDS];
	for (size_t round = 0; round < BENCH_ROUNDS; round++) {
		const double begun = bench_wall();
		run_attention(&alone);
		const double between = bench_wall();
		run_attention(&two);
		ratios[round] = (between - begun) / (bench_wall() - between);
	}
	char name[64];
	snprintf(name, sizeof(name), "length %zu, one thread / two, wall time", length);
	bench_row_at_least(name, bench_median(ratios), 1.8);
	attention_clear(&alone);
	crew_free(crew);
}

int main(int argc, char **argv)
{
	static const size_t LENGTHS[] = {16, 32, 128, 512, 1024, 2048, 4096};
	const char *set = argc > 1 ? argv[1] : attn_kernels_list(0);
	attn_kernels *kernels = NULL;
	bench_check(attn_kernels_new(set, &kernels), set);
	attn_executor executor = attn_executor_serial(attn_arena_new((size_t)64 << 20));
	printf("attention: 12 heads of width 64, kernels %s\n", set);
	for (size_t i = 0; i < sizeof(LENGTHS) / sizeof(LENGTHS[0]); i++)
		bench_length(kernels, &executor, LENGTHS[i]);
	bench_causal(kernels, &executor);
	bench_decode(kernels, &executor, HEADS);
	bench_decode(kernels, &executor, 3);
	bench_two(kernels, &executor, 128);
	bench_two(kernels, &executor, 512);
	bench_two(kernels, &executor, 1024);
	attn_arena_free(executor.scratch);
	attn_kernels_free(kernels);
	return 0;
}
