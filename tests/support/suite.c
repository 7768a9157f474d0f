#include "suite.h"

int suite_run(const char *name, const TTest *const *tests, size_t count)
{
	Suite *suite = suite_create(name);
	for (size_t i = 0; i < count; i++) {
		TCase *tcase = tcase_create(tests[i]->name);
		tcase_set_timeout(tcase, SUITE_TIMEOUT_S);
		tcase_add_test(tcase, tests[i]);
		suite_add_tcase(suite, tcase);
	}
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
