/*
 * kernel_sets.h - runs one test on every kernel set that this CPU can run, and on the templates of AVX-512.
 *
 *   static void rule_15_one_key_weighs_one(attn_kernels *kernels) { ... }
 *   ON_EACH_SET(rule_15_one_key_weighs_one)
 *   SUITE_MAIN("attention", EACH_SET(rule_15_one_key_weighs_one))
 */
#ifndef ATTND_TESTS_KERNEL_SETS_H
#define ATTND_TESTS_KERNEL_SETS_H

#include "attn.h"
#include "suite.h"
#include "wide_kernels.h"

#include <string.h>

/* Whether large shapes take it too long. */
static inline bool kernel_set_is_slow(const attn_kernels *kernels)
{
	const char *name = attn_kernels_name(kernels);
	return strcmp(name, "reference") == 0 || strcmp(name, "wide") == 0;
}

static inline void kernel_set_run(const char *name, void (*test)(attn_kernels *kernels))
{
	attn_kernels *kernels = NULL;
	attn_status status = ATTN_OK;
	if (strcmp(name, "wide") == 0)
		kernels = wide_kernels_new();
	else
		status = attn_kernels_new(name, &kernels);
	if (status == ATTN_UNSUPPORTED) {
		suite_skip("this CPU cannot run these kernels");
		return;
	}
	ck_assert_int_eq(status, ATTN_OK);
	ck_assert_ptr_nonnull(kernels);
	test(kernels);
	attn_kernels_free(kernels);
}

#define ON_SET(rule, set)                                                                                    \
	START_TEST(rule##_on_##set)                                                                          \
	{                                                                                                    \
		kernel_set_run(#set, rule);                                                                  \
	}                                                                                                    \
	END_TEST

#define ON_EACH_SET(rule) ON_SET(rule, native) ON_SET(rule, wide) ON_SET(rule, blas) ON_SET(rule, reference)

#define EACH_SET(rule) rule##_on_native, rule##_on_wide, rule##_on_blas, rule##_on_reference

#endif
