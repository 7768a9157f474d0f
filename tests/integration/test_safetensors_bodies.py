"""Requests and replies in application/x-safetensors: the same meaning and bits as JSON, and what only they can say."""
import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from test_attention_options import draw, sent
from tensors import MEDIA, BFloat16, ask, body_of, frame, nested, pack, send, unpack, widened

SQUARE = {name: draw(seed, 6, 6) for seed, name in enumerate(("query", "key", "value", "output"), 20)}
REQUESTS = {
    "plain": dict(query=draw(1, 5, 6)),
    "batch": dict(query=draw(1, 3, 5, 6), key=draw(2, 3, 4, 6), value=draw(3, 3, 4, 8), heads=2, causal=True),
    "split": dict(query=draw(1, 2, 4, 3, 5), key=draw(2, 2, 2, 6, 5), scale=0.3, weights="mean"),
    "masks": dict(embeddings=draw(1, 2, 4, 6), heads=2, mask=draw(5, 2, 1, 4, 4) < 0.5, bias=draw(6, 2, 4, 4),
                  key_lengths=[4, 2], window=[2, 1], softcap=1.5, weights={"stage": ["scores", "capped", "softmax"]}),
    "projected": dict(query=draw(1, 4, 6), heads=3, projections={**SQUARE, "key_bias": draw(7, 6)},
                      projection_layout="out_in", positions="rope", position_offset=3, projected=True,
                      statistics=["entropy", "logsumexp", "max"]),
    "past": dict(query=draw(1, 2, 1, 6), heads=2, kv_heads=2, past_key=draw(2, 2, 2, 5, 3), past_value=draw(3, 2, 2, 5, 3),
                 causal=[5, 3], weights={"top_k": 2, "heads": [-1], "queries": [0]}),
    "sink": dict(query=draw(1, 4, 6), heads=2, sink=[0.5, -0.25], positions="alibi", weights={"stage": "softmax", "top_k": 9}),
    "no keys": dict(query=draw(1, 2, 6), key=np.zeros((0, 6), np.float32)),
    "no batch": dict(query=np.zeros((0, 3, 6), np.float32), projected=True),
}


def equal(found, expected, place="reply"):
    """Whether two replies, JSON or arrays, have the same members and every number the same float32."""
    if isinstance(expected, dict):
        assert set(found) == set(expected), place
        for name in expected:
            equal(found[name], expected[name], f"{place}.{name}")
        return
    left, right = (x if isinstance(x, np.ndarray) else np.asarray(x, np.float32) for x in (found, expected))
    assert left.size == right.size and (left.size == 0 or left.shape == right.shape), place
    np.testing.assert_array_equal(left.ravel(), right.ravel(), err_msg=place)


@pytest.mark.parametrize("name", REQUESTS)
def test_both_bodies_and_both_replies_say_the_same_bits(daemon, name):
    fields = REQUESTS[name]
    plain = daemon.post("/v1/attention", sent(fields))
    assert plain.status == 200, plain
    for reply in (daemon.post("/v1/attention", sent(fields), {"Accept": MEDIA}), send(daemon, body_of(fields)),
                  send(daemon, body_of(fields), accept=None)):
        assert reply.status == 200, reply
        binary = reply.headers["content-type"] == MEDIA
        equal(nested(reply) if binary else reply.json, plain.json)


def test_a_models_layer_takes_and_gives_both(daemon):
    fields = dict(query=draw(1, 2, 5, 16), weights="mean", causal=True)
    plain = daemon.post("/v1/models/m/attention", sent(fields))
    assert plain.status == 200, plain
    equal(ask(daemon, "/v1/models/m/attention", **fields), plain.json)
    own = send(daemon, body_of({**fields, "projections": {"query": draw(2, 16, 16)}}), "/v1/models/m/attention")
    assert (own.status, own.json["code"], own.json["pointer"]) == (400, "unknown-field", "/projections")
    own = send(daemon, pack({"query": draw(1, 2, 16)}, {"scale": "1"}), "/v1/models/m/attention")
    assert (own.status, own.json["code"], own.json["pointer"]) == (400, "unknown-field", "/scale")


def test_names_of_the_reply_are_paths_and_shape_is_metadata(daemon):
    body = send(daemon, body_of(REQUESTS["sink"])).body
    arrays, dtypes, metadata = unpack(body)
    assert set(arrays) == {"context", "stages.softmax.indices", "stages.softmax.values"}
    assert dtypes == {"context": "F32", "stages.softmax.indices": "I64", "stages.softmax.values": "F32"}
    assert list(metadata) == ["shape"]
    assert json.loads(metadata["shape"])["keys"] == 4
    arrays, *_ = unpack(send(daemon, body_of(REQUESTS["past"])).body)
    assert set(arrays) == {"context", "weights.indices", "weights.values", "present_key", "present_value"}


def test_a_bare_word_stands_for_a_string(daemon):
    x = draw(1, 4, 6)
    for name, bare, text in (("positions", "rope", '"rope"'), ("causal", "top_left", ' "top_left" '),
                             ("weights", "mean", '"mean"'), ("statistics", "entropy", '["entropy"]'),
                             ("precision", "shortest", '"shortest"'), ("output_dtype", "bfloat16", '"bfloat16"')):
        got = [send(daemon, pack({"query": x}, {name: value})) for value in (bare, text)]
        assert got[0].status == 200, got[0]
        assert got[0].body == got[1].body


@pytest.mark.parametrize("form", [None, "first"])
def test_a_sink_may_be_a_tensor(daemon, form):
    x = draw(1, 4, 6)
    as_text = ask(daemon, query=x, heads=2, sink=[0.5, 0.5] if form is None else [0.5, -1])
    sink = np.array(0.5, np.float32) if form is None else np.array([0.5, -1], np.float32)
    equal(ask(daemon, query=x, heads=2, sink=sink), as_text)


# ---- types of elements

@pytest.mark.parametrize("kind", ["F16", "BF16", "F64"])
def test_every_float_type_is_the_float32_it_stands_for(daemon, kind):
    make = {"F16": lambda x: x.astype(np.float16), "BF16": BFloat16, "F64": lambda x: x.astype(np.float64) / 3}[kind]
    value = {"F16": lambda x: x.astype(np.float32), "BF16": lambda x: widened(x.raw), "F64": lambda x: x.astype(np.float32)}
    parts = {name: make(draw(seed, 2, 4, 6)) for seed, name in enumerate(("query", "key", "value"))}
    other = {name: value[kind](x) for name, x in parts.items()}
    rest = dict(heads=2, bias=draw(9, 4, 4))
    equal(ask(daemon, **parts, **rest), ask(daemon, **other, **rest))


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16", "float64"])
def test_output_dtype_rounds_every_float_to_nearest_even(daemon, kind):
    fields = dict(query=draw(1, 9, 6) * 3, heads=2, weights={"top_k": 3}, statistics=["entropy", "max"], projected=True)
    exact, _, _ = unpack(send(daemon, body_of(fields)).body)
    arrays, dtypes, _ = unpack(send(daemon, body_of({**fields, "output_dtype": kind})).body)
    name = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "float64": "F64"}[kind]
    assert set(dtypes) == set(exact)
    for each, x in exact.items():
        if each == "weights.indices":
            assert dtypes[each] == "I64" and np.array_equal(arrays[each], x)
            continue
        wanted = widened(BFloat16(x).raw) if kind == "bfloat16" else x.astype(kind)
        assert dtypes[each] == name and np.array_equal(arrays[each], wanted), each


def test_output_dtype_is_for_binary_replies_only(daemon):
    reply = send(daemon, body_of(dict(query=draw(1, 2, 4), output_dtype="float16")), accept="application/json")
    assert (reply.status, reply.json["code"], reply.json["pointer"]) == (400, "bad-value", "/output_dtype")
    assert daemon.post("/v1/attention", dict(query=[[1]], output_dtype="float16"), {"Accept": MEDIA}).status == 200


# ---- what text cannot say

def test_a_nan_reaches_the_rows_it_touches_and_no_other(daemon):
    x = draw(1, 2, 5, 6)
    for name in ("query", "key", "value"):
        parts = {"query": x, "key": draw(2, 2, 5, 6), "value": draw(3, 2, 5, 6)}
        whole = ask(daemon, **parts)
        parts[name] = parts[name].copy()
        parts[name][1, 2] = np.nan
        got = ask(daemon, **parts)
        touched = [2] if name == "query" else range(5)
        assert np.isnan(got["context"][1, list(touched)]).all(), name
        assert np.array_equal(got["context"][0], whole["context"][0])
        rest = [row for row in range(5) if row not in touched]
        assert np.array_equal(got["context"][1, rest], whole["context"][1, rest])
        text = send(daemon, body_of(parts), accept="application/json")
        assert (text.status, text.json["code"]) == (422, "result-not-finite"), text


def test_a_nan_or_infinity_that_is_masked_changes_nothing(daemon):
    parts = {"query": draw(1, 4, 6), "key": draw(2, 5, 6), "value": draw(3, 5, 6)}
    mask = np.ones((4, 5), bool)
    mask[:, 3] = False
    whole = ask(daemon, **parts, mask=mask)
    for bad in (np.nan, np.inf, -np.inf):
        for name in ("key", "value"):
            spoilt = {**parts, name: parts[name].copy()}
            spoilt[name][3] = bad
            np.testing.assert_allclose(ask(daemon, **spoilt, mask=mask)["context"], whole["context"], atol=1e-6)
    assert ask(daemon, query=np.zeros((1, 1), np.float32), key=np.zeros((3, 1), np.float32),
               value=np.array([[10], [20], [np.nan]], np.float32), key_lengths=2)["context"] == [[15]]


def test_an_infinite_bias_excludes_as_a_mask_does(daemon):
    x, mask = draw(1, 2, 6, 8), draw(2, 2, 2, 6, 6) < 0.4
    mask[0, 0, 1] = False
    fields = dict(query=x, heads=2, weights={"stage": ["masked", "softmax"]}, statistics=["logsumexp", "max", "entropy"])
    by_mask = ask(daemon, **fields, mask=mask)
    equal(ask(daemon, **fields, bias=np.where(mask, 0, -np.inf).astype(np.float32)), by_mask)
    assert np.isneginf(by_mask["stages"]["masked"][~mask]).all()
    assert np.isneginf(by_mask["statistics"]["logsumexp"][0, 0, 1]) and np.isneginf(by_mask["statistics"]["max"][0, 0, 1])
    for kind in ("float16", "bfloat16", "float64"):
        again = ask(daemon, **fields, mask=mask, output_dtype=kind)
        assert np.isneginf(again["stages"]["masked"][~mask]).all()


def test_masks_broadcast_in_every_rank(daemon):
    x = draw(1, 2, 3, 4, 8)
    for shape in ((4, 4), (1, 4), (3, 1, 4), (2, 1, 4, 4), (2, 3, 4, 4)):
        mask = draw(7, *shape) < 0.5
        whole = np.broadcast_to(mask, (2, 3, 4, 4)).copy()
        equal(ask(daemon, query=x, mask=mask), ask(daemon, query=x, mask=whole))


def test_the_format_that_libraries_note_in_metadata_is_ignored(daemon):
    for library in ("pt", "np"):
        reply = send(daemon, pack({"query": draw(1, 3, 2)}, {"format": library, "weights": "false"}))
        assert reply.status == 200 and "weights" not in unpack(reply.body)[0], reply


# ---- choosing the reply

@pytest.mark.parametrize("accept, binary", [
    (None, False), ("*/*", False), ("application/*", False), ("application/json", False), (MEDIA, True),
    (f"{MEDIA}, */*", True), (f"{MEDIA};q=0.5, application/json", False), (f"{MEDIA}, application/json;q=0.9", True),
    (f"application/json, {MEDIA}", False), ("application/json;q=0, */*", True), (f"*/*, {MEDIA};q=0", False),
])
def test_accept_picks_the_form_of_the_reply(daemon, accept, binary):
    headers = {} if accept is None else {"Accept": accept}
    for reply in (daemon.attend(headers, query=[[1, 2]]), send(daemon, pack({"query": draw(1, 1, 2)}), accept=accept)):
        assert reply.status == 200, reply
        assert reply.headers["content-type"] == (MEDIA if binary else "application/json")
        assert "accept" in [part.strip().lower() for part in reply.headers["vary"].split(",")]


def test_an_accept_that_takes_neither_is_406(daemon):
    for accept in ("text/html", f"application/json;q=0, {MEDIA};q=0", "*/*;q=0"):
        assert send(daemon, pack({"query": draw(1, 1, 2)}), accept=accept).status == 406


def test_problems_are_json_whatever_was_asked_for(daemon):
    reply = send(daemon, b"")
    assert reply.status == 400 and reply.headers["content-type"] == "application/problem+json"
    assert reply.json["code"] == "bad-safetensors"


# ---- refusals

X = draw(1, 2, 4)
F32 = {"dtype": "F32", "shape": [1, 1], "data_offsets": [0, 4]}
FOUR = b"\0\0\x80\x3f"
HOSTILE = {
    "nothing": (b"", 400, "bad-safetensors", ""),
    "seven bytes": (b"\x02\0\0\0\0\0\0", 400, "bad-safetensors", ""),
    "a header longer than the body": ((2 ** 63).to_bytes(8, "little") + b"{}", 400, "bad-safetensors", ""),
    "JSON": (b'{"query":[[1,2]]}', 400, "bad-safetensors", ""),
    "a header that is a list": (frame([]), 400, "bad-safetensors", ""),
    "a header that is cut": (frame(b'{"query":{"dtype"'), 400, "bad-safetensors", ""),
    "a header that is not UTF-8": (frame(b'{"\xff":{}}'), 400, "bad-safetensors", ""),
    "nested without end": (frame(b'{"a":' + b"[" * 5000 + b"}"), 400, "bad-safetensors", ""),
    "a name twice": (frame(b'{"query":%s,"query":%s}' % ((json.dumps(F32).encode(),) * 2), FOUR), 400, "bad-safetensors", ""),
    "offsets past the end": (frame({"query": F32}), 400, "bad-safetensors", ""),
    "offsets backwards": (frame({"query": {**F32, "data_offsets": [4, 0]}}, FOUR), 400, "bad-safetensors", ""),
    "bytes left over": (frame({"query": F32}, FOUR + b"\0"), 400, "bad-safetensors", ""),
    "overlapping": (frame({"query": F32, "key": F32}, FOUR), 400, "bad-safetensors", ""),
    "a shape that overflows": (frame({"query": {**F32, "shape": [2 ** 62, 2 ** 62]}}, FOUR), 400, "bad-safetensors", ""),
    "a negative dimension": (frame({"query": {**F32, "shape": [-1, 1]}}, FOUR), 400, "bad-safetensors", ""),
    "a type unknown": (frame({"query": {**F32, "dtype": "F8"}}, FOUR), 400, "bad-safetensors", ""),
    "metadata that is not text": (frame({"__metadata__": {"causal": True}, "query": F32}, FOUR), 400, "bad-safetensors", ""),
    "no tensor": (pack({}), 400, "missing-field", "/query"),
    "a tensor unknown": (pack({"query": X, "keys": X}), 400, "unknown-field", "/keys"),
    "a projection unknown": (pack({"query": X, "projections.keys": X}), 400, "unknown-field", "/projections/keys"),
    "a field unknown": (pack({"query": X}, {"casual": "true"}), 400, "unknown-field", "/casual"),
    "a tensor for a field": (pack({"query": X, "key_lengths": np.array([1])}), 400, "wrong-type", "/key_lengths"),
    "a tensor for projections": (pack({"query": X, "projections": X}), 400, "wrong-type", "/projections"),
    "text for a tensor": (pack({"query": X}, {"key": "[[1,2]]"}), 400, "wrong-type", "/key"),
    "text for projections": (pack({"query": X}, {"projections": "{}"}), 400, "wrong-type", "/projections"),
    "integers": (pack({"query": X.astype(np.int64)}), 400, "wrong-type", "/query"),
    "a mask of numbers": (pack({"query": X, "mask": np.zeros((2, 2), np.float32)}), 400, "wrong-type", "/mask"),
    "a mask of other bytes": (frame({"query": F32, "mask": {"dtype": "BOOL", "shape": [1, 1], "data_offsets": [4, 5]}},
                                    FOUR + b"\2"), 400, "bad-value", "/mask"),
    "a number beyond float32": (pack({"query": np.array([[1e300]])}), 400, "beyond-float32", "/query"),
    "a scalar": (pack({"query": np.float32([3])[0:1].reshape(())}), 400, "shape-mismatch", "/query"),
    "five dimensions": (pack({"query": np.zeros((1,) * 5, np.float32)}), 400, "shape-mismatch", "/query"),
    "no width": (pack({"query": np.zeros((2, 0), np.float32)}), 400, "zero-width", "/query"),
    "query and embeddings": (pack({"query": X, "embeddings": X}), 400, "bad-value", "/embeddings"),
    "other widths": (pack({"query": X, "key": draw(2, 2, 3)}), 400, "shape-mismatch", "/key"),
    "a sink twice": (pack({"query": X, "sink": X[0, :1]}, {"sink": "1"}), 400, "duplicate-key", "/sink"),
    "an infinite sink": (pack({"query": X, "sink": np.float32([np.inf])}), 400, "not-finite", "/sink"),
    "a text that is not JSON": (pack({"query": X}, {"weights": '{"top_k":'}), 400, "syntax", "/weights/top_k"),
    "an empty text": (pack({"query": X}, {"weights": ""}), 400, "syntax", "/weights"),
    "two texts in one": (pack({"query": X}, {"scale": '1,"heads":2'}), 400, "syntax", "/scale"),
    "a key twice in a text": (pack({"query": X}, {"weights": '{"top_k":1,"top_k":2}'}), 400, "duplicate-key", "/weights/top_k"),
    "null": (pack({"query": X}, {"causal": "null"}), 400, "wrong-type", "/causal"),
    "NaN": (pack({"query": X}, {"scale": "NaN"}), 400, "not-finite", "/scale"),
    "a scale beyond float32": (pack({"query": X}, {"scale": "1e39"}), 400, "beyond-float32", "/scale"),
    "a word unknown": (pack({"query": X}, {"positions": "ropes"}), 400, "bad-value", "/positions"),
    "a member unknown": (pack({"query": X}, {"weights": '{"topk":1}'}), 400, "unknown-field", "/weights/topk"),
    "a large header": (frame(b"{" + b" " * (1 << 20) + b"}"), 413, "body-too-large", ""),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_wrong_body_is_refused_with_its_place(daemon, name):
    body, *wanted = HOSTILE[name]
    reply = send(daemon, body)
    assert [reply.status, reply.json["code"], reply.json["pointer"]] == wanted, reply


def test_a_refusal_names_the_tensor(daemon):
    assert '"query"' in send(daemon, HOSTILE["offsets past the end"][0]).json["detail"]
    assert "`key`" in send(daemon, HOSTILE["a tensor unknown"][0]).json["detail"]


def test_every_cut_of_a_body_is_refused(daemon):
    body = body_of(dict(query=X, heads=2, mask=np.ones((2, 2), bool)))
    for end in range(len(body)):
        assert send(daemon, body[:end]).json["code"] == "bad-safetensors", end
    assert send(daemon, body).status == 200


def test_limits_hold_for_both_bodies(start):
    daemon = start("--max-elements", 100, "--max-sequence-length", 20, "--max-reply", 4000)
    for fields, code, pointer in ((dict(query=draw(1, 101, 1)), "too-many-elements", "/query"),
                                  (dict(query=draw(1, 9, 9), key=draw(1, 9, 9)), "too-many-elements", "/key"),
                                  (dict(query=np.zeros((0, 101, 1), np.float32)), "too-many-elements", "/query"),
                                  (dict(query=draw(1, 21, 1)), "sequence-too-long", "/query")):
        for reply in (send(daemon, body_of(fields)), daemon.post("/v1/attention", sent(fields))):
            assert (reply.status, reply.json["code"], reply.json["pointer"]) == (413, code, pointer), reply


def test_the_bound_of_a_reply_is_that_of_its_form(start):
    daemon = start("--max-reply", 9000)
    sizes = {}
    for accept in ("application/json", MEDIA):
        length = 1
        while send(daemon, body_of({"query": draw(1, length, 1)}), accept=accept).status == 200:
            length += 1
        refused = send(daemon, body_of({"query": draw(1, length, 1)}), accept=accept)
        assert (refused.status, refused.json["code"]) == (413, "reply-too-large")
        sizes[accept] = length
    assert sizes[MEDIA] > 1.2 * sizes["application/json"], sizes
    half = send(daemon, body_of({"query": draw(1, sizes[MEDIA], 1), "output_dtype": "float16"}))
    assert half.status == 200, half


# ---- batches

def test_a_reply_does_not_depend_on_batch_mates_of_the_other_body(start):
    daemon = start("--workers", 1, "--batch-wait", 20)
    requests = [dict(query=draw(n, 12, 16), heads=4, causal=True, weights={"top_k": 3}) for n in range(24)]
    alone = [nested(send(daemon, body_of(fields))) for fields in requests]

    def both(n):
        if n % 2:
            return nested(send(daemon, body_of(requests[n])))
        return nested(daemon.post("/v1/attention", sent(requests[n]), {"Accept": MEDIA}))

    with ThreadPoolExecutor(len(requests)) as pool:
        for got, expected in zip(pool.map(both, range(len(requests))), alone):
            equal(got, expected)
    assert daemon.metric("attnd_batch_sequences_sum") > daemon.metric("attnd_batch_sequences_count")
