#!/usr/bin/env python3
"""Runs test suites and counts: what failed in full, what was skipped and why, and one last line of totals.

    tally.py [--jobs N] [--build DIR] GROUP...

The groups are those of suites.py. Steps of a group run in order; suites of one step run side by side. A suite
reports its tests as its kind says:

    tap      a libcheck program: TAP in the file of CK_TAP_LOG_FILE_NAME, `SKIPPED name: reason` on stdout
    pytest   JUnit XML in the file of --junitxml
    command  one test: exit status 0 passed, 77 skipped with the last line of output as reason, else failed

A suite that crashes, runs out of time or reports no test counts as one failure more. Exit status 0 only when
nothing failed; the last line is `N passed, N failed, N skipped`.
"""
import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import suites

SKIP_STATUS = 77


@dataclass
class Result:
    passed: int = 0
    failures: list = field(default_factory=list)  # what failed, one line each
    skips: list = field(default_factory=list)  # "name: reason"
    output: str = ""
    seconds: float = 0.0


def read_tap(text, output):
    """Result of a TAP text and the program's output; None where the TAP is not whole."""
    lines = re.findall(r"(?m)^(not ok|ok) \d+ - (.*)$", text)
    plan = re.search(r"(?m)^1\.\.(\d+)$", text)
    if plan is None or int(plan[1]) != len(lines):
        return None
    skipped = dict(re.findall(r"(?m)^SKIPPED (\w+): (.*)$", output))
    result = Result()
    for word, rest in lines:
        name = rest.split(":")[-2].strip() if rest.count(":") >= 2 else rest
        if word == "not ok":
            result.failures.append(rest)
        elif name in skipped:
            result.skips.append(f"{name}: {skipped.pop(name)}")
        else:
            result.passed += 1
    result.failures += [f"{name} says it is skipped and is not in the report" for name in skipped]
    return result


def read_junit(text):
    """Result of a JUnit XML text; None where it is not whole."""
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return None
    result = Result()
    for case in root.iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            result.failures.append(name)
        elif skipped is not None:
            result.skips.append(f"{name}: {skipped.get('message')}")
        else:
            result.passed += 1
    return result


def read_report(suite, report, status, output):
    """What a suite of its kind said, however it ended."""
    if suite.kind == "command":
        if status == SKIP_STATUS:
            lines = output.strip().splitlines() or ["no reason given"]
            return Result(skips=[f"{suite.name}: {lines[-1]}"])
        return Result(passed=1) if status == 0 else Result(failures=[f"{suite.name}: exit status {status}"])
    text = report.read_text(errors="replace") if report.exists() else ""
    result = read_tap(text, output) if suite.kind == "tap" else read_junit(text)
    if result is None:
        return Result(failures=[f"{suite.name}: ended without a whole report, exit status {status}"])
    if result.passed + len(result.failures) + len(result.skips) == 0:
        result.failures.append(f"{suite.name}: no test ran")
    elif status != 0 and not result.failures:
        result.failures.append(f"{suite.name}: every test passed, yet exit status {status}")
    return result


def run_command(suite, command, environment):
    """Runs a command in a process group of its own; its exit status and output. What is left of the group is ended."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               env={**os.environ, **environment}, text=True, errors="replace", start_new_session=True)
    try:
        output, _ = process.communicate(timeout=suite.timeout)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        output, _ = process.communicate()
        return -9, output + f"\nended after {suite.timeout} s\n"


def run_suite(suite):
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="attnd-tally-") as folder:
        report = Path(folder) / "report"
        command, environment = list(suite.command), dict(suite.environment)
        if suite.kind == "tap":
            environment["CK_TAP_LOG_FILE_NAME"] = str(report)
        elif suite.kind == "pytest":
            command.append(f"--junitxml={report}")
        try:
            status, output = run_command(suite, command, environment)
        except OSError as error:
            status, output = -1, f"{shlex.join(command)}: {error}\n"
        result = read_report(suite, report, status, output)
    result.output, result.seconds = output, time.monotonic() - began
    word = "FAILED" if result.failures else "ok"
    print(f"{word:6} {suite.name}: {result.passed} passed, {len(result.failures)} failed, "
          f"{len(result.skips)} skipped ({result.seconds:.1f} s)", flush=True)
    return result


def run_group(group, build, jobs):
    """(suite, result) of all suites of a group; the rest is left out after a step that others need has failed."""
    done = []
    for step in suites.steps(group, build):
        with ThreadPoolExecutor(max_workers=jobs if step.parallel else 1) as pool:
            done += zip(step.suites, pool.map(run_suite, step.suites))
        if step.needed and any(result.failures for _, result in done[-len(step.suites):]):
            break
    return done


def main():
    parser = argparse.ArgumentParser(description="Runs test suites and counts.")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--build", default="build")
    parser.add_argument("groups", nargs="+", choices=sorted(suites.GROUPS))
    arguments = parser.parse_args()

    done = [pair for group in arguments.groups for pair in run_group(group, arguments.build, arguments.jobs)]
    results = [result for _, result in done]
    for suite, result in done:
        if result.failures:
            print(f"\n==== {suite.name}: {shlex.join(suite.command)}\n{result.output.rstrip()}")
            for failure in result.failures:
                print(f"---- failed: {failure}")
    skips = [f"{suite.name}: {skip}" for suite, result in done for skip in result.skips]
    if skips:
        print("\nskipped:\n  " + "\n  ".join(skips))
    passed, failed = sum(r.passed for r in results), sum(len(r.failures) for r in results)
    if not results:
        failed = 1
    print(f"\n{passed} passed, {failed} failed, {len(skips)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
