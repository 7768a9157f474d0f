"""The counter of tests counts what went wrong: a crash, silence and a lost report are failures."""
import subprocess
import sys

import pytest
import suites
import tally

PASSING = "ok 1 - x.c:rule_a:rule_a: Passed\nok 2 - x.c:rule_b:rule_b: Passed\n1..2\n"


def run(script, kind, timeout=20):
    suite = suites.Suite("s", kind, [sys.executable, "-c", script], timeout=timeout)
    return tally.run_suite(suite)


def tap(text, after="", output=""):
    return (f"import os; print({output!r}); open(os.environ['CK_TAP_LOG_FILE_NAME'], 'w').write({text!r}); {after}")


def counts(result):
    return result.passed, len(result.failures), len(result.skips)


def test_a_program_whose_tests_pass_is_counted_by_test():
    assert counts(run(tap(PASSING), "tap")) == (2, 0, 0)


def test_a_failed_test_is_counted_once():
    text = PASSING.replace("ok 2 - x.c:rule_b:rule_b: Passed", "not ok 2 - x.c:rule_b:rule_b: Assertion failed")
    assert counts(run(tap(text, "raise SystemExit(1)"), "tap")) == (1, 1, 0)


def test_a_skipped_test_is_named_with_its_reason():
    result = run(tap(PASSING, output="SKIPPED rule_b: no test data here"), "tap")
    assert counts(result) == (1, 0, 1)
    assert result.skips == ["rule_b: no test data here"]


def test_a_skip_of_no_known_test_fails():
    assert counts(run(tap(PASSING, output="SKIPPED rule_c: why not"), "tap")) == (2, 1, 0)


@pytest.mark.parametrize("script", [
    "import os; os.abort()",
    tap("ok 1 - x.c:rule_a:rule_a: Passed\n"),
    tap("1..0\n"),
    tap(PASSING, "os.abort()"),
    "",
], ids=["crash", "no plan", "no test", "crash after the report", "no report"])
def test_a_program_that_crashes_or_reports_nothing_fails(script):
    assert counts(run(script, "tap"))[1] == 1


def test_a_suite_that_takes_too_long_fails():
    assert counts(run("import threading; threading.Event().wait()", "command", timeout=0.2))[1] == 1


def test_a_program_that_is_not_there_fails():
    assert counts(tally.run_suite(suites.Suite("s", "command", ["./no-such-program"])))[1] == 1


def test_a_command_may_skip_with_a_reason():
    result = run("print('needs root'); raise SystemExit(77)", "command")
    assert (counts(result), result.skips) == ((0, 0, 1), ["s: needs root"])


def test_pytest_reports_are_read(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import pytest\ndef test_a(): pass\ndef test_b(): assert 0\n@pytest.mark.skip(reason='r')\ndef test_c(): pass\n")
    suite = suites.Suite("s", "pytest", [*suites.PYTEST, "-c", "/dev/null", str(tmp_path)])
    assert counts(tally.run_suite(suite)) == (1, 1, 1)


def test_a_pytest_folder_without_tests_fails(tmp_path):
    suite = suites.Suite("s", "pytest", [*suites.PYTEST, "-c", "/dev/null", str(tmp_path)])
    assert counts(tally.run_suite(suite)) == (0, 1, 0)


def test_the_last_line_is_the_sum_and_a_failure_shows_in_the_exit_status():
    done = subprocess.run([sys.executable, "tests/support/tally.py", "--build", "/dev/null/build", "unit"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "0 passed, 1 failed, 0 skipped"
