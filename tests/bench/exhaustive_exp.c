/*
 * Compares the exponential inside the softmax of the first kernel set that has attention of its own with the
 * C library's, in double, for every float32 from -0 down to where it is 0: at most 2 units in the last place.
 * Some minutes long. Exit status 1 when one is off. Arguments, both optional: first and last upper 16 bits.
 */
#include "attention_kernels.h"
#include "kernels.h"

#include <inttypes.h>
#include <math.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LANES ((size_t)512)

/* Units in the last place of the wanted value; subnormals count in their own unit. */
static double ulps(float found, double wanted)
{
	int exponent = 0;
	frexp(wanted, &exponent);
	return fabs((double)found - wanted) / ldexp(1, (exponent > -125 ? exponent : -125) - 24);
}

/* Worst of the LANES patterns from bits on. */
static double lanes_worst(const struct attn_attention_kernels *kernels, uint32_t bits)
{
	alignas(64) float row[LANES];
	float asked[LANES], maximum = 0;
	double sum = 0, worst = 0;
	for (size_t i = 0; i < LANES; i++, bits++)
		memcpy(&asked[i], &bits, sizeof bits);
	memcpy(row, asked, sizeof row);
	kernels->softmax(&(struct attn_softmax_panel){row, LANES, 1, LANES, 0, &maximum, &sum});
	for (size_t i = 0; i < LANES; i++) {
		double off = ulps(row[i], exp((double)asked[i]));
		worst = off > worst ? off : worst;
	}
	return worst;
}

int main(int argc, char **argv)
{
	const uint64_t first = (argc > 1 ? strtoull(argv[1], NULL, 0) : 0x8000) << 16;
	const uint64_t last = (argc > 2 ? strtoull(argv[2], NULL, 0) : 0xc2ff) << 16 | 0xffff;
	attn_kernels *kernels = NULL;
	double worst = 0;
	if (attn_kernels_new(attn_kernels_list(0), &kernels) != ATTN_OK || kernels->attention == NULL) {
		printf("no kernel set with attention of its own on this CPU\n");
		attn_kernels_free(kernels);
		return EXIT_SUCCESS;
	}
	for (uint64_t bits = first; bits <= last; bits += LANES) {
		double off = lanes_worst(kernels->attention, (uint32_t)bits);
		if (off > 2)
			printf("off by %g units from pattern %08" PRIx64 " on\n", off, bits);
		worst = off > worst ? off : worst;
	}
	printf("%" PRIu64 " patterns, at most %g units in the last place off\n", last - first + 1, worst);
	attn_kernels_free(kernels);
	return worst <= 2 ? EXIT_SUCCESS : EXIT_FAILURE;
}
