"""The suites of attnd by group, for tally.py: what is run, how it reports, and what must be built before."""
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
# Integration tests that run again on other builds: where memory is held, where threads meet, a bit of everything.
MEMORY = ["access", "attention", "batching", "compression", "drain", "errors", "faults", "forward", "forward_text", "limits",
          "model_layers", "models", "notify", "reload", "safetensors_bodies", "unix"]
THREADS = ["batching", "compression", "drain", "faults", "notify", "observe", "reload"]
BRIEF = ["attention", "errors", "models"]
VALGRIND = ("valgrind --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,indirect "
            "--errors-for-leak-kinds=definite,indirect")
SANITIZERS = {
    "ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1:quarantine_size_mb=4",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=0:exitcode=66:second_deadlock_stack=1",
}


@dataclass
class Suite:
    name: str
    kind: str  # tap, pytest or command
    command: list
    environment: dict = field(default_factory=dict)
    timeout: float = 900


@dataclass
class Step:
    suites: list
    parallel: bool = False
    needed: bool = False  # a failure here ends the group


def build(folder, targets, **variables):
    """A step that makes targets in a build folder, warnings being errors."""
    settings = [f"{name}={value}" for name, value in {"BUILD": folder, "WERROR": "1", **variables}.items()]
    command = ["make", "--no-print-directory", "-s", f"-j{len(os.sched_getaffinity(0))}", *settings, *targets]
    return Step([Suite(f"build {folder}", "command", command)], needed=True)


def unit_programs(folder, label=""):
    """Every unit test program of a build folder, side by side."""
    sources = sorted(Path("tests/unit").rglob("test_*.c"))
    return Step([Suite(f"{label}{source.relative_to('tests/unit').with_suffix('')}", "tap",
                       [f"{folder}/{source.with_suffix('')}"], SANITIZERS) for source in sources], parallel=True)


def live(name, folder, paths, timeout=900, **settings):
    """pytest against the daemon of a build folder; settings are those of tests/integration/daemon.py."""
    environment = {"ATTND_BINARY": f"{os.getcwd()}/{folder}/attnd", "PYTHONDONTWRITEBYTECODE": "1", **SANITIZERS,
                   **{f"ATTND_{name.upper()}": str(value) for name, value in settings.items()}}
    return Step([Suite(name, "pytest", [*PYTEST, *paths], environment, timeout)])


def integration(names):
    return [f"tests/integration/test_{name}.py" for name in names]


def sanitized(folder, kinds, label, names, **settings):
    return [build(folder, ["all", "tests"], SANITIZE=kinds),
            unit_programs(folder, f"{label} "),
            live(f"{label} live", folder, integration(names), slow=4, no_preload=1, **settings)]


def fuzz_corpora(folder):
    """Each fuzz driver over its committed corpus, once, with the address sanitizer."""
    drivers = sorted(Path("tests/fuzz").glob("fuzz_*.c"))
    return [build(folder, ["fuzzers"], SANITIZE="address,undefined"),
            Step([Suite(f"{driver.stem} corpus", "command",
                        [f"{folder}/{driver.with_suffix('')}", f"tests/fuzz/corpus/{driver.stem.removeprefix('fuzz_')}"],
                        SANITIZERS) for driver in drivers], parallel=True)]


def clang_syntax():
    """Every C file through clang with warnings as errors, nothing linked."""
    command = ["make", "--no-print-directory", "-s", f"-j{len(os.sched_getaffinity(0))}", "CC=clang", "WERROR=1", "syntax"]
    return Step([Suite("clang warnings", "command", command)])


GROUPS = {
    "unit": lambda folder: [build(folder, ["all", "tests"]), unit_programs(folder)],
    "integration": lambda folder: [build(folder, ["all", "preloads"]), live("integration", folder, ["tests/integration"])],
    "clients": lambda folder: [build(folder, ["all", f"{folder}/tests/text/encode_lines"]), live("clients", folder, ["tests/clients"])],
    "weights": lambda folder: [build(folder, ["all", f"{folder}/tests/unit/lib/test_forward_vectors",
                                             f"{folder}/tests/text/encode_lines"]),
                               live("weights", folder, ["tests/models"], timeout=3600)],
    "package": lambda folder: [build(folder, ["all"]), live("package", folder, ["tests/package"])],
    "asan": lambda folder: sanitized(f"{folder}/asan", "address,undefined", "asan", MEMORY),
    "tsan": lambda folder: sanitized(f"{folder}/tsan", "thread", "tsan", THREADS, drain_rounds=50),
    "valgrind": lambda folder: [build(folder, ["all"]), live("valgrind", folder, integration(BRIEF), slow=20, wrapper=VALGRIND)],
    "fuzz": lambda folder: fuzz_corpora(f"{folder}/asan"),
    "lint": lambda folder: [clang_syntax(), live("lint", folder, ["tests/lint"])],
}


def steps(group, folder):
    return GROUPS[group](folder)
