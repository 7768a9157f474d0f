"""SIGTERM: what was admitted is answered, what comes after is told to go elsewhere, exit 0."""
import json
import os
import threading
import time

import pytest
import raw
from load import Busy, body_of, heavy

ROUNDS = int(os.environ.get("ATTND_DRAIN_ROUNDS", "5"))


@pytest.mark.parametrize("round", range(ROUNDS))
def test_sigterm_answers_all_20_in_flight(start, round):
    one = start("--workers", 1)
    bodies = [heavy(2000, 8).encode()] + [body_of(20 + n % 3, 8, n).encode() for n in range(19)]
    socks = []
    for body in bodies:
        socks.append(one.connect(60))
        socks[-1].sendall(raw.post_head("/v1/attention", len(body)) + body)
        if len(socks) == 1:
            one.wait_until(lambda: one.metric("attnd_batch_sequences_count") == 1, what="a call begun")
    one.wait_until(lambda: one.metric("attnd_queue_depth") == 19, what="nineteen waiting")
    one.terminate()
    for n, sock in enumerate(socks):
        reply = raw.Stream(sock).reply()
        assert reply is not None and reply[0] == 200, (round, n, reply)
        sock.close()
    assert one.wait() == 0


def test_while_draining_health_and_new_requests_get_503(start):
    one = start("--workers", 1)
    with Busy(one, length=6000) as busy:
        idle = one.connect()
        one.terminate()
        one.wait_log("event=draining")
        health = one.get("/healthz")
        assert health.status == 503
        refused = one.attend(query=[[1]])
        assert (refused.status, refused.json["code"]) == (503, "draining")
        idle.close()
    assert busy.reply.status == 200
    assert one.wait() == 0


def test_the_drain_deadline_ends_what_takes_too_long(start):
    one = start("--workers", 1, "--drain-timeout", 200)
    sock = one.connect()
    body = json.dumps({**json.loads(heavy(8000)), "timeout_ms": 50000}).encode()
    sock.sendall(raw.post_head("/v1/attention", len(body)) + body)
    one.wait_until(lambda: one.metric("attnd_workers_busy") == 1, what="a busy worker")
    begun = time.monotonic()
    one.terminate()
    assert one.wait() == 0
    assert time.monotonic() - begun < 15
    sock.close()


def test_sigterm_with_idle_connections_ends_at_once(start):
    one = start()
    socks = [one.connect() for _ in range(5)]
    socks[0].sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    assert raw.Stream(socks[0]).reply()[0] == 200
    begun = time.monotonic()
    one.terminate()
    assert one.wait() == 0 and time.monotonic() - begun < 10
    for sock in socks:
        sock.close()


def test_sigterm_under_traffic_loses_no_admitted_request(start):
    one = start("--workers", 2)
    outcomes, stop = [], threading.Event()

    def client(seed):
        while not stop.is_set():
            try:
                outcomes.append(one.post("/v1/attention", body_of(20, 8, seed)).status)
            except ConnectionRefusedError:
                return
            except (ConnectionError, OSError) as error:
                outcomes.append(repr(error))
                return

    threads = [threading.Thread(target=client, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    one.wait_until(lambda: outcomes.count(200) > 30, what="traffic")
    one.terminate()
    code = one.wait()
    stop.set()
    for thread in threads:
        thread.join()
    assert code == 0
    strays = [o for o in outcomes if o not in (200, 503)]
    assert len(strays) <= 6 and not any("RemoteDisconnected" in str(s) for s in strays), strays
