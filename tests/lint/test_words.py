"""What the project's files may not say."""
import re

import c_text

EVERYTHING = ("lib", "server", "tests", "clients", "config", "doc", "systemd")
TEXTS = (".c", ".h", ".py", ".sh", ".md", ".yaml", ".service", ".conf", ".in", ".3", ".5", ".8")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
UNSAFE = re.compile(r"\b(gets|strcpy|strcat|sprintf|vsprintf|strtok|atoi|atol|atof|alloca|setlocale)\s*\(")
SLEEPS = re.compile(r"\b(sleep|usleep|nanosleep|uv_sleep)\s*\(")
NOT_IN_LIB = re.compile(r"\b(printf|fprintf|puts|putchar|perror|exit|_exit|abort|getenv|secure_getenv|pthread_\w+)\s*\(")


def found(pattern, paths, text_of):
    return [f"{path}:{number}: {line.strip()}" for path in paths
            for number, line in enumerate(text_of(path).splitlines(), 1) if pattern.search(line)]


def test_nothing_is_left_for_later():
    paths = [p for p in c_text.files(*EVERYTHING, suffixes=TEXTS) if p != "tests/lint/test_words.py"]
    seen = found(UNFINISHED, paths, c_text.read)
    assert not seen, "\n".join(seen)


def test_no_call_that_cannot_be_used_safely():
    seen = found(UNSAFE, c_text.files("lib", "server"), c_text.code)
    assert not seen, "\n".join(seen)


def test_nothing_waits_by_sleeping():
    seen = found(SLEEPS, c_text.files("lib", "server", "tests/unit", "tests/support"), c_text.code)
    assert not seen, "\n".join(seen)


def test_the_library_neither_prints_nor_exits_nor_reads_the_environment_nor_makes_threads():
    seen = found(NOT_IN_LIB, c_text.files("lib"), c_text.code)
    assert not seen, "\n".join(seen)


def test_no_line_ends_in_blanks():
    seen = found(re.compile(r"[ \t]+$"), c_text.files(*EVERYTHING, suffixes=TEXTS), c_text.read)
    assert not seen, "\n".join(seen)
