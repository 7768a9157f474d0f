/* What computes here: processor, its vector features, the BLAS core and how BLAS was built. */
#include "attn.h"

#include <stdio.h>
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
	printf("machine   %s, %ld CPUs online\n", model, sysconf(_SC_NPROCESSORS_ONLN));
	printf("features ");
	line[strcspn(line, "\n")] = ' ';
	for (size_t i = 0; i < sizeof(telling) / sizeof(telling[0]); i++) {
		if (strstr(line, telling[i]) != NULL)
			printf("%.*s", (int)strlen(telling[i]) - 1, telling[i]);
	}
	printf("\n");
}

int main(void)
{
	print_cpu();
	printf("BLAS      core %s, %s\n", attn_blas_core(), attn_blas_config());
	return 0;
}
