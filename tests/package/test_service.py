"""The systemd unit, and what the daemon tells the manager that started it."""
import ctypes
import errno
import os
import re
import shutil
import signal
import struct
import subprocess
from pathlib import Path

import pytest
from daemon import BINARY, ROOT, Daemon

UNIT = (ROOT / "systemd/attnd.service").read_text()
CALLS = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")


needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")


@pytest.fixture
def units(tmp_path):
    """Both units as `make install` writes them."""
    unit = UNIT.replace("@bindir@/attnd", os.path.realpath(BINARY)).replace("@sysconfdir@", str(tmp_path / "etc"))
    (tmp_path / "attnd.service").write_text(unit)
    shutil.copy(ROOT / "systemd/attnd.socket", tmp_path)
    return [tmp_path / "attnd.service", tmp_path / "attnd.socket"]


def analyze(*arguments):
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, timeout=60)


@needs_systemd
def test_the_units_are_accepted_by_systemd(units):
    done = analyze("verify", "--man=no", *units)
    complaints = [line for line in done.stderr.splitlines() if "attnd" in line]
    assert done.returncode == 0 and not complaints, done.stderr


@needs_systemd
def test_the_service_is_exposed_to_little(units):
    done = analyze("security", "--offline=true", units[0])
    assert float(re.search(r"Overall exposure level for attnd.service: (\d+\.\d+)", done.stdout)[1]) <= 1.5, done.stdout


def test_the_socket_is_where_the_daemon_listens_by_itself():
    told = subprocess.run([BINARY, "--help"], capture_output=True, text=True, timeout=30).stdout
    address = re.search(r"--listen .*default ([\d.:]+)\)", told)[1]
    assert f"\nListenStream={address}\n" in (ROOT / "systemd/attnd.socket").read_text()


def allowed_calls():
    """Numbers of the system calls that the unit's filter lets through: its lists, less those taken out."""
    numbers = dict(re.findall(r"(?m)^#define __NR_(\w+) (\d+)", CALLS.read_text()))

    def members(name):
        if not name.startswith("@"):
            return {name}
        lines = analyze("syscall-filter", name).stdout.splitlines()[1:]
        return {call for line in lines if line.strip() and "#" not in line for call in members(line.strip())}

    calls = set()
    for line in re.findall(r"(?m)^SystemCallFilter=(.*)$", UNIT):
        named = {call for name in line.lstrip("~").split() for call in members(name)}
        calls = calls - named if line.startswith("~") else calls | named
    return sorted(int(numbers[call]) for call in calls if call in numbers)


def install_filter(numbers):
    """For a child before exec: calls of other numbers fail with EPERM, as SystemCallErrorNumber says."""
    def instruction(code, value, jump_true=0, jump_false=0):
        return struct.pack("HBBI", code, jump_true, jump_false, value)

    load, equal, give, allow = 0x20, 0x15, 0x06, 0x7FFF0000
    program = instruction(load, 0)  # the number
    for number in numbers:
        program += instruction(equal, number, 0, 1) + instruction(give, allow)
    program += instruction(give, 0x00050000 | errno.EPERM)
    filter = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(filter))
    libc = ctypes.CDLL(None, use_errno=True)
    set_no_new_privileges, set_seccomp, filter_mode = 38, 22, 2

    def install(_program=filter):  # which must outlive the header that points at it
        assert libc.prctl(set_no_new_privileges, 1, 0, 0, 0) == 0
        assert libc.prctl(set_seccomp, filter_mode, ctypes.c_char_p(header), 0, 0) == 0

    return install


@needs_systemd
@pytest.mark.skipif(not CALLS.exists(), reason="the numbers of system calls are known for x86-64 only")
def test_the_daemon_serves_and_reloads_under_the_units_filter_of_system_calls(tmp_path):
    numbers = allowed_calls()
    assert 200 < len(numbers) < 400
    with Daemon("--workers", 2, wrapper=[], preexec=install_filter(numbers)) as running:
        assert "Seccomp:\t2" in Path(f"/proc/{running.process.pid}/status").read_text()
        large = {"query": {"shape": [900, 64], "data": [0.5] * (900 * 64)}, "heads": 4, "weights": False}
        assert running.attend(**large).status == 200
        model = running.get("/v1/models").json["data"][0]
        query = [[0.5] * model["widths"]["query"]] * 3
        assert running.post(f"/v1/models/{model['id']}/attention", {"query": query}).status == 200
        running.process.send_signal(signal.SIGHUP)
        running.wait_log("event=reloaded")
        assert running.metric("process_resident_memory_bytes") > 0


@pytest.fixture
def one_cpu():
    """A control group with the time of one CPU, wherever this machine lets us make one; its file of members."""
    root = Path("/sys/fs/cgroup")
    second = (root / "cgroup.controllers").exists()
    folder = (root if second else root / "cpu") / f"attnd-test-{os.getpid()}"
    try:
        folder.mkdir()
        (folder / ("cpu.max" if second else "cpu.cfs_quota_us")).write_text("50000")
    except OSError:
        if folder.exists():
            folder.rmdir()
        pytest.skip("no control group with a CPU quota can be made here")
    yield folder / "cgroup.procs"
    folder.rmdir()


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one CPU only")
def test_workers_follow_the_quota_of_the_control_group(one_cpu):
    with Daemon(preexec=lambda: one_cpu.write_text(str(os.getpid()))) as running:
        assert running.wait_log(r"event=ready.* workers=(\d+)")[1] == "1"
    with Daemon() as running:
        assert running.wait_log(r"event=ready.* workers=(\d+)")[1] == str(len(os.sched_getaffinity(0)))


def test_the_unit_gives_the_drain_its_time():
    configuration = (ROOT / "config/attnd.conf").read_text()
    drain = int(re.search(r"(?m)^[;# ]*drain[_-]timeout\s*=\s*(\d+)", configuration)[1])
    assert int(re.search(r"(?m)^TimeoutStopSec=(\d+)s$", UNIT)[1]) * 1000 > drain


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
