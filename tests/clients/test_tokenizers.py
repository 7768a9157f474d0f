"""The daemon's tokenizers against the reference implementation, over a multilingual sample of 2,000 lines."""
import filecmp
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from daemon import BINARY, ROOT

TEXT = ROOT / "tests/text"
ENCODER = Path(BINARY).parent / "tests/text/encode_lines"


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)


@pytest.fixture(scope="module")
def python():
    """An interpreter with the package `tokenizers`."""
    folder = ROOT / "build/venv-tokenizers"
    made = run(ROOT / "clients/python/make_venv.sh", folder, sys.executable, TEXT / "requirements.txt")
    if made.returncode != 0:
        pytest.skip("tokenizers cannot be had: " + " ".join(made.stdout.split())[-300:])
    return folder / "bin/python"


def test_ids_ranges_and_decoded_texts_are_those_of_the_reference(python, tmp_path):
    made = run(python, TEXT / "make_tokenizers.py", tmp_path)
    assert made.returncode == 0, made.stdout
    folders = sorted(tmp_path.iterdir())
    done = run(python, TEXT / "compare.py", ENCODER, *folders)
    assert done.returncode == 0, done.stdout[-4000:]
    assert done.stdout.count("ids 2000 of 2000, offsets 2000, decoded 2000") == len(folders) >= 16


def test_the_committed_tokens_are_what_the_reference_makes(python, tmp_path):
    again = shutil.copytree(TEXT / "data", tmp_path / "data")
    made = run(python, TEXT / "make_data.py", again)
    assert made.returncode == 0, made.stdout
    for path in sorted(path.relative_to(again) for path in again.rglob("*") if path.is_file()):
        assert filecmp.cmp(again / path, TEXT / "data" / path, shallow=False), path
