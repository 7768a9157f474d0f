"""gzip and deflate, both ways: bodies with a bounded expansion, replies only for clients that ask."""
import gzip
import json
import zlib

import numpy as np
import pytest
import raw
from load import Busy, body_of, together

MIB = 1 << 20
FIELDS = dict(query=[[1, 0], [0, 1]], value=[[1, 2], [3, 4]])


def bare(data):
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def unpack(reply):
    kind = reply.headers.get("content-encoding")
    return {"gzip": gzip.decompress, "deflate": zlib.decompress, None: bytes}[kind](reply.body)


def post(daemon, body, coding="gzip", path="/v1/attention", **headers):
    return daemon.post(path, body, {"Content-Encoding": coding, **headers})


@pytest.mark.parametrize("coding,pack", [("gzip", gzip.compress), ("x-gzip", gzip.compress), ("GZIP", gzip.compress),
                                         ("deflate", zlib.compress), ("deflate", bare), ("identity", bytes)])
def test_a_compressed_body_is_the_body(daemon, coding, pack):
    plain = daemon.attend(**FIELDS)
    reply = post(daemon, pack(json.dumps(FIELDS).encode()), coding)
    assert reply.status == 200 and reply.body == plain.body


def test_a_compressed_body_may_be_long_and_come_in_chunks(daemon):
    body = body_of(300, 16)
    packed = gzip.compress(body.encode())
    plain = daemon.post("/v1/attention", body)
    assert plain.status == 200 and post(daemon, packed).body == plain.body
    with daemon.connect() as sock:
        sock.sendall(raw.post_head("/v1/attention", extra=["Transfer-Encoding: chunked", "Content-Encoding: gzip"]))
        for at in range(0, len(packed), 1000):
            piece = packed[at:at + 1000]
            sock.sendall(b"%x\r\n" % len(piece) + piece + b"\r\n")
        sock.sendall(b"0\r\n\r\n")
        status, _, text = raw.Stream(sock).reply()
    assert status == 200 and text == plain.body


def test_members_on_end_are_one_body(daemon):
    text = json.dumps(FIELDS).encode()
    assert post(daemon, gzip.compress(text[:10]) + gzip.compress(text[10:])).status == 200


def test_a_model_takes_compressed_bodies_too(daemon, models):
    fields = dict(query=np.eye(3, 16).tolist())
    reply = post(daemon, gzip.compress(json.dumps(fields).encode()), path="/v1/models/m/attention")
    assert reply.status == 200, reply


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
@pytest.mark.parametrize("what", ["cut", "changed", "trailing", "plain", "empty"])
def test_an_unsound_stream_is_a_bad_encoding(daemon, coding, what):
    packed = {"gzip": gzip.compress, "deflate": zlib.compress}[coding](json.dumps(FIELDS).encode())
    body = {"cut": packed[:-3], "changed": packed[:-6] + bytes([packed[-6] ^ 1]) + packed[-5:],
            "trailing": packed + b"{}", "plain": b'{"query":[[1]]}', "empty": b""}[what]
    reply = post(daemon, body, coding)
    assert (reply.status, reply.json["code"]) == (400, "bad-encoding"), reply
    assert coding in reply.json["detail"]


def test_an_encoding_that_is_not_known_is_told_the_known_ones(daemon):
    for coding in ("br", "gzip, gzip", "zstd", ""):
        reply = post(daemon, b"{}", coding)
        assert (reply.status, reply.json["code"]) == (415, "content-encoding"), (coding, reply)
        assert reply.headers["accept-encoding"] == "gzip, deflate"


def test_a_bomb_stops_at_the_limit_of_a_body(start):
    small = start("--max-body", MIB, "--max-inflight", 16 * MIB)
    assert small.attend(query=[[1]]).status == 200
    before = small.resident_bytes()
    bomb = gzip.compress(b" " * (200 * MIB))
    assert len(bomb) < MIB
    for body in (bomb, zlib.compress(b"[" * (64 * MIB))):
        reply = post(small, body, "gzip" if body is bomb else "deflate")
        assert (reply.status, reply.json["code"]) == (413, "body-too-large"), reply
        assert str(MIB) in reply.json["detail"]
    assert small.resident_bytes() < before + 12 * MIB
    small.wait_until(lambda: small.metric("attnd_inflight_bytes") == 0, what="the budget given back")


def test_a_body_inflates_to_the_limit_and_no_further(start):
    small = start("--max-body", 100000)
    text = json.dumps(FIELDS).encode()
    assert post(small, gzip.compress(text + b" " * (100000 - len(text)))).status == 200
    reply = post(small, gzip.compress(text + b" " * (100001 - len(text))))
    assert (reply.status, reply.json["code"]) == (413, "body-too-large")


def test_what_inflates_beyond_the_budget_never_fits(start):
    small = start("--max-inflight", MIB)
    reply = post(small, gzip.compress(b" " * (4 * MIB)))
    assert (reply.status, reply.json["code"]) == (413, "never-fits") and str(MIB) in reply.json["detail"]
    small.wait_until(lambda: small.metric("attnd_inflight_bytes") == 0, what="the budget given back")


def test_bombs_do_not_hold_up_the_loop(start):
    one = start("--workers", 1)
    bomb = gzip.compress(b" " * (60 * MIB))
    with Busy(one, length=8000):
        replies = together(one, [bomb] * 3, headers={"Content-Encoding": "gzip"})
        assert one.get("/healthz").status == 200
    assert {r.json["code"] for r in replies} == {"syntax"}


# ---- replies
def test_a_reply_is_compressed_only_when_asked_for(daemon):
    body = body_of(60, 8)
    plain = daemon.post("/v1/attention", body)
    assert "content-encoding" not in plain.headers and plain.headers["vary"].endswith("Accept-Encoding")
    for accept, wanted in (("gzip", "gzip"), ("deflate", "deflate"), ("gzip, deflate, br", "gzip"),
                           ("gzip;q=0.1, deflate;q=0.9", "deflate"), ("*;q=0.5", "gzip"), ("identity", None),
                           ("gzip;q=0", None), ("br", None), ("identity, gzip;q=0.5", None)):
        reply = daemon.post("/v1/attention", body, {"Accept-Encoding": accept})
        assert reply.status == 200 and reply.headers.get("content-encoding") == wanted, (accept, reply)
        assert unpack(reply) == plain.body
        assert reply.headers["vary"].endswith("Accept-Encoding") and "server-timing" in reply.headers
        assert wanted is None or len(reply.body) < len(plain.body) * 0.7


def test_both_ways_at_once(daemon):
    body = body_of(60, 8)
    reply = post(daemon, gzip.compress(body.encode()), **{"Accept-Encoding": "gzip"})
    assert gzip.decompress(reply.body) == daemon.post("/v1/attention", body).body


def test_a_short_reply_stays_as_it_is_unless_the_client_cannot_take_it_so(daemon):
    plain = daemon.attend(**FIELDS)
    assert len(plain.body) < 1024
    reply = daemon.attend({"Accept-Encoding": "gzip"}, **FIELDS)
    assert reply.body == plain.body and "content-encoding" not in reply.headers
    reply = daemon.attend({"Accept-Encoding": "gzip, identity;q=0"}, **FIELDS)
    assert reply.headers["content-encoding"] == "gzip" and unpack(reply) == plain.body


def test_a_client_that_can_take_nothing_is_406(daemon):
    for accept in ("identity;q=0", "*;q=0", "br, *;q=0"):
        reply = daemon.attend({"Accept-Encoding": accept}, **FIELDS)
        assert (reply.status, reply.json["code"]) == (406, "not-acceptable")


def test_errors_are_never_compressed(daemon):
    fields = {"query": [[1]], "x" * 180: 1}
    reply = daemon.attend({"Accept-Encoding": "gzip, identity;q=0"}, **fields)
    assert reply.status == 400 and "content-encoding" not in reply.headers and reply.json["code"] == "unknown-field"


def test_pages_are_compressed_likewise_and_head_says_the_same(daemon):
    plain = daemon.get("/")
    only = {"Accept-Encoding": "gzip, identity;q=0"}
    reply = daemon.get("/", **only)
    assert reply.headers["content-encoding"] == "gzip" and unpack(reply) == plain.body
    head = daemon.request("HEAD", "/", headers=only)
    assert head.headers["content-encoding"] == "gzip" and head.headers["content-length"] == str(len(reply.body))
    metrics = daemon.get("/metrics", **{"Accept-Encoding": "gzip"})
    assert metrics.headers["content-encoding"] == "gzip" and unpack(metrics).startswith(b"# HELP attnd_")
    health = daemon.get("/healthz", **{"Accept-Encoding": "gzip"})
    assert "content-encoding" not in health.headers and health.json == {"status": "ok"}


def test_a_client_that_leaves_while_its_reply_is_compressed_costs_nothing(start):
    one = start("--workers", 1)
    body = body_of(1500, 4).encode()
    for _ in range(3):
        with one.connect() as sock:
            sock.sendall(raw.post_head("/v1/attention", len(body), ["Accept-Encoding: gzip"]) + body)
            one.wait_until(lambda: one.metric("attnd_workers_busy") == 1, what="a busy worker")
    one.wait_until(lambda: one.metric("attnd_inflight_bytes") == 0, 30, "the budget given back")
    assert one.attend(**FIELDS).status == 200
