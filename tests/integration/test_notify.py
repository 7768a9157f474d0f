"""What the service manager hears: a datagram socket stands for it."""
import os
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest
from daemon import BINARY, FAULTS, SLOW, WRAPPER
from load import Busy
from reference import write_torch_mha


class Manager:
    """The socket of a service manager; `told` holds each datagram as a dictionary."""

    def __init__(self, path):
        self.path, self.told = path, []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))

    def environment(self, **more):
        return {"NOTIFY_SOCKET": str(self.path), **more}

    def hear(self, field, count=1, seconds=10):
        """The first datagram with a field, once there are `count` of them."""
        end = time.monotonic() + seconds * SLOW
        while sum(field in one for one in self.told) < count:
            left = end - time.monotonic()
            assert left > 0, (field, self.told)
            self._socket.settimeout(left)
            try:
                text = self._socket.recv(4096).decode()
            except TimeoutError:
                continue
            self.told.append(dict(line.split("=", 1) for line in text.splitlines()))
        return next(one for one in self.told if field in one)

    def fill(self):
        """Leaves no room for a datagram."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            other.setblocking(False)
            try:
                while True:
                    other.sendto(b"X=1", str(self.path))
            except BlockingIOError:
                return

    def forget(self):
        self.told = []


def served(daemon):
    """The loop turns. A signal in the middle of telling the manager can be lost to the thread sanitizer."""
    return daemon.get("/healthz").status == 200


@pytest.fixture
def manager(tmp_path):
    return Manager(tmp_path / "notify")


@pytest.fixture
def models(tmp_path):
    write_torch_mha(tmp_path / "models" / "first", 16, 4)
    return tmp_path / "models"


def test_ready_comes_once_requests_are_served_with_a_status(start, manager, models):
    one = start("--models", models, env=manager.environment())
    ready = manager.hear("READY")
    assert ready["READY"] == "1" and f"127.0.0.1:{one.port}" in ready["STATUS"] and "1 models" in ready["STATUS"]
    assert one.get("/healthz").status == 200


def test_a_reload_is_told_with_its_time_and_ends_in_ready(start, manager, models):
    one = start("--models", models, env=manager.environment())
    manager.hear("READY")
    manager.forget()
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    one.signal(signal.SIGHUP)
    manager.hear("READY")
    after = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    assert [("RELOADING" in told, "READY" in told) for told in manager.told] == [(True, False), (False, True)]
    assert manager.told[0]["RELOADING"] == "1"
    assert before <= int(manager.told[0]["MONOTONIC_USEC"]) <= after
    assert served(one)


def test_a_reload_that_fails_ends_in_ready_too_and_says_why(start, manager, models):
    one = start("--models", models, env=manager.environment())
    manager.hear("READY")
    manager.forget()
    (models / "first" / "config.json").write_text("no JSON")
    one.signal(signal.SIGHUP)
    ready = manager.hear("READY")
    assert "RELOADING" in manager.told[0] and "first" in ready["STATUS"] and "failed" in ready["STATUS"]
    assert served(one)


def test_stopping_is_told_when_draining_begins_and_nothing_is_ready_after(start, manager, models):
    one = start("--models", models, "--workers", 1, env=manager.environment())
    manager.hear("READY")
    manager.forget()
    with Busy(one, length=2000) as busy:
        one.signal(signal.SIGHUP)
        one.terminate()
        assert manager.hear("STOPPING")["STOPPING"] == "1"
        assert busy.thread.is_alive()
    assert one.wait() == 0
    stopping = next(n for n, told in enumerate(manager.told) if "STOPPING" in told)
    assert not any("READY" in told for told in manager.told[stopping:])


def test_the_watchdog_is_pinged_at_half_its_time_idle_or_busy(start, manager):
    half = 0.2  # seconds; the request below takes several times that on any build
    one = start("--workers", 1, env=manager.environment(WATCHDOG_USEC=str(round(2e6 * half))))
    manager.hear("WATCHDOG")
    manager.forget()
    begun = time.monotonic()
    manager.hear("WATCHDOG", 3)
    assert time.monotonic() - begun > 1.5 * half
    with Busy(one, length=10000) as busy:
        manager.forget()
        manager.hear("WATCHDOG", 2)
        assert busy.thread.is_alive()
    assert busy.reply.status == 200


@pytest.mark.parametrize("environment", [{}, {"WATCHDOG_USEC": "100000", "WATCHDOG_PID": "1"}])
def test_no_watchdog_is_pinged_when_none_waits_for_this_process(start, manager, environment):
    one = start(env=manager.environment(**environment))
    manager.hear("READY")
    assert served(one)
    one.terminate()
    assert one.wait() == 0
    manager.hear("STOPPING")
    assert not any("WATCHDOG" in told for told in manager.told)


def test_a_manager_that_does_not_read_does_not_stop_the_daemon(start, manager):
    manager.fill()
    one = start("--workers", 1, env=manager.environment(WATCHDOG_USEC="2000"))
    for _ in range(100):
        assert one.get("/healthz").status == 200
    one.terminate()
    assert one.wait() == 0


def test_a_socket_without_a_file_is_told_too(start):
    name = f"attnd-test-{os.getpid()}"
    manager = Manager(f"\0{name}")
    one = start(env={"NOTIFY_SOCKET": f"@{name}"})
    assert manager.hear("READY")["READY"] == "1" and served(one)


# ---- socket activation

def ask(address, path="/healthz", family=socket.AF_INET):
    """The answer to a GET on a fresh connection, waiting for the socket to be there."""
    end = time.monotonic() + 20 * SLOW
    while True:
        with socket.socket(family, socket.SOCK_STREAM) as sock:
            sock.settimeout(30 * SLOW)
            try:
                sock.connect(address)
            except OSError:
                assert time.monotonic() < end
                time.sleep(0.01)
                continue
            sock.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            return b"".join(iter(lambda: sock.recv(65536), b""))


def passed(sock, count=1):
    """The daemon with a socket as descriptor 3, as a service manager starts it."""
    def hand_over():
        os.dup2(sock.fileno(), 3)
        os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(count))

    return subprocess.Popen([*WRAPPER, BINARY], close_fds=False, preexec_fn=hand_over, stderr=subprocess.PIPE, text=True)


def finish(process):
    log = process.communicate(timeout=60 * SLOW)[1]
    assert not FAULTS.search(log), log
    return process.returncode, log


@pytest.mark.skipif(shutil.which("systemd-socket-activate") is None, reason="systemd-socket-activate is not installed")
def test_systemd_socket_activate_starts_it_with_the_first_connection():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(["systemd-socket-activate", "-l", f"127.0.0.1:{port}", *WRAPPER, BINARY, "--listen", "127.0.0.1:0"],
                               stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(3):
            assert b" 200 " in ask(("127.0.0.1", port)).splitlines()[0]
    finally:
        process.send_signal(signal.SIGTERM)
        code, log = finish(process)
    assert code == 0, log
    assert f"listen=127.0.0.1:{port} " in next(line for line in log.splitlines() if "event=ready" in line)


def test_connections_that_waited_in_the_passed_socket_are_answered_and_it_outlives_the_daemon():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        early = socket.create_connection(("127.0.0.1", port))
        early.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        for _ in range(2):
            process = passed(listening)
            assert b" 200 " in ask(("127.0.0.1", port)).splitlines()[0]
            process.send_signal(signal.SIGTERM)
            code, log = finish(process)
            assert code == 0, log
        early.settimeout(30)
        assert b" 200 " in early.recv(65536).splitlines()[0]
        early.close()


def test_a_passed_unix_socket_is_served_and_its_file_stays(tmp_path):
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(path)
        listening.listen()
        process = passed(listening)
        assert b" 200 " in ask(path, family=socket.AF_UNIX).splitlines()[0]
        process.send_signal(signal.SIGTERM)
        code, log = finish(process)
    assert code == 0 and os.path.exists(path), log
    assert f"listen=unix:{path}" in log


@pytest.mark.parametrize("kind", ["datagram", "connected", "two", "none"])
def test_a_passed_descriptor_that_cannot_be_served_ends_the_start_with_the_reason(kind):
    one, other = socket.socketpair()
    datagram = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with one, other, datagram:
        process = passed(datagram if kind == "datagram" else one, count={"two": 2, "none": "many"}.get(kind, 1))
        code, log = finish(process)
    assert code == 1 and re.search(r"event=not-started reason=\".*passed", log), log
