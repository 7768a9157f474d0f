"""What `make install` puts in place, and that uninstall takes it away again."""
import os
import subprocess

import pytest
from daemon import BINARY, ROOT, Daemon


def make(target, root, prefix="/usr"):
    build = os.path.relpath(os.path.dirname(BINARY), ROOT)
    subprocess.run(["make", "-s", f"BUILD={build}", f"PREFIX={prefix}", f"DESTDIR={root}", target], cwd=ROOT, check=True,
                   capture_output=True, timeout=300)


def tree(root):
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    root = tmp_path_factory.mktemp("root")
    make("install", root)
    return root


def test_everything_a_service_needs_is_installed(installed):
    assert {"usr/bin/attnd", "etc/attnd/attnd.conf", "usr/lib/systemd/system/attnd.service",
            "usr/share/attnd/models/tiny-mha/model.safetensors", "usr/share/attnd/models/tiny-mha/config.json",
            "usr/share/man/man8/attnd.8", "usr/share/man/man5/attnd.conf.5",
            "usr/share/doc/attnd/README.md"} <= tree(installed)


def test_the_installed_unit_names_the_installed_program_and_configuration(installed):
    unit = (installed / "usr/lib/systemd/system/attnd.service").read_text()
    assert "ExecStart=/usr/bin/attnd --config /etc/attnd/attnd.conf\n" in unit
    assert "@" not in unit.replace("@system-service", "")


def test_the_installed_configuration_is_accepted(installed):
    done = subprocess.run([installed / "usr/bin/attnd", "--config", installed / "etc/attnd/attnd.conf", "--check-config"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_installed_program_serves_the_installed_model(installed, monkeypatch):
    monkeypatch.setattr("daemon.BINARY", str(installed / "usr/bin/attnd"))
    with Daemon() as running:
        assert [entry["id"] for entry in running.get("/v1/models").json["data"]] == ["tiny-mha"]


def test_a_configuration_that_is_there_is_kept_and_uninstall_leaves_nothing_else(tmp_path):
    (tmp_path / "opt/etc/attnd").mkdir(parents=True)
    (tmp_path / "opt/etc/attnd/attnd.conf").write_text("; mine\n")
    make("install", tmp_path, "/opt")
    make("uninstall", tmp_path, "/opt")
    assert tree(tmp_path) == {"opt/etc/attnd/attnd.conf"}
    assert (tmp_path / "opt/etc/attnd/attnd.conf").read_text() == "; mine\n"
