/*
 * suite.h - the frame of a unit test program: START_TEST bodies in one list, one main.
 *
 *   START_TEST(softmax_rows_sum_to_one) { ... } END_TEST
 *   SUITE_MAIN("attention", softmax_rows_sum_to_one, masking_selects)
 *
 * A test's name is the rule it defends. A test that cannot run here calls suite_skip and returns. Results go
 * to the TAP file that CK_TAP_LOG_FILE_NAME names, which tests/support/tally.py reads.
 */
#ifndef ATTND_TESTS_SUITE_H
#define ATTND_TESTS_SUITE_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#define SUITE_TIMEOUT_S 300

/* Says why a test cannot run here, for tally.py to count as skipped. Then return from the test. */
#define suite_skip(reason) printf("SKIPPED %s: %s\n", tcase_name(), (reason))

int suite_run(const char *name, const TTest *const *tests, size_t count);

#define SUITE_MAIN(name, ...)                                                                                \
	int main(void)                                                                                       \
	{                                                                                                    \
		const TTest *const tests[] = {__VA_ARGS__};                                                  \
		return suite_run((name), tests, sizeof(tests) / sizeof(tests[0]));                           \
	}

#endif
