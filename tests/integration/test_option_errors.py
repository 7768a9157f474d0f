"""What a request may get wrong in its positions, past, weights, statistics and binary tensors: code and pointer."""
import base64
import struct

import pytest

Q = [[1, 2], [3, 4]]
PAST = [[[1, 2]]]  # [kv_heads, past, width] = [1, 1, 2]


def coded(*numbers, shape=(2, 2), dtype="float32", form="f"):
    raw = struct.pack(f"<{len(numbers)}{form}", *numbers)
    return {"shape": list(shape), "dtype": dtype, "base64": base64.b64encode(raw).decode()}


FOUR = coded(1, 2, 3, 4)
ERRORS = [  # what, fields beside query, code, pointer
    ("positions_word", dict(positions="absolute"), "bad-value", "/positions"),
    ("positions_type", dict(positions=1), "wrong-type", "/positions"),
    ("positions_null", dict(positions=None), "wrong-type", "/positions"),
    ("sinusoidal_rank_4", dict(query=[[Q]], positions="sinusoidal"), "bad-value", "/positions"),
    ("rope_odd_width", dict(query=[[1, 2, 3]], positions="rope"), "bad-value", "/positions"),
    ("rope_odd_head_width", dict(query=[[1, 2]], heads=2, positions="rope_interleaved"), "bad-value", "/positions"),
    ("rope_theta_zero", dict(positions="rope", rope_theta=0), "bad-value", "/rope_theta"),
    ("rope_theta_below", dict(rope_theta=-1), "bad-value", "/rope_theta"),
    ("rope_theta_type", dict(rope_theta="big"), "wrong-type", "/rope_theta"),
    ("position_offset_fraction", dict(position_offset=0.5), "wrong-type", "/position_offset"),
    ("position_offset_null", dict(position_offset=None), "wrong-type", "/position_offset"),
    ("position_offset_far", dict(position_offset=2**50), "bad-value", "/position_offset"),
    ("past_key_alone", dict(past_key=PAST), "missing-field", "/past_value"),
    ("past_value_alone", dict(past_value=PAST), "missing-field", "/past_key"),
    ("past_null", dict(past_key=None, past_value=PAST), "wrong-type", "/past_key"),
    ("past_rank", dict(past_key=[[1, 2]], past_value=PAST), "shape-mismatch", "/past_key"),
    ("past_heads", dict(past_key=PAST + PAST, past_value=PAST), "shape-mismatch", "/past_key"),
    ("past_width", dict(past_key=PAST, past_value=[[[1]]]), "shape-mismatch", "/past_value"),
    ("past_lengths", dict(past_key=PAST, past_value=[[[1, 2], [3, 4]]]), "shape-mismatch", "/past_value"),
    ("past_batch", dict(past_key=[PAST, PAST], past_value=[PAST, PAST]), "shape-mismatch", "/past_key"),
    ("past_of_a_batch", dict(query=[Q], past_key=PAST, past_value=PAST), "shape-mismatch", "/past_key"),
    ("mask_without_past", dict(past_key=PAST, past_value=PAST, mask=[[True, True]]), "shape-mismatch", "/mask"),
    ("key_lengths_with_past", dict(past_key=PAST, past_value=PAST, key_lengths=4), "bad-value", "/key_lengths"),
    ("weights_unknown", dict(weights={"head": [0]}), "unknown-field", "/weights/head"),
    ("weights_heads_type", dict(weights={"heads": 0}), "wrong-type", "/weights/heads"),
    ("weights_heads_range", dict(weights={"heads": [0, 1]}), "bad-value", "/weights/heads/1"),
    ("weights_heads_below", dict(weights={"heads": [-2]}), "bad-value", "/weights/heads/0"),
    ("weights_queries_range", dict(weights={"queries": [2]}), "bad-value", "/weights/queries/0"),
    ("weights_queries_fraction", dict(weights={"queries": [0.5]}), "wrong-type", "/weights/queries/0"),
    ("weights_queries_null", dict(weights={"queries": None}), "wrong-type", "/weights/queries"),
    ("top_k_zero", dict(weights={"top_k": 0}), "bad-value", "/weights/top_k"),
    ("top_k_type", dict(weights={"top_k": "all"}), "wrong-type", "/weights/top_k"),
    ("top_k_of_scores", dict(weights={"top_k": 1, "stage": "scores"}), "bad-value", "/weights/top_k"),
    ("top_k_of_two", dict(weights={"top_k": 1, "stage": ["softmax", "masked"]}), "bad-value", "/weights/top_k"),
    ("stage_word", dict(weights={"stage": "raw"}), "bad-value", "/weights/stage"),
    ("stage_in_list", dict(weights={"stage": ["scores", "raw"]}), "bad-value", "/weights/stage/1"),
    ("stage_type", dict(weights={"stage": [1]}), "wrong-type", "/weights/stage/0"),
    ("stage_none", dict(weights={"stage": []}), "bad-value", "/weights/stage"),
    ("statistics_word", dict(statistics=["entropy", "mean"]), "bad-value", "/statistics/1"),
    ("statistics_type", dict(statistics=True), "wrong-type", "/statistics"),
    ("projected_type", dict(projected=1), "wrong-type", "/projected"),
    ("output_dtype_word", dict(output_dtype="float8"), "bad-value", "/output_dtype"),
    ("output_dtype_of_text", dict(output_dtype="float32"), "bad-value", "/output_dtype"),
    ("base64_of_other_length", dict(key={**FOUR, "shape": [2, 3]}), "shape-mismatch", "/key/base64"),
    ("base64_of_other_size", dict(key={**FOUR, "dtype": "float64"}), "shape-mismatch", "/key/base64"),
    ("base64_character", dict(key={**FOUR, "base64": "AAAAAAAA-AAA"}), "bad-value", "/key/base64"),
    ("base64_unpadded", dict(key={**FOUR, "base64": FOUR["base64"].rstrip("=")}), "bad-value", "/key/base64"),
    ("base64_bits_left", dict(key={**FOUR, "shape": [1, 1], "base64": "AAAAAB=="}), "bad-value", "/key/base64"),
    ("base64_early_padding", dict(key={**FOUR, "base64": "AA==AAAA"}), "bad-value", "/key/base64"),
    ("base64_space", dict(key={**FOUR, "base64": " " + FOUR["base64"]}), "bad-value", "/key/base64"),
    ("base64_type", dict(key={**FOUR, "base64": [1]}), "wrong-type", "/key/base64"),
    ("base64_without_dtype", dict(key={"shape": [2, 2], "base64": FOUR["base64"]}), "missing-field", "/key/dtype"),
    ("base64_without_shape", dict(key={"dtype": "float32", "base64": FOUR["base64"]}), "missing-field", "/key/shape"),
    ("base64_dtype_word", dict(key={**FOUR, "dtype": "float8"}), "bad-value", "/key/dtype"),
    ("base64_dtype_integers", dict(key=coded(1, 2, 3, 4, dtype="int64", form="q")), "bad-value", "/key/dtype"),
    ("base64_mask_of_numbers", dict(mask=FOUR), "bad-value", "/mask/dtype"),
    ("base64_mask_byte", dict(mask=coded(0, 1, 2, 1, dtype="bool", form="B")), "bad-value", "/mask/base64"),
    ("base64_and_data", dict(key={**FOUR, "data": [1, 2, 3, 4]}), "bad-value", "/key/data"),
    ("base64_beyond", dict(key=coded(1, 2, 3, 1e39, dtype="float64", form="d")), "beyond-float32", "/key/base64"),
    ("dtype_of_data", dict(key={"shape": [1, 2], "data": [1, 2], "dtype": "float32"}), "bad-value", "/key/dtype"),
    ("neither_data_nor_base64", dict(key={"shape": [1, 2]}), "missing-field", "/key/data"),
    ("base64_shape_overflow", dict(key={**FOUR, "shape": [2**40, 2**40]}), "shape-overflow", "/key/shape"),
]


@pytest.mark.parametrize("what, fields, code, pointer", ERRORS, ids=[e[0] for e in ERRORS])
def test_a_bad_option_is_refused(daemon, what, fields, code, pointer):
    reply = daemon.attend(**{"query": Q, **fields})
    assert reply.status == 400, reply
    assert (reply.json["code"], reply.json["pointer"]) == (code, pointer), reply.json
    assert reply.json["detail"]


@pytest.mark.parametrize("field, value", [("positions", "rope"), ("rope_theta", 2.0), ("scale", 1), ("heads", 4),
                                          ("kv_heads", 4), ("projections", {}), ("projection_layout", "in_out")])
def test_what_is_the_models_own_is_refused_on_its_route(daemon, field, value):
    reply = daemon.post("/v1/models/m/attention", {"query": [[0] * 16], field: value})
    assert (reply.status, reply.json["code"], reply.json["pointer"]) == (400, "unknown-field", "/" + field)


def test_past_and_new_keys_together_are_within_the_limit(start):
    small = start("--max-sequence-length", 4)
    past = {"past_key": [[[1]] * 3], "past_value": [[[1]] * 3]}
    assert small.attend(query=[[1]], **past).status == 200
    reply = small.attend(query=[[1]] * 2, **past)
    assert (reply.status, reply.json["code"], reply.json["pointer"]) == (413, "sequence-too-long", "/past_key")


def test_binary_elements_count_towards_the_limit(start):
    small = start("--max-elements", 6)
    assert small.attend(query=FOUR).status == 200
    reply = small.attend(query=FOUR, key=[[1, 2]], value=coded(1, 2, shape=(1, 2)))
    assert (reply.status, reply.json["code"], reply.json["pointer"]) == (413, "too-many-elements", "/value")


def test_stages_count_towards_the_limit_of_the_reply(start):
    small = start("--max-reply", 4000)
    reply = small.attend(query=[[0]] * 20, weights={"stage": ["scores", "masked"]})
    assert (reply.status, reply.json["code"]) == (413, "reply-too-large")
    assert small.attend(query=[[0]] * 20, weights={"top_k": 2}).status == 200
