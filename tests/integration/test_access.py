"""Who may ask: bearer tokens, the hosts that requests may name, the origins whose pages may read."""
import json
import subprocess

import pytest
import raw
from daemon import BINARY

FIELDS = dict(query=[[1, 0], [0, 1]])
BODY = json.dumps(FIELDS)
ALPHA = {"Authorization": "Bearer alpha-1"}


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    path = tmp_path_factory.mktemp("tokens") / "tokens"
    path.write_text("# two of them\nalpha-1\n\nbeta.2==\n")
    return path


@pytest.fixture
def guarded(start, tokens):
    return start("--tokens-file", tokens)


# ---- tokens
def test_a_token_opens_every_path(guarded):
    for token in ("alpha-1", "beta.2=="):
        headers = {"Authorization": f"Bearer {token}"}
        assert guarded.attend(headers, **FIELDS).status == 200
        for path in ("/", "/metrics", "/v1/models", "/v1/latency"):
            assert guarded.request("GET", path, headers=headers).status == 200
    assert guarded.attend({"authorization": "bearer alpha-1"}, **FIELDS).status == 200


@pytest.mark.parametrize("value", [None, "", "Bearer", "Bearer ", "Bearer alpha", "Bearer alpha-11", "Bearer ALPHA-1",
                                   "Basic alpha-1", "alpha-1", "Bearer # two of them", "Bearer " + "a" * 5000])
def test_without_a_known_token_every_path_is_401(guarded, value):
    headers = {} if value is None else {"Authorization": value}
    for method, path in (("GET", "/"), ("GET", "/metrics"), ("GET", "/v1/models"), ("GET", "/nowhere"),
                         ("DELETE", "/v1/models"), ("POST", "/v1/attention"), ("POST", "/v1/models/none/attention")):
        reply = guarded.request(method, path, body=BODY if method == "POST" else None, headers=headers)
        assert reply.status == 401 and reply.json["code"] == "unauthorized", (path, reply)
        assert reply.headers["www-authenticate"].startswith("Bearer")
        assert "alpha" not in reply.json["detail"]


def test_health_and_options_need_none(guarded):
    assert guarded.get("/healthz").status == 200
    assert guarded.request("HEAD", "/healthz").status == 200
    assert guarded.request("OPTIONS", "/v1/attention").status == 204
    address = f"127.0.0.1:{guarded.port}"
    assert subprocess.run([BINARY, "--healthcheck", "--listen", address], timeout=30).returncode == 0


def test_a_body_without_a_token_is_not_asked_for(guarded):
    with guarded.connect() as sock:
        sock.sendall(raw.post_head("/v1/attention", 5000, ["Expect: 100-continue"]))
        assert b" 401 " in sock.recv(65536).split(b"\r\n")[0]


def test_a_short_body_without_a_token_leaves_the_connection_and_the_answer_readable(guarded):
    with guarded.connect() as sock:
        stream = raw.Stream(sock)
        sock.sendall(raw.post_head("/v1/attention", 300000) + b" " * 300000)
        assert stream.reply()[0] == 401
        sock.sendall(raw.post("/v1/attention", FIELDS, ["Authorization: Bearer alpha-1"]))
        assert stream.reply()[0] == 200


def test_a_long_body_without_a_token_is_refused_before_it_comes(guarded):
    with guarded.connect() as sock:
        stream = raw.Stream(sock)
        sock.sendall(raw.post_head("/v1/attention", 50 << 20))
        status, headers, _ = stream.reply()
        assert status == 401 and headers["connection"].lower() == "close" and stream.closed()


def test_a_chunked_body_without_a_token_is_read_only_so_far(guarded):
    with guarded.connect() as sock:
        sock.sendall(raw.post_head("/v1/attention", extra=["Transfer-Encoding: chunked"]) + b"3\r\n{ }\r\n0\r\n\r\n")
        assert raw.Stream(sock).reply()[0] == 401
    with guarded.connect() as sock:
        sock.sendall(raw.post_head("/v1/attention", extra=["Transfer-Encoding: chunked"]))
        with pytest.raises(ConnectionError):
            for _ in range(100000):
                sock.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")


def test_a_refusal_holds_no_memory(guarded):
    with guarded.connect() as sock:
        sock.sendall(raw.post_head("/v1/attention", 1 << 20) + b" " * 100)
        reply = guarded.request("GET", "/metrics", headers=ALPHA).body.decode()
        assert "attnd_inflight_bytes 0" in reply


def test_a_refusal_is_counted(guarded):
    for _ in range(3):
        assert guarded.attend(**FIELDS).status == 401
    page = guarded.request("GET", "/metrics", headers=ALPHA).body.decode()
    assert 'attnd_requests_total{operation="attention",code="401"} 3' in page


@pytest.mark.parametrize("text,words", [(None, "No such file"), ("", "no token"), ("# none\n", "no token"),
                                        ("good\nnot good\n", ":2:"), ("x" * 300, "longer than 256")])
def test_a_tokens_file_that_is_of_no_use_ends_the_start(tmp_path, text, words):
    path = tmp_path / "tokens"
    if text is not None:
        path.write_text(text)
    for more in ([], ["--check-config"]):
        done = subprocess.run([BINARY, "--listen", "127.0.0.1:0", "--tokens-file", path, *more], capture_output=True,
                              text=True, timeout=60)
        assert done.returncode == 1 and words in done.stderr and str(path) in done.stderr


# ---- hosts
def test_a_host_that_is_not_listed_is_refused(start):
    one = start("--allowed-hosts", "attn.example, 127.0.0.1")
    assert one.attend(**FIELDS).status == 200  # 127.0.0.1 and a port
    for host in ("attn.example", "ATTN.example:99"):
        assert one.attend({"Host": host}, **FIELDS).status == 200
    for host in ("evil.example", "attn.example.evil", "localhost", "127.0.0.1.evil:80", ""):
        for method, path in (("POST", "/v1/attention"), ("GET", "/v1/models"), ("OPTIONS", "/v1/attention")):
            reply = one.request(method, path, BODY if method == "POST" else None, {"Host": host})
            assert (reply.status, reply.json["code"]) == (400, "bad-header"), (host, reply)
            assert host in reply.json["detail"]
    assert one.request("GET", "/healthz", headers={"Host": "10.0.0.7"}).status == 200


def test_without_a_list_any_host_is_served(daemon):
    assert daemon.attend({"Host": "anything.example:1"}, **FIELDS).status == 200


# ---- origins
@pytest.fixture
def paged(start):
    return start("--allowed-origins", "https://app.example, http://localhost:3000")


def test_by_default_no_page_may_read(daemon):
    for reply in (daemon.attend({"Origin": "https://app.example"}, **FIELDS),
                  daemon.request("OPTIONS", "/v1/attention",
                                 headers={"Origin": "https://app.example", "Access-Control-Request-Method": "POST"})):
        assert reply.status in (200, 204)
        assert not [name for name in reply.headers if name.startswith("access-control")]


def test_a_listed_origin_may_read_replies_and_errors(paged):
    for origin in ("https://app.example", "http://localhost:3000"):
        for reply in (paged.attend({"Origin": origin}, **FIELDS), paged.attend({"Origin": origin}, query=3),
                      paged.request("GET", "/v1/models", headers={"Origin": origin}),
                      paged.request("GET", "/nowhere", headers={"Origin": origin})):
            assert reply.headers["access-control-allow-origin"] == origin
            assert "Origin" in reply.headers["vary"]
            exposed = reply.headers["access-control-expose-headers"]
            assert {"X-Request-Id", "Server-Timing", "X-Batch-Size", "Retry-After"} <= set(exposed.split(", "))
            assert "access-control-allow-credentials" not in reply.headers


@pytest.mark.parametrize("origin", ["https://evil.example", "http://app.example", "https://app.example:444", "null",
                                    "https://app.example.evil", "*", None])
def test_another_origin_may_not(paged, origin):
    reply = paged.attend({"Origin": origin} if origin else {}, **FIELDS)
    assert reply.status == 200 and "access-control-allow-origin" not in reply.headers
    assert "Origin" in reply.headers["vary"]


def test_a_preflight_is_answered_with_methods_and_headers(paged):
    ask = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST",
           "Access-Control-Request-Headers": "content-type, authorization"}
    reply = paged.request("OPTIONS", "/v1/attention", headers=ask)
    assert reply.status == 204 and reply.headers["access-control-allow-origin"] == "https://app.example"
    assert "POST" in reply.headers["access-control-allow-methods"]
    assert {"content-type", "authorization", "x-timeout-ms", "content-encoding"} <= set(
        reply.headers["access-control-allow-headers"].lower().split(", "))
    assert int(reply.headers["access-control-max-age"]) > 0
    other = paged.request("OPTIONS", "/v1/attention", headers={**ask, "Origin": "https://evil.example"})
    assert other.status == 204 and "access-control-allow-methods" not in other.headers


def test_a_star_is_said_only_when_it_is_configured(start):
    one = start("--allowed-origins", "*")
    reply = one.attend({"Origin": "https://any.example"}, **FIELDS)
    assert reply.headers["access-control-allow-origin"] == "*" and "Origin" not in reply.headers["vary"]


def test_a_preflight_needs_no_token_and_a_401_can_be_read(start, tokens):
    one = start("--tokens-file", tokens, "--allowed-origins", "https://app.example")
    ask = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
    assert one.request("OPTIONS", "/v1/attention", headers=ask).headers["access-control-allow-origin"]
    reply = one.attend({"Origin": "https://app.example"}, **FIELDS)
    assert reply.status == 401 and reply.headers["access-control-allow-origin"] == "https://app.example"
