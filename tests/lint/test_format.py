"""C files are as clang-format writes them."""
import shutil
import subprocess

import c_text
import pytest


@pytest.mark.skipif(shutil.which("clang-format") is None, reason="clang-format is not installed")
def test_every_c_file_is_formatted():
    paths = c_text.files("lib", "server", "tests", "clients")
    run = subprocess.run(["clang-format", "--dry-run", "--Werror", *paths], cwd=c_text.ROOT, capture_output=True, text=True)
    wrong = sorted({line.split(":")[0] for line in run.stderr.splitlines() if "error:" in line})
    assert run.returncode == 0, "make format changes:\n" + "\n".join(wrong)
