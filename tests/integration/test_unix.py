"""Unix sockets: the whole service on one, its file and its mode, and that the file goes away."""
import http.client
import json
import os
import signal
import socket
import stat
import subprocess

import pytest
import raw
from daemon import BINARY, SLOW, Daemon
from load import heavy

FIELDS = dict(query=[[1, 0], [0, 1]])


class Connection(http.client.HTTPConnection):
    """HTTP over the socket of a file."""

    def __init__(self, path):
        super().__init__("localhost", timeout=60 * SLOW)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


def ask(path, method="GET", url="/healthz", fields=None, headers=None):
    connection = Connection(path)
    body = None if fields is None else json.dumps(fields)
    connection.request(method, url, body, {"Content-Type": "application/json", **(headers or {})})
    reply = connection.getresponse()
    text = reply.read()
    connection.close()
    return reply.status, text


def raw_connect(path):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(30 * SLOW)
    sock.connect(str(path))
    return sock


@pytest.fixture
def place(tmp_path):
    """Short, for the path of a socket has little room."""
    short = f"/tmp/attnd-{os.getpid()}-{tmp_path.name[-6:]}"
    yield short
    if os.path.lexists(short):
        os.unlink(short)


def test_requests_are_served_and_the_ready_line_names_the_place(start, place):
    one = start("--listen", f"unix:{place}")
    assert one.wait_log(r"event=ready .*listen=(\S+)")[1] == f"unix:{place}"
    assert ask(place) == (200, b'{"status":"ok"}')
    status, text = ask(place, "POST", "/v1/attention", FIELDS)
    assert status == 200 and json.loads(text)["shape"]["queries"] == 2
    connection = Connection(place)  # kept alive over several requests, with a large reply
    for length in (1, 300, 2):
        connection.request("POST", "/v1/attention", json.dumps(dict(query=[[0]] * length)),
                           {"Content-Type": "application/json"})
        reply = connection.getresponse()
        assert reply.status == 200 and json.loads(reply.read())["shape"]["queries"] == length
    connection.close()


def test_the_file_is_for_owner_and_group_and_goes_away(place):
    umask = os.umask(0)
    try:
        with Daemon("--listen", f"unix:{place}"):
            facts = os.lstat(place)
            assert stat.S_ISSOCK(facts.st_mode) and stat.S_IMODE(facts.st_mode) == 0o660
    finally:
        os.umask(umask)
    assert not os.path.lexists(place)


def test_a_socket_left_behind_is_replaced(place):
    first = Daemon("--listen", f"unix:{place}")
    first.process.kill()
    first.wait()
    assert os.path.lexists(place)
    with Daemon("--listen", f"unix:{place}"):
        assert ask(place)[0] == 200
    assert not os.path.lexists(place)


def test_a_second_daemon_does_not_take_the_place_of_the_first(start, place):
    start("--listen", f"unix:{place}")
    second = subprocess.run([BINARY, "--listen", f"unix:{place}"], capture_output=True, text=True, timeout=60)
    assert second.returncode == 1 and place in second.stderr and "in use" in second.stderr
    assert ask(place)[0] == 200


def test_a_file_that_is_no_socket_is_left_alone(place):
    with open(place, "w") as other:
        other.write("mine")
    done = subprocess.run([BINARY, "--listen", f"unix:{place}"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and place in done.stderr
    with open(place) as other:
        assert other.read() == "mine"


@pytest.mark.parametrize("listen", ["unix:", "unix:here", "unix:/" + "x" * 120])
def test_a_place_that_cannot_be_is_a_usage_error(listen):
    done = subprocess.run([BINARY, "--listen", listen, "--check-config"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "absolute path" in done.stderr


def test_health_is_asked_at_the_file(start, place):
    start("--listen", f"unix:{place}")
    command = [BINARY, "--healthcheck", "--listen"]
    assert subprocess.run([*command, f"unix:{place}"], timeout=30).returncode == 0
    silent = subprocess.run([*command, f"unix:{place}-not"], capture_output=True, text=True, timeout=30)
    assert silent.returncode == 1 and "No such file" in silent.stderr


def test_the_check_of_hosts_does_not_apply_but_tokens_do(start, place, tmp_path):
    (tmp_path / "tokens").write_text("alpha\n")
    start("--listen", f"unix:{place}", "--allowed-hosts", "attn.example", "--tokens-file", tmp_path / "tokens")
    token = {"Authorization": "Bearer alpha"}
    assert ask(place, "POST", "/v1/attention", FIELDS, {**token, "Host": "anything"})[0] == 200
    assert ask(place, "POST", "/v1/attention", FIELDS)[0] == 401


def test_a_client_that_leaves_is_noticed(start, place):
    one = start("--listen", f"unix:{place}", "--workers", 1, "--log-level", "debug")
    body = heavy(3000).encode()
    with raw_connect(place) as busy:
        busy.sendall(raw.post_head("/v1/attention", len(body)) + body)
        one.wait_until(lambda: b"attnd_workers_busy 1" in ask(place, url="/metrics")[1], what="a busy worker")
        with raw_connect(place) as leaves:
            leaves.sendall(raw.post("/v1/attention", FIELDS))
            one.wait_until(lambda: b"attnd_queue_depth 1" in ask(place, url="/metrics")[1], what="a waiting request")
        one.wait_log("client-gone")
        assert raw.Stream(busy).reply()[0] == 200


def test_a_drain_answers_what_was_admitted_and_removes_the_file(place):
    one = Daemon("--listen", f"unix:{place}", "--workers", 1)
    body = heavy(3000).encode()
    with raw_connect(place) as sock:
        sock.sendall(raw.post_head("/v1/attention", len(body)) + body)
        one.wait_until(lambda: b"attnd_workers_busy 1" in ask(place, url="/metrics")[1], what="a busy worker")
        one.process.send_signal(signal.SIGTERM)
        one.wait_log("draining")
        assert ask(place)[0] == 503
        assert raw.Stream(sock).reply()[0] == 200
    one.stop()
    assert not os.path.lexists(place)
