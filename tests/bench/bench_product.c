/*
 * The product of rows with packed weights [768, 2304], the projections of a layer of width 768, on one
 * thread: against OpenBLAS and the rate of bare multiply-adds; with few rows and weights in no cache, against
 * the rate at which this machine reads memory; two threads against one.
 */
#include "bench.h"
#include "ceiling.h"
#include "crew.h"

#include "attn.h"
#include "linear.h"
#include "packed.h"

#include <cblas.h>
#include <string.h>

#define IN ((size_t)768)
#define OUT ((size_t)2304)
#define MOST_ROWS ((size_t)512)
#define COPIES ((size_t)24) /* of the weights: more than caches hold */

struct product {
	const attn_kernels *kernels;
	attn_executor *executor;
	attn_linear linears[COPIES];
	size_t copies, next; /* those that are used in turn */
	size_t rows;
	float *x, *y;
};

static void run_packed(void *arg)
{
	struct product *product = arg;
	const struct attn_linear_call call = {
	    .linear = &product->linears[product->next++ % product->copies],
	    .rows = product->rows,
	    .count = 1,
	    .x = {.data = product->x},
	    .y = {.data = product->y},
	};
	bench_check(attn_linear_run(product->kernels, product->executor, &call, 1), "attn_linear_run");
}

static void run_blas(void *arg)
{
	struct product *product = arg;
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (blasint)product->rows, (blasint)OUT,
	            (blasint)IN, 1, product->x, (blasint)IN, product->linears[0].weight, (blasint)OUT, 0,
	            product->y, (blasint)OUT);
}

/* All copies are packed from one matrix. */
static attn_linear linear_new(const attn_kernels *kernels, const float *weight)
{
	const size_t bytes = attn_packed_bytes(kernels, IN, OUT);
	void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
	if (memory == NULL)
		bench_check(ATTN_MEMORY, "packed weights");
	attn_packed *packed = attn_packed_init(memory, kernels, IN, OUT);
	attn_packed_put(packed, 0, OUT, weight, OUT, ATTN_IN_OUT);
	return (attn_linear){.weight = weight, .in = IN, .out = OUT, .stride = OUT, .packed = packed};
}

static struct product product_new(const attn_kernels *kernels, attn_executor *executor)
{
	struct product product = {
	    .kernels = kernels,
	    .executor = executor,
	    .copies = 1,
	    .x = bench_random_floats(MOST_ROWS * IN),
	    .y = bench_random_floats(MOST_ROWS * OUT),
	};
	const float *weight = bench_random_floats(IN * OUT);
	for (size_t i = 0; i < COPIES; i++)
		product.linears[i] = linear_new(kernels, weight);
	return product;
}

static void product_clear(struct product *product)
{
	free((void *)(uintptr_t)product->linears[0].weight);
	for (size_t i = 0; i < COPIES; i++)
		free((void *)(uintptr_t)product->linears[i].packed);
	free(product->x);
	free(product->y);
}

static void bench_rows(const struct product *product, size_t rows)
{
	struct product packed = *product;
	packed.rows = rows;
	const double flops = 2.0 * (double)(rows * IN * OUT);
	struct bench_case cases[] = {
	    {run_packed, &packed, flops, {0}}, {run_blas, &packed, flops, {0}}, ceiling_multiply_adds()};
	bench_interleave(cases, cases[2].run == NULL ? 2 : 3);
	char name[96];
	snprintf(name, sizeof(name), "%zu rows: %.1f GFLOP/s, OpenBLAS %.1f; times OpenBLAS", rows,
	         1e-9 / bench_seconds(&cases[0]), 1e-9 / bench_seconds(&cases[1]));
	bench_row(name, bench_ratio(&cases[1], &cases[0]), "times");
	if (cases[2].run == NULL)
		return;
	snprintf(name, sizeof(name), "%zu rows: share of bare multiply-adds", rows);
	if (rows >= 16)
		bench_row_at_least(name, bench_ratio(&cases[2], &cases[0]), 0.85);
	else
		bench_row(name, bench_ratio(&cases[2], &cases[0]), "times");
}

static void bench_few_rows(const struct product *product, size_t rows)
{
	struct product packed = *product;
	struct ceiling_memory memory = ceiling_memory_new();
	packed.rows = rows;
	packed.copies = COPIES;
	struct bench_case cases[] = {{run_packed, &packed, (double)(IN * OUT * sizeof(float)), {0}},
	                             ceiling_reading(&memory)};
	bench_interleave(cases, 2);
	char name[96];
	snprintf(name, sizeof(name), "%zu rows, weights in no cache: share of reading memory", rows);
	bench_row_at_least(name, bench_ratio(&cases[1], &cases[0]), 0.7);
	free(memory.numbers);
}

/* Wall time, in turn: the median of the ratios. */
static void bench_two(const struct product *product, size_t rows)
{
	struct crew *crew = crew_new();
	struct product alone = *product, two = *product;
	alone.rows = two.rows = rows;
	two.executor = crew_executor(crew);
	struct bench_case cases[] = {{run_packed, &alone, 1, {0}}, {run_packed, &two, 1, {0}}};
	double ratios[BENCH_ROUNDS];
	for (size_t round = 0; round < BENCH_ROUNDS; round++)
		ratios[round] = bench_time_by(bench_wall, &cases[0], BENCH_SLICE) /
		                bench_time_by(bench_wall, &cases[1], BENCH_SLICE);
	char name[64];
	snprintf(name, sizeof(name), "%zu rows, one thread / two, wall time", rows);
	bench_row_at_least(name, bench_median(ratios), 1.8);
	crew_free(crew);
}

int main(void)
{
	static const size_t ROWS[] = {1, 4, 8, 16, 32, 64, 128, 512};
	attn_kernels *kernels = NULL;
	bench_check(attn_kernels_new(attn_kernels_list(0), &kernels), "kernels");
	printf("products: rows of width 768 by packed weights [768, 2304], kernels %s\n",
	       attn_kernels_name(kernels));
	if (attn_packed_bytes(kernels, IN, OUT) == 0) {
		printf("  not measured: these kernels take no packed weights\n");
		return 0;
	}
	attn_executor executor = attn_executor_serial(attn_arena_new((size_t)1 << 20));
	struct product product = product_new(kernels, &executor);
	for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
		bench_rows(&product, ROWS[i]);
	for (size_t rows = 1; rows <= 4; rows++)
		bench_few_rows(&product, rows);
	bench_two(&product, 128);
	bench_two(&product, 512);
	product_clear(&product);
	attn_arena_free(executor.scratch);
	attn_kernels_free(kernels);
	return 0;
}
