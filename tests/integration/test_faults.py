"""What clients do wrong, and what the system refuses: the daemon serves the next request as if nothing was."""
import json
import os
import resource
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import raw
from daemon import ROOT
from load import Busy, body_of, heavy, together

BODY = b'{"query":[[1,2],[3,4]]}'
PRELOAD = os.environ.get("ATTND_FAILMALLOC", str(ROOT / "build/tests/support/preload_failmalloc.so"))


def serves(daemon):
    reply = daemon.attend(query=[[1, 2], [3, 4]])
    assert reply.status == 200 and reply.json["shape"]["queries"] == 2
    return True


def settles(daemon):
    """Nothing is left over: no bytes in flight, nobody waiting."""
    daemon.wait_until(lambda: daemon.metric("attnd_inflight_bytes") == 0 and daemon.metric("attnd_queue_depth") == 0
                      and daemon.metric("attnd_workers_busy") == 0, 60, "an idle daemon")
    return serves(daemon)


def test_a_body_sent_a_byte_at_a_time(daemon):
    with daemon.connect() as sock:
        for byte in raw.post_head("/v1/attention", len(BODY)) + BODY:
            sock.sendall(bytes([byte]))
        assert raw.Stream(sock).reply()[0] == 200


def test_pipelined_requests_are_answered_in_order(daemon):
    with daemon.connect() as sock:
        sock.sendall(b"".join(raw.post("/v1/attention", dict(query=[[n]] * n, weights=False)) for n in (1, 2, 3)))
        stream = raw.Stream(sock)
        for n in (1, 2, 3):
            status, _, text = stream.reply()
            assert status == 200 and json.loads(text)["shape"]["queries"] == n


def test_a_connection_is_kept_for_many_requests(daemon):
    with daemon.connect() as sock:
        stream = raw.Stream(sock)
        for n in range(1, 30):
            sock.sendall(raw.post("/v1/attention", dict(query=[[n]])))
            status, _, text = stream.reply()
            assert status == 200 and json.loads(text)["context"] == [[n]]


@pytest.mark.parametrize("extra", [
    ["Content-Length: 23"], ["Content-Length: 24"], ["Transfer-Encoding: chunked"],
], ids=["twice", "twice_and_different", "with_transfer_encoding"])
def test_a_doubtful_length_is_400_and_closed(daemon, extra):
    with daemon.connect() as sock:
        sock.sendall(raw.post_head("/v1/attention", len(BODY), extra) + BODY)
        stream = raw.Stream(sock)
        reply = stream.reply()
        assert reply is not None and reply[0] == 400
        assert stream.closed()
    serves(daemon)


def test_a_missing_host_is_400(daemon):
    with daemon.connect() as sock:
        sock.sendall(raw.post_head("/v1/attention", len(BODY), host=None) + BODY)
        assert raw.Stream(sock).reply()[0] == 400
    serves(daemon)


def test_no_content_type_is_415(daemon):
    with daemon.connect() as sock:
        sock.sendall(raw.post_head("/v1/attention", len(BODY), content_type=None) + BODY)
        status, _, text = raw.Stream(sock).reply()
        assert status == 415 and "--json" in json.loads(text)["detail"]


@pytest.mark.parametrize("garbage", [b"\x00\xff\xfe" * 50, b"GET\r\n\r\n", b"POST /v1/attention HTTP/9.9\r\n\r\n",
                                     b"\r\n" * 100, b"A" * 300000, b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 9000])
def test_garbage_harms_nobody(daemon, garbage):
    with daemon.connect() as sock:
        try:
            sock.sendall(garbage)
            sock.shutdown(socket.SHUT_WR)
            while sock.recv(65536):
                pass
        except ConnectionError:
            pass
    serves(daemon)


def test_a_client_killed_while_uploading(daemon):
    for _ in range(10):
        sock = daemon.connect()
        sock.sendall(raw.post_head("/v1/attention", 1000) + b'{"query":[[1')
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        sock.close()
    settles(daemon)


def test_clients_killed_while_queued_leave_the_queue(start):
    one = start("--workers", 1)
    with Busy(one, length=6000):
        socks = [one.connect() for _ in range(10)]
        for sock in socks:
            sock.sendall(raw.post("/v1/attention", dict(query=[[1, 2]])))
        one.wait_until(lambda: one.metric("attnd_queue_depth") == 10, what="ten waiting")
        for sock in socks[:5]:
            sock.close()
        for sock in socks[5:]:
            sock.shutdown(socket.SHUT_WR)
        one.wait_until(lambda: one.metric("attnd_queue_depth") == 0, what="an empty queue")
        for sock in socks[5:]:
            sock.close()
    settles(one)


def test_a_client_killed_while_computing(start):
    one = start("--workers", 1)
    sock = one.connect()
    body = heavy().encode()
    sock.sendall(raw.post_head("/v1/attention", len(body)) + body)
    one.wait_until(lambda: one.metric("attnd_workers_busy") == 1, what="a busy worker")
    sock.close()
    settles(one)


def test_a_client_that_closed_its_sending_side_while_computing_gets_its_reply(start):
    one = start("--workers", 1)
    with one.connect(60) as sock:
        body = heavy(4000).encode()
        sock.sendall(raw.post_head("/v1/attention", len(body), ["Connection: close"]) + body)
        one.wait_until(lambda: one.metric("attnd_batch_sequences_count") == 1, what="a call begun")
        sock.shutdown(socket.SHUT_WR)
        assert raw.Stream(sock).reply()[0] == 200


def test_a_client_killed_while_reading(start):
    one = start("--workers", 1)
    for _ in range(3):
        sock = one.connect()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        body = body_of(700, 4).encode()
        sock.sendall(raw.post_head("/v1/attention", len(body)) + body)
        assert sock.recv(100)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        sock.close()
    settles(one)


def test_a_killed_client_does_not_harm_its_batch_mates(start):
    one = start("--workers", 1)
    with Busy(one, length=8000):
        sock = one.connect()
        sock.sendall(raw.post("/v1/attention", dict(query=[[9, 9], [9, 9]])))
        one.wait_until(lambda: one.metric("attnd_queue_depth") == 1, what="one waiting")
        sock.close()
        replies = together(one, [json.dumps(dict(query=[[n, n], [n, n]])) for n in range(8)])
    for n, reply in enumerate(replies):
        assert reply.status == 200 and reply.json["context"] == [[n, n], [n, n]]


def test_no_reply_crosses_to_another_client(daemon):
    bodies = [json.dumps(dict(query=[[n] * 4] * (1 + n % 5), weights=False)) for n in range(120)]
    for n, reply in enumerate(together(daemon, bodies)):
        assert reply.status == 200 and reply.json["context"] == [[n] * 4] * (1 + n % 5)


def test_a_64_descriptor_limit_with_100_connects(start):
    few = start(preexec=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
    socks = []
    for _ in range(100):
        sock = socket.socket()
        sock.settimeout(2)
        try:
            sock.connect(("127.0.0.1", few.port))
        except OSError:
            sock.close()
            continue
        socks.append(sock)
    ticks = cpu_ticks(few)
    time.sleep(0.5)
    assert cpu_ticks(few) - ticks < 25, "the daemon spins at its descriptor limit"
    for sock in socks:
        sock.close()
    few.wait_until(lambda: _quietly_serves(few), 20, "service after the crowd left")


def cpu_ticks(daemon):
    fields = open(f"/proc/{daemon.process.pid}/stat").read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def _quietly_serves(daemon):
    try:
        return daemon.get("/healthz").status == 200
    except OSError:
        return False


@pytest.mark.skipif(not os.path.exists(PRELOAD), reason="needs the failing allocator, built by make check")
@pytest.mark.skipif(bool(os.environ.get("ATTND_NO_PRELOAD")), reason="sanitizers bring their own allocator")
@pytest.mark.parametrize("threshold", [150_000, 400_000, 2_000_000])
def test_a_refused_allocation_is_a_500_and_no_more(start, threshold):
    poor = start("--workers", 1, env={"LD_PRELOAD": PRELOAD, "FAILMALLOC_OVER": str(threshold)})
    poor.process.send_signal(signal.SIGUSR1)
    seen = set()
    for length in (10, 100, 300, 700):
        reply = poor.post("/v1/attention", body_of(length, 16))
        seen.add(reply.status)
        if reply.status != 200:
            assert (reply.status, reply.json["code"]) == (500, "out-of-memory"), reply
    assert seen == {200, 500}
    settles(poor)


def test_many_bad_requests_leave_no_memory_behind(daemon):
    for _ in range(30):
        daemon.post("/v1/attention", "[" * 100000)
        daemon.post("/v1/attention", '{"query":[[1,2],[3')
    before, descriptors = daemon.resident_bytes(), daemon.descriptors()
    for _ in range(150):
        daemon.post("/v1/attention", "[" * 100000)
        daemon.post("/v1/attention", '{"query":' + "[[1,2]," * 1000)
    assert daemon.resident_bytes() - before < 8 << 20
    assert daemon.descriptors() <= descriptors + 1


def test_a_crowd_of_kept_connections_is_served_and_let_go(start):
    """Many small requests behind each other on many connections, so that replies overtake suspensions."""
    one = start("--workers", 2, "--max-connections", 200)
    request = raw.post("/v1/attention", dict(query=[[1]], weights=False))

    def client(_):
        with one.connect() as sock:
            stream = raw.Stream(sock)
            for _ in range(40):
                sock.sendall(request * 5)
                statuses = {stream.reply()[0] for _ in range(5)}
                if statuses != {200}:
                    return statuses
        return {200}

    with ThreadPoolExecutor(64) as pool:
        assert all(statuses == {200} for statuses in pool.map(client, range(64)))
    settles(one)
