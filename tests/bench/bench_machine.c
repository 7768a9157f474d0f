/*
 * What computes here: processor, its vector features, the BLAS core and how BLAS was built; then the ceiling,
 * the rates of bare fused multiply-adds and of reading memory, and that of the products a layer of width 256
 * makes.
 */
#include "bench.h"
#include "ceiling.h"

#include "attn.h"

#include <cblas.h>
#include <string.h>
#include <unistd.h>

static void print_cpu(void)
{
	static const char *const telling[] = {" avx ",     " avx2 ",        " fma ",     " f16c ",
	                                      " avx512f ", " avx512_bf16 ", " amx_tile "};
	char line[8192], model[256] = "unknown";
	FILE *file = fopen("/proc/cpuinfo", "r");
	if (file == NULL)
		return;
	while (fgets(line, sizeof(line), file) != NULL && strncmp(line, "flags", 5) != 0)
		sscanf(line, "model name : %255[^\n]", model);
	fclose(file);
	printf("machine: %s, %ld CPUs online, features", model, sysconf(_SC_NPROCESSORS_ONLN));
	line[strcspn(line, "\n")] = ' ';
	for (size_t i = 0; i < sizeof(telling) / sizeof(telling[0]); i++) {
		if (strstr(line, telling[i]) != NULL)
			printf("%.*s", (int)strlen(telling[i]) - 1, telling[i]);
	}
	printf("\n  BLAS core %s, %s\n", attn_blas_core(), attn_blas_config());
}

static void print_multiply_adds(void)
{
	struct bench_case item = ceiling_multiply_adds();
	if (item.run == NULL)
		return;
	bench_interleave(&item, 1);
	bench_row("bare fused multiply-adds, one thread", 1e-9 / bench_seconds(&item), "GFLOP/s");
}

static void print_reading(void)
{
	struct ceiling_memory memory = ceiling_memory_new();
	struct bench_case item = ceiling_reading(&memory);
	bench_interleave(&item, 1);
	bench_row("reading memory beyond the caches, one thread", 1e-9 / bench_seconds(&item), "GB/s");
	free(memory.numbers);
}

struct product {
	int m, k, n;
	float *a, *b, *c;
};

static void run_product(void *arg)
{
	const struct product *p = arg;
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, p->m, p->n, p->k, 1, p->a, p->k, p->b, p->n, 0,
	            p->c, p->n);
}

static void print_product(int m, int k, int n)
{
	struct product product = {m, k, n, NULL, NULL, NULL};
	product.a = calloc((size_t)m * (size_t)k, sizeof(float));
	product.b = calloc((size_t)k * (size_t)n, sizeof(float));
	product.c = calloc((size_t)m * (size_t)n, sizeof(float));
	if (product.a != NULL && product.b != NULL && product.c != NULL) {
		struct bench_case item = {run_product, &product, 2.0 * m * k * n, {0}};
		char name[64];
		bench_interleave(&item, 1);
		snprintf(name, sizeof(name), "BLAS product [%d,%d] [%d,%d], one thread", m, k, k, n);
		bench_row(name, 1e-9 / bench_seconds(&item), "GFLOP/s");
	}
	free(product.a);
	free(product.b);
	free(product.c);
}

int main(void)
{
	print_cpu();
	print_multiply_adds();
	print_reading();
	print_product(16, 256, 768);
	print_product(512, 256, 768);
	print_product(1024, 1024, 1024);
	return 0;
}
