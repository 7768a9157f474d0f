"""The Python client as a package: types and style checked, installs with pip, needs only numpy, its README holds."""
import ast
import doctest
import os
import re
import shutil
import subprocess
import sys

import attnd
import pytest
from daemon import ROOT, Daemon

PACKAGE = ROOT / "clients/python"
SOURCES = sorted((PACKAGE / "src/attnd").glob("*.py"))


def run(*command, **settings):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, **settings)


@pytest.fixture(scope="module")
def venv():
    """The folder of programs of a virtual environment with mypy, ruff and setuptools."""
    made = run(PACKAGE / "make_venv.sh", ROOT / "build/venv", sys.executable)
    if made.returncode != 0:
        pytest.skip("mypy and ruff cannot be had: " + " ".join(made.stdout.split())[-300:])
    return ROOT / "build/venv/bin"


@pytest.fixture
def copy(tmp_path):
    """The package's folder, where building may leave what it likes."""
    return shutil.copytree(PACKAGE, tmp_path / "package", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build"))


def test_mypy_finds_nothing(venv, tmp_path):
    done = run(venv / "mypy", "--python-executable", sys.executable, "--cache-dir", tmp_path, cwd=PACKAGE)
    assert done.returncode == 0, done.stdout


def test_mypy_sees_the_types_of_the_installed_package(venv, tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import attnd\nattnd.Client().attention([[1.0]], heads='two', causal='sideways')\n")
    done = run(venv / "mypy", "--python-executable", sys.executable, "--cache-dir", tmp_path, wrong, cwd=tmp_path,
               env={**os.environ, "MYPYPATH": str(PACKAGE / "src")})
    assert done.returncode == 1 and '"heads"' in done.stdout and '"causal"' in done.stdout, done.stdout


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]], ids=["check", "format"])
def test_ruff_finds_nothing(venv, command):
    done = run(venv / "ruff", *command, "--no-cache", ".", cwd=PACKAGE)
    assert done.returncode == 0, done.stdout


def test_it_installs_with_pip(venv, copy, tmp_path):
    into = tmp_path / "installed"
    done = run(venv / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index",
               "--target", into, copy)
    assert done.returncode == 0, done.stdout
    assert {path.name for path in (into / "attnd").glob("*.py")} == {path.name for path in SOURCES}
    assert (into / "attnd/py.typed").exists()
    (metadata,) = into.glob("attnd-*.dist-info/METADATA")
    text = metadata.read_text()
    assert re.findall(r"(?m)^Requires-Dist: (.*)$", text) == ["numpy>=1.21"]
    assert f"\nVersion: {attnd.__version__}\n" in text
    used = run(sys.executable, "-c", "import attnd; print(attnd.__file__)", cwd=tmp_path, env={"PYTHONPATH": str(into)})
    assert used.stdout.strip() == str(into / "attnd/__init__.py"), used.stdout


def test_it_needs_only_numpy():
    found = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {name.name.split(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add(node.module.split(".")[0])
    assert found - set(sys.stdlib_module_names) == {"numpy", "attnd"}


def test_its_version_is_the_daemons():
    assert attnd.__version__ == (ROOT / "VERSION").read_text().strip()


def test_everything_public_has_a_docstring():
    missing = [name for name in attnd.__all__ if not name.startswith("_") and not getattr(attnd, name).__doc__]
    missing += [name for name, member in vars(attnd.Client).items() if not name.startswith("_") and not member.__doc__]
    assert not missing


def test_the_readmes_examples_print_what_they_say(tmp_path):
    text = (PACKAGE / "README.md").read_text()
    for model in ("config/models/tiny-mha", "tests/models/gpt2-head", "tests/models/marian-swish"):
        (tmp_path / model.rpartition("/")[2]).symlink_to(ROOT / model)
    with Daemon("--models", tmp_path) as running:
        url = f"http://127.0.0.1:{running.port}"
        with attnd.Client(url) as client:
            try:
                client.attention([[1.0]])
            except attnd.RequestError as refused:
                if refused.status in (406, 415):
                    pytest.skip("the daemon does not take safetensors bodies yet")
        blocks = "\n".join(re.findall(r"(?s)```python\n(.*?)```", text)).replace("http://127.0.0.1:8080", url)
        parsed = doctest.DocTestParser().get_doctest(blocks, {}, "README", "README.md", 0)
        said = []
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        result = runner.run(parsed, out=said.append)
    assert result.attempted > 8 and result.failed == 0, "".join(said)
