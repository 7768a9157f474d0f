"""The manual says what the program does: same options everywhere, pages without errors, code that compiles as told."""
import re
import shutil
import subprocess

import pytest
from daemon import BINARY, ROOT

COMPLETION = ROOT / "config/bash-completion/attnd"
ONLY_FLAGS = {"config", "check-config", "healthcheck", "version", "help"}


def help_text():
    return subprocess.run([BINARY, "--help"], capture_output=True, text=True, check=True, timeout=30).stdout


def flags():
    return set(re.findall(r"(?m)^\s+(?:-\w, )?--([a-z-]+)", help_text()))


def page(name):
    return (ROOT / "doc" / name).read_text().replace("\\-", "-")


def test_the_program_lists_its_flags():
    assert {"listen", "models", "workers", "max-batch", "help", "version"} <= flags()


def test_the_manual_page_names_each_flag_and_no_other():
    named = set(re.findall(r"\.TP\n\.BI? --([a-z-]+)", page("attnd.8")))
    assert named == flags()


def test_the_page_of_the_configuration_names_each_key_and_no_other():
    keys = {flag.replace("-", "_") for flag in flags() - ONLY_FLAGS}
    assert set(re.findall(r"\.TP\n\.BI? ([a-z_]+)", page("attnd.conf.5"))) == keys


def test_the_sample_configuration_names_each_key_and_no_other():
    keys = {flag.replace("-", "_") for flag in flags() - ONLY_FLAGS}
    text = (ROOT / "config/attnd.conf").read_text()
    assert {key.replace("-", "_") for key in re.findall(r"(?m)^[;#]?\s?([a-z][a-z_-]*)\s*=", text)} == keys


def completed(*words, folder):
    """What the completion of bash offers for the last word of a line."""
    script = """source "$1"; cd "$2"; shift 2; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _attnd "$1"
                printf '%s\\n' "${COMPREPLY[@]}" """
    done = subprocess.run(["bash", "-c", script, "bash", COMPLETION, folder, BINARY, *words], capture_output=True, text=True,
                          check=True, timeout=30)
    assert not done.stderr
    return done.stdout.split()


def test_completion_offers_each_flag_once_and_no_other(tmp_path):
    offered = completed("--", folder=tmp_path)
    assert sorted(offered) == sorted(f"--{flag}" for flag in flags())
    assert completed("--check-config", "--log-l", folder=tmp_path) == ["--log-level"]


def test_completion_offers_what_a_flag_takes(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    choices = re.findall(r"(?m)^  --([a-z-]+) NAME .*\((.*); default", help_text())
    assert {"kernels", "log-level", "log-format"} <= {flag for flag, _ in choices}
    for flag, names in choices:
        assert completed(f"--{flag}", "", folder=tmp_path) == names.split(", ")
        assert completed(f"--{flag}", "=", folder=tmp_path) == names.split(", ")
    assert completed("--log-level", "=", "w", folder=tmp_path) == ["warning"]
    assert completed("--models", "", folder=tmp_path) == ["folder"]
    assert sorted(completed("--config", "f", folder=tmp_path)) == ["file", "folder"]
    assert completed("--max-body", "", folder=tmp_path) == []


def test_the_page_of_the_library_names_functions_that_there_are():
    named = set(re.findall(r"(?m)^\.BR (attn_\w+) \(\)", page("libattn.3")))
    declared = re.findall(r"\b(attn_\w+)\(", (ROOT / "lib/attn.h").read_text())
    assert len(named) > 10
    assert named <= set(declared)


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
@pytest.mark.parametrize("name", ["attnd.8", "attnd.conf.5", "libattn.3"])
def test_the_pages_are_typeset_without_a_warning(name):
    done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-z", ROOT / "doc" / name], capture_output=True, text=True,
                          timeout=30)
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_the_version_is_told():
    version = (ROOT / "VERSION").read_text().strip()
    told = subprocess.run([BINARY, "--version"], capture_output=True, text=True, check=True, timeout=60).stdout
    assert version in told
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text()
    for path in (ROOT / "doc").glob("*.[1-9]"):
        assert f'"attnd {version}"' in path.read_text().splitlines()[0], path


@pytest.mark.parametrize("path", ["README.md", "doc/ARCHITECTURE.md", "doc/HACKING.md", "clients/curl/README.md"])
def test_what_a_document_points_at_is_there(path):
    text = (ROOT / path).read_text()
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (ROOT / path).parent.joinpath(target).exists(), target
    for named in re.findall(r"`((?:lib|server|tests|clients|config|doc|systemd)/[\w./-]+)`", text):
        assert (ROOT / named).exists(), named


def test_the_functions_of_a_requests_path_are_there():
    text = (ROOT / "doc/ARCHITECTURE.md").read_text()
    path = text[text.index("## A request's path"):text.index("## Memory and admission")]
    sources = "\n".join(file.read_text() for folder in ("lib", "server") for file in (ROOT / folder).rglob("*.[ch]"))
    named = set(re.findall(r"`([a-z_]+)`", path))
    assert len(named) > 40
    gone = [name for name in named if not re.search(rf"(?m)^\w.*\b{name}\(", sources)]
    assert not gone
