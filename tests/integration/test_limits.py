"""Limits and overload: each refusal is a reply with the limit in its words; nothing is lost."""
import json
import socket
import time
from contextlib import nullcontext

import pytest
import raw
from load import Busy, body_of, heavy, together

MIB = 1 << 20


def test_a_body_over_the_limit_is_readable_without_expect(start):
    small = start("--max-body", 10000)
    with small.connect() as sock:
        body = b'{"query":[[' + b"1," * 20000 + b"1]]}"
        sock.sendall(raw.post_head("/v1/attention", len(body)) + body)
        status, _, text = raw.Stream(sock).reply()
    problem = json.loads(text)
    assert (status, problem["code"]) == (413, "body-too-large") and "10000" in problem["detail"]


def test_a_body_over_the_limit_with_expect_is_never_asked_for(start):
    small = start("--max-body", 10000)
    with small.connect() as sock:
        sock.sendall(raw.post_head("/v1/attention", 50000, ["Expect: 100-continue"]))
        text = sock.recv(65536)
    assert b" 413 " in text.split(b"\r\n")[0]


def test_a_body_far_over_the_limit_is_answered_at_once(start):
    small = start("--max-body", 10000)
    with small.connect() as sock:
        sock.sendall(raw.post_head("/v1/attention", 1 << 40) + b"{" * 1000)
        assert raw.Stream(sock).reply()[0] == 413


def test_a_chunked_body_over_the_limit_is_refused(start):
    small = start("--max-body", 10000)
    with small.connect() as sock:
        chunk = b"1000\r\n" + b" " * 4096 + b"\r\n"
        sock.sendall(raw.post_head("/v1/attention", extra=["Transfer-Encoding: chunked"]) + chunk * 5 + b"0\r\n\r\n")
        status, _, text = raw.Stream(sock).reply()
    assert (status, json.loads(text)["code"]) == (413, "body-too-large")
    assert small.attend(query=[[1]]).status == 200


def test_a_chunked_body_within_the_limit_is_served(daemon):
    body = b'{"query":[[1,2],[3,4]]}'
    with daemon.connect() as sock:
        sock.sendall(raw.post_head("/v1/attention", extra=["Transfer-Encoding: chunked"]))
        for byte in body:
            sock.sendall(b"1\r\n" + bytes([byte]) + b"\r\n")
        sock.sendall(b"0\r\n\r\n")
        status, _, text = raw.Stream(sock).reply()
    assert status == 200 and json.loads(text)["shape"]["queries"] == 2


def test_expect_is_answered_by_100_when_the_body_is_welcome(daemon):
    body = b'{"query":[[1,2]]}'
    with daemon.connect() as sock:
        sock.sendall(raw.post_head("/v1/attention", len(body), ["Expect: 100-continue"]))
        assert b" 100 " in sock.recv(100)
        sock.sendall(body)
        assert raw.Stream(sock).reply()[0] == 200


def test_what_can_never_fit_the_budget_is_413(start):
    small = start("--max-inflight", 100000)
    reply = small.post("/v1/attention", "{" + " " * 200000 + "}")
    assert (reply.status, reply.json["code"]) == (413, "never-fits")
    reply = small.post("/v1/attention", body_of(200, 4))
    assert (reply.status, reply.json["code"]) == (413, "never-fits") and "100000" in reply.json["detail"]
    assert small.attend(query=[[1]]).status == 200


def test_what_does_not_fit_now_is_429_with_retry_after(start):
    one = start("--workers", 1, "--max-inflight", 64 * MIB)
    with Busy(one, length=8000):
        replies = together(one, [body_of(500, 8, seed) for seed in range(16)])
    refused = [r for r in replies if r.status == 429]
    assert refused and all(r.status in (200, 429) for r in replies)
    for reply in refused:
        assert reply.json["code"] == "budget-full" and int(reply.headers["retry-after"]) >= 1
    one.wait_until(lambda: one.metric("attnd_inflight_bytes") == 0, what="the budget given back")
    assert one.post("/v1/attention", body_of(500, 8)).status == 200


def test_a_full_queue_is_429_with_retry_after(start):
    one = start("--workers", 1, "--queue-limit", 4)
    with Busy(one, length=8000):
        replies = together(one, [body_of(4, 4, seed) for seed in range(12)])
    codes = sorted(r.status for r in replies)
    assert codes.count(200) == 4 and codes.count(429) == 8, codes
    for reply in (r for r in replies if r.status == 429):
        assert reply.json["code"] == "queue-full" and int(reply.headers["retry-after"]) >= 1
    assert one.attend(query=[[1]]).status == 200


@pytest.mark.parametrize("by", ["header", "field"])
def test_a_deadline_answers_504_on_time(start, by):
    one = start("--workers", 1)
    headers = {"X-Timeout-Ms": "150"} if by == "header" else {}
    fields = {"timeout_ms": 150} if by == "field" else {}
    with Busy(one, length=6000) if by == "header" else nullcontext():
        body = body_of(4, 4, **fields) if by == "header" else heavy_with(**fields)
        begun = time.monotonic()
        reply = one.post("/v1/attention", body, headers)
        took = time.monotonic() - begun
    assert (reply.status, reply.json["code"]) == (504, "deadline"), reply
    assert took < 5
    assert one.attend(query=[[1]]).status == 200
    one.wait_until(lambda: one.metric("attnd_inflight_bytes") == 0, 60, "the budget given back")


def heavy_with(**fields):
    return json.dumps({**json.loads(heavy(6000)), **fields})


def test_a_configured_deadline_holds_without_a_word_from_the_client(start):
    one = start("--workers", 1, "--request-timeout", 200)
    reply = one.post("/v1/attention", heavy(6000))
    assert (reply.status, reply.json["code"]) == (504, "deadline")


def test_a_slow_drip_of_headers_is_closed(start):
    slow = start("--header-timeout", 400)
    with slow.connect() as sock:
        begun = time.monotonic()
        closed = drip(sock, b"POST /v1/attention HTTP/1.1\r\nHost: x\r\nX-A: " + b"a" * 1000)
    assert closed and time.monotonic() - begun < 20
    slow.wait_log("header")
    assert slow.metric("attnd_deadline_closes_total") >= 1


def test_a_slow_drip_of_a_body_is_closed(start):
    slow = start("--body-timeout", 400)
    with slow.connect() as sock:
        sock.sendall(raw.post_head("/v1/attention", 100000))
        closed = drip(sock, b" " * 1000)
    assert closed
    slow.wait_until(lambda: slow.metric("attnd_inflight_bytes") == 0, what="the budget given back")


def drip(sock, data):
    """Sends a byte at a time until the peer closes; true when it did."""
    sock.settimeout(0.02)
    for byte in data:
        try:
            sock.sendall(bytes([byte]))
            if sock.recv(1) == b"":
                return True
        except socket.timeout:
            continue
        except ConnectionError:
            return True
    return False


def test_a_reader_that_never_reads_its_reply_is_closed(start):
    slow = start("--min-reply-rate", 1 << 30, "--workers", 1)
    with slow.connect() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        body = body_of(900, 4).encode()
        sock.sendall(raw.post_head("/v1/attention", len(body)) + body)
        slow.wait_until(lambda: slow.metric("attnd_deadline_closes_total") >= 1, 40, "the close")
    slow.wait_until(lambda: slow.metric("attnd_inflight_bytes") == 0, what="the budget given back")
    assert slow.attend(query=[[1]]).status == 200
