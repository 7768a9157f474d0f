"""The systemd unit, and what the daemon tells the manager that started it."""
import os
import re
import shutil
import signal
import socket
import subprocess

import pytest
from daemon import BINARY, ROOT, Daemon

UNIT = (ROOT / "systemd/attnd.service").read_text()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_the_unit_is_accepted_by_systemd(tmp_path):
    configuration = tmp_path / "etc"
    unit = UNIT.replace("@bindir@/attnd", os.path.realpath(BINARY)).replace("@sysconfdir@", str(configuration))
    (tmp_path / "attnd.service").write_text(unit)
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", tmp_path / "attnd.service"], capture_output=True,
                          text=True, timeout=60)
    complaints = [line for line in done.stderr.splitlines() if "attnd" in line]
    assert done.returncode == 0 and not complaints, done.stderr


def test_the_unit_gives_the_drain_its_time():
    configuration = (ROOT / "config/attnd.conf").read_text()
    drain = int(re.search(r"(?m)^[;# ]*drain[_-]timeout\s*=\s*(\d+)", configuration)[1])
    assert int(re.search(r"(?m)^TimeoutStopSec=(\d+)s$", UNIT)[1]) * 1000 > drain


class Manager:
    """The socket of a service manager; collects the fields it is told."""

    def __init__(self, path):
        self.path, self.told = path, []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self._socket.settimeout(30)

    def hear(self, wanted):
        while wanted not in self.told:
            self.told += self._socket.recv(4096).decode().splitlines()


def test_the_manager_hears_ready_once_requests_are_served_and_stopping_before_the_end(tmp_path):
    manager = Manager(tmp_path / "notify")
    with Daemon(env={"NOTIFY_SOCKET": str(manager.path)}) as running:
        manager.hear("READY=1")
        assert running.get("/healthz").status == 200
        assert "STOPPING=1" not in manager.told
        running.terminate()
        manager.hear("STOPPING=1")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_status_0(number):
    with Daemon() as running:
        running.process.send_signal(number)
        assert running.wait() == 0


def test_healthcheck_tells_a_daemon_that_serves_from_none():
    with Daemon() as running:
        address = f"127.0.0.1:{running.port}"
        assert subprocess.run([BINARY, "--healthcheck", "--listen", address], timeout=30).returncode == 0
    silent = subprocess.run([BINARY, "--healthcheck", "--listen", address], capture_output=True, timeout=30)
    assert silent.returncode != 0


def test_a_port_in_use_is_said_and_ends_the_start():
    with Daemon() as running:
        second = subprocess.run([BINARY, "--listen", f"127.0.0.1:{running.port}"], capture_output=True, text=True, timeout=30)
    assert second.returncode != 0
    assert str(running.port) in second.stderr
