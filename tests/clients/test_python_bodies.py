"""The Python client's bodies: what a request looks like in each encoding, and what a reply is read as."""
import base64
import json
import struct
from pathlib import Path

import attnd
import numpy as np
import pytest
from attnd import bodies, safetensors
from daemon import ROOT
from fake_daemon import SHAPE, FakeDaemon, reply

CORPUS = sorted((ROOT / "tests/fuzz/corpus/safetensors").iterdir())
ONNX = sorted(Path(ROOT, "../shared/data/onnx-attention").glob("*.safetensors"))
WIDTHS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "BOOL": "?"}


def take_apart(body):
    """(tensors as (dtype, array), metadata) of a safetensors body, by the letter of the format."""
    (length,) = struct.unpack_from("<Q", body)
    header = json.loads(body[8:8 + length])
    data = body[8 + length:]
    metadata = header.pop("__metadata__", {})
    tensors = {name: (entry["dtype"], np.frombuffer(data[slice(*entry["data_offsets"])], WIDTHS[entry["dtype"]])
                      .reshape(entry["shape"])) for name, entry in header.items()}
    ends = sorted(entry["data_offsets"] for entry in header.values())
    assert [begin for begin, _ in ends] == [0, *[end for _, end in ends[:-1]]][:len(ends)]
    assert not ends or ends[-1][1] == len(data)
    return tensors, metadata


def put_together(tensors, metadata=None):
    """A safetensors body of tensors as (dtype, array)."""
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, (dtype, array) in tensors.items():
        raw = np.asarray(array, WIDTHS[dtype]).tobytes()
        header[name] = {"dtype": dtype, "shape": np.shape(array), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def joined(pieces):
    return b"".join(pieces)


def sent(encoding, call="attention", *args, **options):
    """The one request that a call makes."""
    with FakeDaemon(reply(body={"context": [[0]], "shape": SHAPE})) as fake, \
            attnd.Client(fake.url, encoding=encoding) as client:
        getattr(client, call)(*args, **options)
    return fake.asked[0]


OPTIONS = {"heads": 2, "kv_heads": 1, "projection_layout": "out_in", "positions": "rope", "rope_theta": 5e5,
           "position_offset": 3, "key_lengths": [2, 3], "causal": "top_left", "window": (2, -1), "scale": 0.5,
           "softcap": 20.0, "sink": [0.5, 1.5], "weights": {"top_k": 4, "heads": [0, -1]}, "projected": True,
           "statistics": ["entropy", "max"], "precision": 7, "output_dtype": "float16"}
TENSORS = {"key": np.ones((3, 4)), "value": np.full((3, 2), 2), "mask": np.array([[True, False, True]]),
           "bias": np.array([[0.0, 1.0, 2.0]]), "past_key": np.ones((1, 1, 2)), "past_value": np.ones((1, 1, 1))}


# ---- requests
def test_json_has_tensors_nested_and_options_as_fields():
    asked = sent("json", "attention", [[1, 2, 3, 4]], projections={"query": np.eye(4), "query_bias": np.zeros(4)},
                 **TENSORS, **OPTIONS)
    fields = json.loads(asked.body)
    assert fields == {"query": [[1, 2, 3, 4]], **{name: array.tolist() for name, array in TENSORS.items()},
                      "projections": {"query": np.eye(4).tolist(), "query_bias": [0, 0, 0, 0]},
                      **OPTIONS, "window": [2, -1]}


def test_safetensors_has_tensors_by_dotted_name_and_options_as_json_in_its_metadata():
    asked = sent("safetensors", "attention", [[1, 2, 3, 4]], projections={"query": np.eye(4)}, **TENSORS, **OPTIONS)
    tensors, metadata = take_apart(asked.body)
    assert set(tensors) == {"query", "projections.query", *TENSORS}
    for name, array in TENSORS.items():
        assert tensors[name][0] == ("BOOL" if name == "mask" else "F32")
        np.testing.assert_array_equal(tensors[name][1], array)
    assert {name: json.loads(text) for name, text in metadata.items()} == {**OPTIONS, "window": [2, -1]}


@pytest.mark.parametrize("encoding", ["safetensors", "json"])
def test_a_layer_of_a_model_is_asked_with_its_own_options(encoding):
    asked = sent(encoding, "model_attention", "tiny", [[1.0]], layer=2, kind="cross", causal=1, sink=0.25)
    fields = json.loads(asked.body) if encoding == "json" else take_apart(asked.body)[1]
    wanted = {"layer": 2, "kind": "cross", "causal": 1, "sink": 0.25}
    assert asked.path == "/v1/models/tiny/attention"
    assert {name: fields[name] if encoding == "json" else json.loads(fields[name]) for name in wanted} == wanted


def test_what_is_not_given_is_not_sent():
    assert json.loads(sent("json", "attention", [[1.0]]).body) == {"query": [[1.0]]}
    tensors, metadata = take_apart(sent("safetensors", "attention", [[1.0]]).body)
    assert list(tensors) == ["query"] and metadata == {}
    assert json.loads(sent("json", "attention", [[1.0]], causal=0, weights=False).body)["causal"] == 0


def test_numpy_numbers_among_the_options_are_numbers():
    fields = json.loads(sent("json", "attention", [[1.0]], heads=np.int64(2), key_lengths=np.array([1, 2]),
                             scale=np.float32(0.5), projected=np.bool_(True)).body)
    assert {**fields, "query": 0} == {"query": 0, "heads": 2, "key_lengths": [1, 2], "scale": 0.5, "projected": True}


@pytest.mark.parametrize("given,dtype", [(np.float64, "F32"), (np.float32, "F32"), (np.float16, "F16"), (np.int32, "F32"),
                                         (np.uint8, "F32"), (np.bool_, "BOOL"), (">f4", "F32"), (">f8", "F32"), (">f2", "F16")])
def test_each_dtype_travels_as_the_narrowest_that_holds_what_is_computed(given, dtype):
    array = np.array([[0, 1], [1, 0]], dtype=given)
    found, stored = take_apart(joined(bodies.encode("safetensors", {"query": bodies.as_tensor("query", array)}, {}).pieces))[0]["query"]
    assert found == dtype
    np.testing.assert_array_equal(stored, array.astype(stored.dtype))


def test_float64_is_rounded_to_nearest_and_kept_where_float32_ends():
    assert bodies.as_tensor("query", np.array([0.1, 1 / 3])).tolist() == [float(np.float32(0.1)), float(np.float32(1 / 3))]
    beyond = bodies.as_tensor("query", np.array([1e39, np.inf]))
    assert beyond.dtype == np.float64 and beyond.tolist() == [1e39, np.inf]


def test_strided_arrays_are_sent_in_order():
    array = np.arange(24, dtype=np.float32).reshape(4, 6).T[::2, ::-1]
    _, stored = take_apart(joined(safetensors.encode({"query": array})))[0]["query"]
    np.testing.assert_array_equal(stored, array)


def test_contiguous_arrays_are_sent_without_a_copy():
    array = np.ones((64, 64), dtype=np.float32)
    pieces = safetensors.encode({"query": array})
    assert np.shares_memory(np.frombuffer(pieces[1], np.float32), array)


def test_every_tensor_is_aligned_in_its_body():
    body = joined(safetensors.encode({"mask": np.ones(3, bool), "query": np.ones(3, np.float32), "wide": np.ones(1)}))
    length = int.from_bytes(body[:8], "little")
    header = json.loads(body[8:8 + length])
    assert length % 8 == 0
    assert [header[name]["data_offsets"][0] % width for name, width in [("query", 4), ("wide", 8)]] == [0, 0]


@pytest.mark.parametrize("encoding", ["safetensors", "json"])
@pytest.mark.parametrize("shape", [(0, 3), (2, 0, 3), (2, 1, 0, 3)])
def test_empty_tensors_keep_their_shape(encoding, shape):
    body = sent(encoding, "attention", np.zeros(shape)).body
    if encoding == "json":
        assert json.loads(body)["query"] == {"shape": list(shape), "data": []}
    else:
        assert take_apart(body)[0]["query"][1].shape == shape


def test_json_says_in_base64_what_text_cannot_say():
    fields = json.loads(sent("json", "attention", [[1.0]], bias=np.array([[0, -np.inf]], dtype=">f4")).body)
    assert fields["bias"]["shape"] == [1, 2] and fields["bias"]["dtype"] == "float32"
    assert np.frombuffer(base64.b64decode(fields["bias"]["base64"]), "<f4").tolist() == [0, -np.inf]


def test_bfloat16_of_an_extension_travels_as_it_is():
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    array = np.array([[1.5, -2.0]], dtype=ml_dtypes.bfloat16)
    dtype, bits = take_apart(joined(safetensors.encode({"query": bodies.as_tensor("query", array)})))[0]["query"]
    assert dtype == "BF16" and bits.tolist() == [[0x3FC0, 0xC000]]


@pytest.mark.parametrize("options,kind,message", [
    ({"query": [[1, 2], [3]]}, ValueError, "query"),
    ({"query": [["a"]]}, TypeError, "query"),
    ({"query": [[1j]]}, TypeError, "query"),
    ({"query": [[1]], "key": [[None]]}, ValueError, "key"),
    ({"query": [[1]], "scale": float("nan")}, ValueError, "JSON"),
    ({"query": [[1]], "heads": {1, 2}}, TypeError, "set"),
])
@pytest.mark.parametrize("encoding", ["safetensors", "json"])
def test_what_no_request_can_hold_is_refused_before_anything_is_sent(encoding, options, kind, message):
    with FakeDaemon(reply()) as fake, attnd.Client(fake.url, encoding=encoding) as client:
        with pytest.raises(kind, match=message):
            client.attention(**options)
    assert fake.asked == []


# ---- replies
def received(action):
    with FakeDaemon(action) as fake, attnd.Client(fake.url) as client:
        return client.attention([[1]])


WHOLE = {"context": [[1.5]], "stages.masked": [[[-1, 2]]], "statistics.entropy": [[0.5]], "statistics.max": [[3]],
         "projected.query": [[[4]]], "present_key": [[[5]]], "present_value": [[[6]]]}


def check_whole(result):
    assert result.context.tolist() == [[1.5]] and result.weights is None and result.top_weights is not None
    assert result.top_weights.indices.dtype == np.int64 and result.top_weights.indices.tolist() == [[[1, 0]]]
    assert result.top_weights.values.tolist() == [[[0.75, 0.25]]]
    assert result.stages["masked"].tolist() == [[[-1, 2]]]
    assert result.stages["softmax"].indices.tolist() == [[[0]]] and result.stages["softmax"].values.tolist() == [[[1]]]
    assert {name: array.tolist() for name, array in result.statistics.items()} == {"entropy": [[0.5]], "max": [[3]]}
    assert result.projected["query"].tolist() == [[[4]]]
    assert {name: array.tolist() for name, array in result.present.items()} == {"key": [[[5]]], "value": [[[6]]]}
    assert result.shape == attnd.Shape(1, 1, 1, 1, 1, 1, 1)


def test_a_json_reply_is_read_whole():
    body = {"context": [[1.5]], "weights": {"indices": [[[1, 0]]], "values": [[[0.75, 0.25]]]},
            "stages": {"masked": [[[-1, 2]]], "softmax": {"indices": [[[0]]], "values": [[[1]]]}},
            "statistics": {"entropy": [[0.5]], "max": [[3]]}, "projected": {"query": [[[4]]]},
            "present_key": [[[5]]], "present_value": [[[6]]], "shape": SHAPE}
    check_whole(received(reply(body=body)))


def test_a_safetensors_reply_is_read_whole():
    tensors = {name: ("F32", value) for name, value in WHOLE.items()}
    tensors |= {"weights.indices": ("I64", [[[1, 0]]]), "weights.values": ("F32", [[[0.75, 0.25]]]),
                "stages.softmax.indices": ("I64", [[[0]]]), "stages.softmax.values": ("F32", [[[1]]])}
    body = put_together(tensors, {"shape": json.dumps(SHAPE)})
    check_whole(received(reply(body=body, media="application/x-safetensors")))


def test_float32_text_is_read_to_the_bit():
    texts = ["0.1", "1e-45", "3.4028235e38", "-0.0", "16777217", "0.33023846"]
    body = ('{"context":[[%s]],"shape":%s}' % (",".join(texts), json.dumps(SHAPE))).encode()
    context = received(reply(body=body)).context
    assert context.dtype == np.float32
    assert context.tobytes() == np.array([[np.float32(text) for text in texts]]).tobytes()


def test_what_text_writes_for_minus_infinity_is_minus_infinity_where_it_may_stand():
    body = {"context": [[-3.4028235e38]], "stages": {"masked": [[[-3.4028235e38, 1]]]},
            "statistics": {"logsumexp": [[-3.4028235e38]], "entropy": [[-3.4028235e38]]}, "shape": SHAPE}
    result = received(reply(body=body))
    assert result.stages["masked"].tolist() == [[[-np.inf, 1]]] and result.statistics["logsumexp"].tolist() == [[-np.inf]]
    assert np.isfinite(result.context).all() and np.isfinite(result.statistics["entropy"]).all()


@pytest.mark.parametrize("dtype,values", [("F64", [1 / 3]), ("F16", [0.25, np.inf]), ("F32", [np.nan, 1])])
def test_each_float_dtype_is_read_as_itself(dtype, values):
    (context,) = received(reply(body=put_together({"context": (dtype, [values])}, {"shape": json.dumps(SHAPE)}),
                                media="application/x-safetensors")).context
    assert context.dtype == np.dtype(WIDTHS[dtype])
    np.testing.assert_array_equal(context, np.array(values, WIDTHS[dtype]))


def test_bfloat16_is_read_as_float32_exactly():
    tensors, _ = safetensors.decode(put_together({"x": ("BF16", [0x3FC0, 0xC000, 0x7F80, 0x0001])}))
    assert tensors["x"].dtype == np.float32
    assert tensors["x"].tolist() == [1.5, -2.0, np.inf, 2.0**-133]


def test_the_arrays_of_a_reply_may_be_written_to():
    result = received(reply(body=put_together({"context": ("F32", [[1]])}, {"shape": json.dumps(SHAPE)}),
                            media="application/x-safetensors"))
    result.context[0, 0] = 2
    assert result.context.tolist() == [[2]]


# ---- the format
def test_what_is_encoded_is_decoded_to_the_same():
    random = np.random.default_rng(5)
    tensors = {"a": random.normal(size=(2, 3)), "b": np.float32(1.5).reshape(()), "c": np.zeros((2, 0), np.float16),
               "d": random.integers(-9, 9, (4,)), "e": np.array([True, False, True]), "ü": np.arange(3, dtype=np.uint8)}
    found, metadata = safetensors.decode(joined(safetensors.encode(tensors, {"k": "v"})))
    assert metadata == {"k": "v"} and set(found) == set(tensors)
    for name, array in tensors.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("header,data,message", [
    ('{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}', 4, "x of shape"),
    ('{"x":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}', 8, "x starts at 4"),
    ('{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', 8, "4 bytes after"),
    ('{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', 4, "x has offsets"),
    ('{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"y":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}}', 6, "y starts"),
    ('{"x":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}}', 4, "F31"),
    ('{"x":{"dtype":["F32"],"shape":[1],"data_offsets":[0,4]}}', 4, "unknown dtype"),
    ('{"x":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}', 4, "no shape"),
    ('{"x":{"dtype":"F32","shape":[true],"data_offsets":[0,4]}}', 4, "no shape"),
    ('{"x":{"dtype":"F32","shape":[1],"data_offsets":[0]}}', 4, "x has offsets"),
    ('{"x":3}', 0, "x has no"),
    ('{"x":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"x":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}', 0, "twice"),
    ('{"__metadata__":{"a":1}}', 0, "__metadata__"),
    ("[]", 0, "not an object"),
    ("{", 0, "not JSON"),
])
def test_a_body_against_the_format_is_refused_by_name(header, data, message):
    body = struct.pack("<Q", len(header)) + header.encode() + bytes(data)
    with pytest.raises(attnd.ProtocolError, match=message):
        safetensors.decode(body)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_the_fuzz_corpus_is_read_or_refused(path):
    try:
        tensors, _ = safetensors.decode(path.read_bytes())
    except attnd.ProtocolError:
        return
    assert all(isinstance(array, np.ndarray) for array in tensors.values())


@pytest.mark.skipif(not ONNX, reason="../shared/data/onnx-attention is absent")
def test_files_that_others_wrote_are_read():
    for path in ONNX:
        tensors, metadata = safetensors.decode(path.read_bytes())
        assert {"in.Q", "in.K", "in.V", "out.Y"} <= set(tensors)
        assert np.isfinite(tensors["out.Y"].astype(np.float64)).all(), path.name
        assert all(isinstance(value, str) for value in metadata.values())
