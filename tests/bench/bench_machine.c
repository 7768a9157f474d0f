/*
 * What computes here: processor, its vector features, the BLAS core and how BLAS was built; then the ceiling,
 * the rate of bare fused multiply-adds and that of the products a layer of width 256 makes.
 */
#include "bench.h"

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

#define CHAINS 12 /* enough to hide the latency of each */
#define STEPS 4096

#if defined(__x86_64__)
/* STEPS multiply-adds in each of CHAINS vectors, held in registers: every loop over them is unrolled. */
#define EACH_CHAIN _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++)
#define MULTIPLY_ADDS(name, feature, bytes)                                                                  \
	__attribute__((target(feature))) static void name(void *arg)                                         \
	{                                                                                                    \
		typedef float vector __attribute__((vector_size(bytes)));                                    \
		vector chains[CHAINS], factor = {0.5f};                                                      \
		EACH_CHAIN                                                                                   \
		chains[i] = factor;                                                                          \
		for (int step = 0; step < STEPS; step++) {                                                   \
			EACH_CHAIN                                                                           \
			{                                                                                    \
				chains[i] = chains[i] * factor + factor;                                     \
				__asm__ volatile("" : "+x"(chains[i]));                                      \
			}                                                                                    \
		}                                                                                            \
		EACH_CHAIN                                                                                   \
		*(float *)arg += chains[i][0];                                                               \
	}
MULTIPLY_ADDS(multiply_adds_256, "avx2,fma", 32)
MULTIPLY_ADDS(multiply_adds_512, "avx512f", 64)

static void print_multiply_adds(void)
{
	float sink = 0;
	struct bench_case item = {NULL, &sink, 1, {0}};
	double width = 0;
	if (__builtin_cpu_supports("avx512f")) {
		item.run = multiply_adds_512;
		width = 16;
	} else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
		item.run = multiply_adds_256;
		width = 8;
	}
	if (item.run == NULL)
		return;
	bench_interleave(&item, 1);
	bench_row("bare fused multiply-adds, one thread",
	          2e-9 * CHAINS * STEPS * width / bench_seconds(&item), "GFLOP/s");
}
#else
static void print_multiply_adds(void)
{
	bench_row("bare fused multiply-adds: not measured on this architecture", 0, "GFLOP/s");
}
#endif

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
	print_product(16, 256, 768);
	print_product(512, 256, 768);
	print_product(1024, 1024, 1024);
	return 0;
}
