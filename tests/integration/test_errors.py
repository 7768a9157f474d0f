"""Every error of the contract that a body can meet: status, code, pointer, and words that help."""
import json

import pytest

Q = [[1, 2], [3, 4]]
ERRORS = [  # what, body, status, code, pointer
    ("not_json", "{", 400, "syntax", None),
    ("nothing", "", 400, "syntax", None),
    ("trailing_garbage", '{"query":[[1]]} x', 400, "syntax", None),
    ("not_an_object", "[1]", 400, "not-an-object", ""),
    ("duplicate_key", '{"query":[[1]],"query":[[1]]}', 400, "duplicate-key", None),
    ("duplicate_plain_key", '{"query":[[1]],"heads":1,"heads":1}', 400, "duplicate-key", None),
    ("nul_escape", '{"query":[[1]],"weights":"a\\u0000"}', 400, "nul-escape", None),
    ("nested_too_deep", "[" * 100000, 400, None, None),
    ("nested_too_deep_in_a_tensor", '{"query":' + "[" * 100000, 400, None, None),
    ("unknown_field", dict(query=Q, haeds=2), 400, "unknown-field", "/haeds"),
    ("query_missing", dict(key=Q), 400, "missing-field", "/query"),
    ("query_and_embeddings", dict(query=Q, embeddings=Q), 400, None, None),
    ("query_null", dict(query=None), 400, "wrong-type", "/query"),
    ("query_a_number", dict(query=7), 400, "wrong-type", "/query"),
    ("query_a_string", dict(query="abc"), 400, "wrong-type", "/query"),
    ("query_rank_1", dict(query=[1, 2]), 400, None, "/query"),
    ("query_rank_5", dict(query=[[[[[1]]]]]), 400, None, "/query"),
    ("query_bare_empty", dict(query=[]), 400, None, "/query"),
    ("ragged", dict(query=[[1, 2], [3]]), 400, "ragged", None),
    ("mixed_depth", dict(query=[[1, 2], 3]), 400, "ragged", None),
    ("string_in_tensor", dict(query=[[1, "2"]]), 400, "wrong-type", "/query/0/1"),
    ("null_in_tensor", dict(query=[[1, None]]), 400, "wrong-type", "/query/0/1"),
    ("nan", '{"query":[[1,NaN]]}', 400, "not-finite", "/query/0/1"),
    ("infinity", '{"query":[[-Infinity,1]]}', 400, "not-finite", "/query/0/0"),
    ("beyond_float32", '{"query":[[1,2],[1e39,0]]}', 400, "beyond-float32", "/query/1/0"),
    ("far_beyond", '{"query":[[1e999]]}', 400, "beyond-float32", "/query/0/0"),
    ("count_against_shape", dict(query={"shape": [2, 2], "data": [1, 2, 3]}), 400, "shape-mismatch", None),
    ("shape_missing", dict(query={"data": [1, 2, 3]}), 400, "missing-field", None),
    ("shape_negative", dict(query={"shape": [-1, 2], "data": [1]}), 400, "bad-value", None),
    ("shape_overflow", dict(query={"shape": [2**40, 2**40], "data": []}), 400, "shape-overflow", None),
    ("shape_overflow_beside_zero", dict(query={"shape": [0, 2**40, 2**40], "data": []}), 400, "shape-overflow", None),
    ("zero_width", dict(query={"shape": [2, 0], "data": []}), 400, "zero-width", None),
    ("heads_do_not_divide", dict(query=Q, heads=3), 400, "heads", "/heads"),
    ("heads_zero", dict(query=Q, heads=0), 400, "bad-value", "/heads"),
    ("heads_a_string", dict(query=Q, heads="2"), 400, "wrong-type", "/heads"),
    ("heads_a_fraction", dict(query=Q, heads=1.5), 400, "wrong-type", "/heads"),
    ("heads_null", dict(query=Q, heads=None), 400, "wrong-type", "/heads"),
    ("kv_heads_do_not_divide", dict(query=[[1, 2, 3, 4]], heads=4, kv_heads=3), 400, "heads", None),
    ("key_of_other_width", dict(query=Q, key=[[1, 2, 3]]), 400, "shape-mismatch", None),
    ("value_of_other_length", dict(query=Q, key=Q, value=[[1, 2]]), 400, "shape-mismatch", "/value"),
    ("key_of_other_batch", dict(query=[Q, Q], key=[Q]), 400, "shape-mismatch", "/key"),
    ("key_of_other_rank", dict(query=Q, key=[Q]), 400, "shape-mismatch", "/key"),
    ("rank_4_with_other_heads", dict(query=[[Q]], heads=2), 400, None, "/heads"),
    ("rank_4_with_projections", dict(query=[[Q]], projections={"query": Q}), 400, None, "/projections"),
    ("projections_wrong_type", dict(query=Q, projections=3), 400, "wrong-type", "/projections"),
    ("projection_unknown", dict(query=Q, projections={"queri": Q}), 400, "unknown-field", "/projections/queri"),
    ("projection_shape", dict(query=Q, projections={"query": [[1, 2, 3]]}), 400, "shape-mismatch", "/projections/query"),
    ("bias_without_matrix", dict(query=Q, projections={"query_bias": [1, 2]}), 400, "missing-field",
     "/projections/query"),
    ("bias_shape", dict(query=Q, projections={"query": Q, "query_bias": [1, 2, 3]}), 400, "shape-mismatch",
     "/projections/query_bias"),
    ("layout", dict(query=Q, projection_layout="torch"), 400, "bad-value", "/projection_layout"),
    ("mask_of_numbers", dict(query=Q, mask=[[1, 0], [1, 1]]), 400, "wrong-type", None),
    ("mask_shape", dict(query=Q, mask=[[True, True, True]]), 400, "shape-mismatch", "/mask"),
    ("mask_rank", dict(query=Q, mask=[True, True]), 400, None, "/mask"),
    ("causal_string", dict(query=Q, causal="left"), 400, "bad-value", "/causal"),
    ("causal_fraction", dict(query=Q, causal=1.5), 400, "wrong-type", "/causal"),
    ("causal_list_length", dict(query=Q, causal=[1, 2]), 400, "shape-mismatch", "/causal"),
    ("key_lengths_negative", dict(query=Q, key_lengths=-1), 400, "bad-value", "/key_lengths"),
    ("key_lengths_over", dict(query=Q, key_lengths=3), 400, "bad-value", "/key_lengths"),
    ("key_lengths_count", dict(query=Q, key_lengths=[1, 2, 1]), 400, "shape-mismatch", "/key_lengths"),
    ("scale_string", dict(query=Q, scale="big"), 400, "wrong-type", "/scale"),
    ("scale_beyond", '{"query":[[1]],"scale":1e39}', 400, None, "/scale"),
    ("weights_word", dict(query=Q, weights="max"), 400, "bad-value", "/weights"),
    ("weights_number", dict(query=Q, weights=1), 400, "wrong-type", "/weights"),
    ("precision_0", dict(query=Q, precision=0), 400, "bad-value", "/precision"),
    ("precision_10", dict(query=Q, precision=10), 400, "bad-value", "/precision"),
    ("precision_word", dict(query=Q, precision="long"), 400, "bad-value", "/precision"),
    ("timeout_zero", dict(query=Q, timeout_ms=0), 400, "bad-value", "/timeout_ms"),
    ("timeout_over", dict(query=Q, timeout_ms=10**9), 400, "bad-value", "/timeout_ms"),
    ("softcap_zero", dict(query=Q, softcap=0), 400, "bad-value", "/softcap"),
    ("window_below", dict(query=Q, window=[-2, 0]), 400, "bad-value", None),
    ("window_length", dict(query=Q, window=[1]), 400, None, None),
    ("sink_count", dict(query=Q, sink=[1, 2]), 400, "shape-mismatch", "/sink"),
    ("sequence_too_long", dict(query={"shape": [20000, 1], "data": [0] * 20000}), 413, "sequence-too-long", "/query"),
    ("result_not_finite", dict(query=[[3e38]], key=[[3e38]], value=[[1]]), 422, "result-not-finite", None),
]


@pytest.mark.parametrize("what, body, status, code, pointer", ERRORS, ids=[e[0] for e in ERRORS])
def test_a_bad_body_is_refused(daemon, what, body, status, code, pointer):
    reply = daemon.post("/v1/attention", body)
    assert reply.status == status, reply
    assert reply.headers["content-type"] == "application/problem+json"
    problem = reply.json
    assert set(problem) == {"type", "title", "status", "detail", "code", "pointer"}
    assert problem["status"] == status and problem["detail"] and problem["title"]
    if code:
        assert problem["code"] == code, problem
    if pointer is not None:
        assert problem["pointer"] == pointer, problem


def test_an_unknown_field_names_the_nearest_known_one(daemon):
    assert "heads" in daemon.attend(query=Q, haeds=2).json["detail"]


def test_a_mask_of_numbers_points_at_bias(daemon):
    assert "bias" in daemon.attend(query=Q, mask=[[1, 0], [1, 1]]).json["detail"]


def test_a_limit_is_told_in_the_words(daemon):
    reply = daemon.attend(query={"shape": [20000, 1], "data": [0] * 20000})
    assert "16384" in reply.json["detail"] and "20000" in reply.json["detail"]


def test_syntax_comes_before_limits(start):
    small = start("--max-elements", 4)
    body = '{"query":[[1,2,3,4,5]]'
    assert small.post("/v1/attention", body).json["code"] == "syntax"
    full = small.post("/v1/attention", body + "}")
    assert (full.status, full.json["code"]) == (413, "too-many-elements")
    assert "4" in full.json["detail"]


def test_a_reply_over_its_limit_says_what_would_fit(start):
    small = start("--max-reply", 4000)
    fields = dict(query=[[0]] * 30)
    reply = small.attend(**fields)
    assert (reply.status, reply.json["code"]) == (413, "reply-too-large")
    assert "4000" in reply.json["detail"] and "weights" in reply.json["detail"]
    assert small.attend(weights=False, **fields).status == 200


def test_numbers_that_only_look_too_large_are_fine(daemon):
    reply = daemon.post("/v1/attention", '{"query":[[17000000000000000000, 1e-400, -0.0]]}')
    assert reply.status == 200 and "1.7e19" in reply.body.decode().replace("1.7e+19", "1.7e19").replace(
        "17000000000000000000", "1.7e19")


# ---- what the path, the method and the headers can meet
def test_no_such_path(daemon):
    reply = daemon.get("/v1/nothing")
    assert (reply.status, reply.json["code"]) == (404, "no-such-path")


def test_no_such_model(daemon):
    for reply in (daemon.get("/v1/models/none"), daemon.post("/v1/models/none/attention", dict(query=Q))):
        assert (reply.status, reply.json["code"]) == (404, "no-such-model")


def test_a_wrong_method_names_the_allowed_ones(daemon):
    reply = daemon.get("/v1/attention")
    assert reply.status == 405 and "POST" in reply.headers["allow"]
    reply = daemon.request("DELETE", "/v1/models")
    assert reply.status == 405 and "GET" in reply.headers["allow"]


def test_every_route_answers_options(daemon):
    for path, method in (("/v1/attention", "POST"), ("/v1/models", "GET"), ("/healthz", "GET"),
                         ("/v1/models/m/attention", "POST"), ("/metrics", "GET"), ("/v1/latency", "GET")):
        reply = daemon.request("OPTIONS", path)
        assert reply.status in (200, 204) and method in reply.headers["allow"], (path, reply)


def test_get_routes_answer_head(daemon):
    for path in ("/healthz", "/v1/models", "/metrics", "/v1/latency"):
        reply = daemon.request("HEAD", path)
        assert reply.status == 200 and reply.body == b"" and int(reply.headers["content-length"]) > 0


def test_an_accept_that_cannot_be_met(daemon):
    reply = daemon.attend(headers={"Accept": "text/html"}, query=Q)
    assert (reply.status, reply.json["code"]) == (406, "not-acceptable")
    for accept in ("*/*", "application/*", "text/html, application/json;q=0.5", "application/json"):
        assert daemon.attend(headers={"Accept": accept}, query=Q).status == 200
    assert daemon.attend(headers={"Accept": "application/json;q=0"}, query=Q).status == 406


def test_a_media_type_that_is_not_json_gets_a_hint(daemon):
    for kind in ("application/x-www-form-urlencoded", "text/plain"):
        reply = daemon.request("POST", "/v1/attention", body=json.dumps(dict(query=Q)), headers={"Content-Type": kind})
        assert (reply.status, reply.json["code"]) == (415, "media-type")
        assert "--json" in reply.json["detail"]
    ok = daemon.attend(headers={"Content-Type": "application/json; charset=utf-8"}, query=Q)
    assert ok.status == 200


def test_an_unknown_encoding_is_refused(daemon):
    reply = daemon.attend(headers={"Content-Encoding": "zstd"}, query=Q)
    assert (reply.status, reply.json["code"]) == (415, "content-encoding")


def test_a_header_deadline_over_the_configured_one_is_refused(daemon):
    for value in ("1000000000", "0", "-5", "soon", ""):
        reply = daemon.attend(headers={"X-Timeout-Ms": value}, query=Q)
        assert reply.status == 400, (value, reply)
    assert daemon.attend(headers={"X-Timeout-Ms": "5000"}, query=Q).status == 200


def test_replies_carry_their_identity_and_times(daemon):
    reply = daemon.attend(headers={"X-Request-Id": "abc-123"}, query=Q)
    assert reply.headers["x-request-id"] == "abc-123"
    timing = reply.headers["server-timing"]
    for stage in ("read", "parse", "queue", "compute", "format"):
        assert f"{stage};dur=" in timing
    assert reply.headers["x-batch-size"] == "1"
    made = [daemon.attend(query=Q).headers["x-request-id"] for _ in range(2)]
    assert made[0] and made[1] and made[0] != made[1]
    assert daemon.get("/v1/nothing").headers["x-request-id"]


def test_a_request_id_that_is_not_fit_to_print_is_replaced(daemon):
    reply = daemon.attend(headers={"X-Request-Id": "x" * 500}, query=Q)
    assert reply.status == 200 and len(reply.headers["x-request-id"]) <= 128
