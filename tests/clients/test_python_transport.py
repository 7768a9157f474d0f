"""The Python client on the wire: what it sends, when it tries again, how long it waits, what it raises."""
import builtins
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import attnd
import numpy as np
import pytest
from fake_daemon import COMPUTED, FakeDaemon, close, drip, problem, raw, reply, silent


def patient(fake, **settings):
    """A client whose waits between attempts are noted and not made."""
    client = attnd.Client(fake.url, **{"timeout": 20, "encoding": "json", **settings})
    waits = []
    client._transport._sleep = waits.append
    return client, waits


def ask(client, **options):
    return client.attention([[1]], **options)


# ---- what the daemon turned away
@pytest.mark.parametrize("status", [429, 503])
def test_a_request_turned_away_is_sent_again_after_the_time_asked_for(status):
    with FakeDaemon(problem(status, Retry_After=2), problem(status, Retry_After=1), reply()) as fake:
        client, waits = patient(fake)
        assert ask(client).context == [[7]]
    assert waits == [2, 1]
    assert len({asked.body for asked in fake.asked}) == 1 and len(fake.asked) == 3


def test_a_date_to_come_back_at_is_waited_for():
    date = format_datetime(datetime.now(timezone.utc) + timedelta(seconds=12), usegmt=True)
    with FakeDaemon(problem(429, Retry_After=date), reply()) as fake:
        client, waits = patient(fake)
        ask(client)
    assert len(waits) == 1 and 9 < waits[0] <= 12


def test_without_a_time_asked_for_waits_are_short_and_grow():
    with FakeDaemon(problem(503)) as fake:
        client, waits = patient(fake)
        with pytest.raises(attnd.OverloadedError) as refused:
            ask(client)
    assert refused.value.retry_after is None
    assert len(waits) == 3 and all(0.05 * 2**n <= wait <= 0.1 * 2**n for n, wait in enumerate(waits))


def test_attempts_are_counted():
    with FakeDaemon(problem(429, "queue-full", Retry_After=3)) as fake:
        client, waits = patient(fake, retries=attnd.Retries(attempts=3))
        with pytest.raises(attnd.OverloadedError) as refused:
            ask(client)
    assert (refused.value.status, refused.value.code, refused.value.retry_after) == (429, "queue-full", 3)
    assert waits == [3, 3] and len(fake.asked) == 3


def test_waits_stay_within_their_total():
    with FakeDaemon(problem(429, Retry_After=4)) as fake:
        client, waits = patient(fake, retries=attnd.Retries(attempts=100, seconds=10))
        with pytest.raises(attnd.OverloadedError):
            ask(client)
    assert waits == [4, 4]


def test_a_wait_beyond_the_timeout_of_the_call_is_not_begun():
    with FakeDaemon(problem(429, Retry_After=21)) as fake:
        client, waits = patient(fake)
        with pytest.raises(attnd.OverloadedError):
            ask(client)
    assert waits == []


@pytest.mark.parametrize("status,kind", [(400, attnd.RequestError), (413, attnd.RequestError), (500, attnd.RequestError),
                                         (504, attnd.DeadlineError)])
def test_other_refusals_are_final(status, kind):
    with FakeDaemon(problem(status)) as fake:
        client, waits = patient(fake)
        with pytest.raises(kind) as refused:
            ask(client)
    assert type(refused.value) is kind and refused.value.status == status
    assert waits == [] and len(fake.asked) == 1


# ---- connections
def test_a_connection_serves_one_call_after_another():
    with FakeDaemon(reply()) as fake:
        client, _ = patient(fake)
        for _ in range(3):
            ask(client)
    assert [asked.connection for asked in fake.asked] == [1, 1, 1]


def test_a_connection_that_the_daemon_means_to_close_is_not_used_again():
    with FakeDaemon(reply(Connection="close")) as fake:
        client, _ = patient(fake)
        ask(client)
        ask(client)
    assert [asked.connection for asked in fake.asked] == [1, 2]


def test_an_idle_connection_that_was_closed_goes_unnoticed():
    with FakeDaemon(reply()) as fake:
        client, _ = patient(fake)
        ask(client)
        fake.hang_up()
        ask(client)
    assert [asked.connection for asked in fake.asked] == [1, 2]


def test_a_connection_that_closes_before_any_reply_is_made_once_more_and_no_more():
    with FakeDaemon(close, reply()) as fake:
        client, _ = patient(fake)
        ask(client)
    assert [asked.connection for asked in fake.asked] == [1, 2]
    with FakeDaemon(close) as fake:
        client, waits = patient(fake)
        with pytest.raises(attnd.ConnectionError, match="before any reply"):
            ask(client)
    assert len(fake.asked) == 2 and waits == []


def test_a_reply_that_breaks_off_is_not_asked_for_again():
    with FakeDaemon(raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")) as fake:
        client, _ = patient(fake)
        with pytest.raises(attnd.ConnectionError, match="in the middle"):
            ask(client)
    assert len(fake.asked) == 1


def test_nobody_listening_is_a_connection_error_of_both_kinds():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        client = attnd.Client(f"http://127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(attnd.ConnectionError) as refused:
            ask(client)
    assert isinstance(refused.value, builtins.ConnectionError) and isinstance(refused.value, attnd.AttndError)


def test_an_answer_given_before_the_body_was_read_is_the_answer(tmp_path):
    def refuse_early(fake, sock):
        problem(413, "body-too-large")(fake, sock)
        sock.shutdown(socket.SHUT_RD)  # on a unix socket the client's next write fails, and the answer stays readable
        while sock.recv(1 << 16):  # what was written before, so that there is room for a next write
            pass
        fake.over.wait(30)
        return False

    with FakeDaemon(refuse_early, path=tmp_path / "socket", read_bodies=False) as fake:
        client, _ = patient(fake, encoding="safetensors")
        with pytest.raises(attnd.RequestError) as refused:
            client.attention(np.zeros((1024, 4096)))
    assert (refused.value.status, refused.value.code) == (413, "body-too-large")
    assert len(fake.asked) == 1


def test_threads_share_a_client_and_no_connection():
    with FakeDaemon(reply()) as fake:
        client, _ = patient(fake, idle_connections=4)
        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(lambda _: ask(client), range(64)))
    assert len(results) == len(fake.asked) == 64
    by_connection = [asked.connection for asked in fake.asked]
    assert len(set(by_connection)) < 64  # they are used again
    assert len(client._transport._idle) <= 4


def test_a_closed_client_keeps_no_connection():
    with FakeDaemon(reply()) as fake:
        with attnd.Client(fake.url, encoding="json") as client:
            ask(client)
        assert client._transport._idle == []
        ask(client)
        assert client._transport._idle == []


# ---- time
@pytest.mark.parametrize("action", [silent, drip])
def test_the_timeout_bounds_the_whole_call_however_the_reply_comes(action):
    with FakeDaemon(action) as fake:
        client, _ = patient(fake, timeout=0.3)
        began = time.monotonic()
        with pytest.raises(attnd.TimeoutError) as late:
            ask(client)
        assert 0.25 < time.monotonic() - began < 5
    assert isinstance(late.value, builtins.TimeoutError)
    assert len(fake.asked) == 1


def test_the_timeout_bounds_the_sending_too(tmp_path):
    with FakeDaemon(silent, path=tmp_path / "socket", read_bodies=False) as fake:
        client, _ = patient(fake, encoding="safetensors")
        with pytest.raises(attnd.TimeoutError):
            client.attention(np.zeros((1024, 4096)), timeout=0.2)


def test_a_call_may_have_a_timeout_of_its_own():
    with FakeDaemon(silent) as fake:
        client, _ = patient(fake, timeout=None)
        with pytest.raises(attnd.TimeoutError):
            ask(client, timeout=0.1)


# ---- what is sent
def test_headers_say_what_the_call_says():
    with FakeDaemon(reply()) as fake:
        client, _ = patient(fake, token="secret", headers={"X-Tenant": "a"})
        ask(client, timeout_ms=250, request_id="mine")
    headers = fake.asked[0].headers
    wanted = {"authorization": "Bearer secret", "x-tenant": "a", "x-timeout-ms": "250", "x-request-id": "mine",
              "content-type": "application/json", "accept": "application/json"}
    assert {name: headers[name] for name in wanted} == wanted
    assert json.loads(fake.asked[0].body) == {"query": [[1.0]]}


def test_safetensors_is_the_encoding_unless_another_is_chosen():
    with FakeDaemon(reply()) as fake:
        attnd.Client(fake.url).attention([[1]])
    headers = fake.asked[0].headers
    assert headers["content-type"] == headers["accept"] == "application/x-safetensors"
    with pytest.raises(ValueError, match="encoding"):
        attnd.Client(encoding="xml")


def test_paths_go_below_that_of_the_url_and_names_are_quoted():
    with FakeDaemon(reply(body={"data": []})) as fake:
        client = attnd.Client(fake.url + "/below/")
        client.models()
        client.latency()
        client.model("a/b c")
    assert [asked.path for asked in fake.asked] == ["/below/v1/models", "/below/v1/latency", "/below/v1/models/a%2Fb%20c"]


@pytest.mark.parametrize("url", ["127.0.0.1:8080", "ftp://host", "http://", ""])
def test_a_url_that_is_none_is_refused_at_once(url):
    with pytest.raises(ValueError, match="url"):
        attnd.Client(url)


# ---- what comes back
def test_a_refusal_says_all_that_the_daemon_said():
    with FakeDaemon(problem(400, "shape-mismatch", "3 is not 4", "/key/0", X_Request_Id="r-1")) as fake:
        with pytest.raises(attnd.RequestError) as refused:
            ask(patient(fake)[0])
    error = refused.value
    assert (error.status, error.code, error.title) == (400, "shape-mismatch", "Some title")
    assert (error.detail, error.pointer, error.request_id) == ("3 is not 4", "/key/0", "r-1")
    assert str(error) == "400 shape-mismatch at /key/0: 3 is not 4"


def test_a_refusal_in_plain_text_is_a_refusal_still():
    with FakeDaemon(reply(431, b"headers too large", "text/html")) as fake:
        with pytest.raises(attnd.RequestError, match="431: headers too large") as refused:
            ask(patient(fake)[0])
    assert (refused.value.code, refused.value.pointer) == (None, None)


@pytest.mark.parametrize("action", [
    raw(b"SSH-2.0-server\r\n\r\n"),
    reply(body=b"<html>", media="text/html"),
    reply(body=b"{"),
    reply(body=[1]),
    reply(body={"context": [[1]]}),
    reply(body={"shape": COMPUTED["shape"]}),
    reply(body={"context": [[1], [1, 2]], "shape": COMPUTED["shape"]}),
    reply(body={"context": [[1]], "shape": {"batch": 1}}),
    reply(body=b"short", media="application/x-safetensors"),
])
def test_a_reply_against_the_contract_is_a_protocol_error(action):
    with FakeDaemon(action) as fake, pytest.raises(attnd.ProtocolError):
        ask(patient(fake)[0])


def test_a_result_carries_its_timing_batch_and_id():
    timing = "read;dur=0.5, parse;dur=1e-3, queue;dur=0, compute;dur=12.25, format;dur=3"
    with FakeDaemon(reply(Server_Timing=timing, X_Batch_Size=3, X_Request_Id="r-2")) as fake:
        result = ask(patient(fake)[0])
    assert result.timing == {"read": 0.5, "parse": 0.001, "queue": 0, "compute": 12.25, "format": 3}
    assert (result.batch_size, result.request_id) == (3, "r-2")


def test_health_is_asked_once_and_is_no_error_while_the_daemon_drains():
    with FakeDaemon(problem(503, "draining"), reply(body={"status": "ok"})) as fake:
        client, waits = patient(fake)
        assert client.health() is False
        assert client.health() is True
    assert waits == [] and [asked.path for asked in fake.asked] == ["/healthz", "/healthz"]
