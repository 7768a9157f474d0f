"""POST /v1/attention: the right answers of ATTENTION.md, over HTTP."""
import json

import numpy as np
import pytest
from reference import allowed_keys, multi_head

X = [[0, 1, 0], [1, 0, 1], [0, 1, 1], [1, 1, 0]]
WQ = [[.1, .2, .3], [.4, .5, .6], [.7, .8, .9]]
WK = [[.9, .8, .7], [.6, .5, .4], [.3, .2, .1]]
WV = [[.2, .4, .6], [.8, 1.0, 1.2], [1.4, 1.6, 1.8]]
WEIGHTS = [[.176179, .268531, .207091, .348199], [.116131, .269791, .160458, .453621],
           [.087223, .262751, .133715, .516311], [.151182, .270862, .188270, .389686]]
CONTEXT = [[1.374392, 1.739156, 2.103920], [1.331198, 1.707972, 2.084746],
           [1.300664, 1.683219, 2.065775], [1.358205, 1.727969, 2.097732]]


def zeros(rows, width=1):
    return [[0] * width for _ in range(rows)]


def column(*values):
    return [[v] for v in values]


def context(daemon, **fields):
    reply = daemon.attend(**fields)
    assert reply.status == 200, reply
    return np.array(reply.json["context"])


def test_the_textbooks_four_embeddings(daemon):
    reply = daemon.attend(embeddings=X, projections={"query": WQ, "key": WK, "value": WV})
    assert reply.status == 200, reply
    np.testing.assert_allclose(reply.json["weights"][0], WEIGHTS, atol=6e-7)
    np.testing.assert_allclose(reply.json["context"], CONTEXT, atol=6e-7)
    assert reply.json["shape"] == {"batch": 1, "heads": 1, "kv_heads": 1, "queries": 4, "keys": 4,
                                   "head_width": 3, "value_width": 3}


def test_projection_layout_out_in_is_the_transpose(daemon):
    turned = {k: np.array(w).T.tolist() for k, w in {"query": WQ, "key": WK, "value": WV}.items()}
    got = context(daemon, query=X, projections=turned, projection_layout="out_in")
    np.testing.assert_allclose(got, CONTEXT, atol=6e-7)


def test_gpt2_conv1d_is_in_out(daemon):
    got = context(daemon, query=[[1, 2]], projections={"value": [[1, 2], [3, 4]]})
    assert got.tolist() == [[7, 10]]


def test_biases_are_added_after_the_product(daemon):
    got = context(daemon, query=[[1, 2]], projections={"value": [[1, 2], [3, 4]], "value_bias": [1, -1],
                                                       "output": [[2, 0], [0, 2]], "output_bias": [0.5, 0]})
    assert got.tolist() == [[16.5, 18]]


def test_a_row_with_no_allowed_key_is_zero_with_and_without_weights(daemon):
    fields = dict(query=[[1, 0], [0, 1]], value=[[1, 2], [3, 4]], key=[[1, 0], [0, 1]],
                  mask=[[False, False], [True, True]])
    reply = daemon.attend(**fields)
    np.testing.assert_allclose(reply.json["weights"], [[[0, 0], [.330238, .669762]]], atol=6e-7)
    np.testing.assert_allclose(reply.json["context"], [[0, 0], [2.339523, 3.339523]], atol=6e-7)
    without = daemon.attend(weights=False, **fields)
    assert "weights" not in without.json and without.json["context"] == reply.json["context"]


@pytest.mark.parametrize("lq, lk, causal, expected", [
    (2, 3, "bottom_right", [15, 30]), (2, 3, "top_left", [10, 15]), (1, 3, "bottom_right", [30]),
    (1, 3, "top_left", [10]), (1, 3, True, [30]), (2, 3, 1, [15, 30]), (2, 3, 0, [10, 15]), (2, 3, -1, [0, 10]),
    (2, 3, False, [30, 30]),
])
def test_causal_alignment(daemon, lq, lk, causal, expected):
    got = context(daemon, query=zeros(lq), key=zeros(lk), value=column(10, 20, 60)[:lk], causal=causal)
    np.testing.assert_allclose(got[:, 0], expected, atol=1e-5)


def test_causal_with_fewer_keys_than_queries(daemon):
    got = context(daemon, query=zeros(3), key=zeros(2), value=column(10, 20), causal="bottom_right")
    np.testing.assert_allclose(got[:, 0], [0, 10, 15], atol=1e-5)


def test_a_causal_offset_for_each_sequence(daemon):
    got = context(daemon, query=[zeros(1)] * 2, key=[zeros(3)] * 2, value=[column(10, 20, 60)] * 2, causal=[0, 2])
    np.testing.assert_allclose(got[:, 0, 0], [10, 30], atol=1e-5)


def test_causal_and_mask_combine_by_and(daemon):
    reply = daemon.attend(query=zeros(2), causal=True, mask=[[True, True], [True, True]])
    assert reply.json["weights"] == [[[1, 0], [.5, .5]]]


def test_true_means_may_attend(daemon):
    got = context(daemon, query=zeros(1), key=zeros(3), value=column(10, 20, 60), mask=[[True, False, False]])
    assert got.tolist() == [[10]]


def test_key_lengths_leave_padded_columns_as_zeros(daemon):
    reply = daemon.attend(query=zeros(1), key=zeros(6), value=column(*range(6)), key_lengths=1)
    assert reply.json["weights"] == [[[1, 0, 0, 0, 0, 0]]]
    batch = context(daemon, query=[zeros(1)] * 2, key=[zeros(3)] * 2, value=[column(10, 20, 60)] * 2, key_lengths=[2, 0])
    assert batch[:, 0, 0].tolist() == [15, 0]


def test_weights_are_per_head_and_mean_only_when_asked(daemon):
    fields = dict(query=[[1, 1]], key=[[99, -99], [-99, 99]], value=[[1, 2], [3, 4]], heads=2)
    assert daemon.attend(**fields).json["weights"] == [[[1, 0]], [[0, 1]]]
    assert daemon.attend(weights="mean", **fields).json["weights"] == [[.5, .5]]


def test_scale_is_by_the_width_of_one_head(daemon):
    query, key = [[2] * 16], [[0.5] * 16, [0] * 16]
    reply = daemon.attend(query=query, key=key, heads=4)
    np.testing.assert_allclose(np.array(reply.json["weights"])[:, 0, 0], [.880797] * 4, atol=6e-7)
    reply = daemon.attend(query=query, key=key, heads=4, scale=0.25)
    np.testing.assert_allclose(np.array(reply.json["weights"])[:, 0, 0], [.731059] * 4, atol=6e-7)


def test_large_scores_do_not_overflow(daemon):
    got = daemon.attend(query=[[256] * 128], key=[[256] * 128] * 2, weights=True).json
    assert got["weights"] == [[[.5, .5]]]
    scores = daemon.attend(query=[[1000]], key=[[1], [.999]], scale=1).json["weights"][0][0]
    np.testing.assert_allclose(scores, [.731059, .268941], atol=3e-5)


def test_grouped_query_heads(daemon):
    got = context(daemon, query=zeros(1, 4), key=zeros(1, 2), value=[[10, 20]], heads=4, kv_heads=2)
    assert got.tolist() == [[10, 10, 20, 20]]


def test_bias_window_softcap_and_sink(daemon):
    biased = daemon.attend(query=zeros(1), key=zeros(2), bias=[[0, float(np.log(3))]])
    np.testing.assert_allclose(biased.json["weights"], [[[.25, .75]]], atol=6e-7)
    window = daemon.attend(query=zeros(3), window=[1, 0])
    assert window.json["weights"] == [[[1, 0, 0], [.5, .5, 0], [0, .5, .5]]]
    capped = daemon.attend(query=[[2]], key=[[1], [0]], scale=1, softcap=2)
    np.testing.assert_allclose(capped.json["weights"], [[[.821007, .178993]]], atol=6e-7)
    sunk = daemon.attend(query=zeros(1), key=zeros(2), sink=0)
    np.testing.assert_allclose(sunk.json["weights"], [[[1 / 3, 1 / 3]]], atol=6e-7)


def test_empty_sequences_are_legal(daemon):
    no_keys = daemon.attend(query=zeros(2), key={"shape": [0, 1], "data": []})
    assert no_keys.status == 200 and no_keys.json["context"] == [[0], [0]]
    no_queries = daemon.attend(query={"shape": [0, 2], "data": []}, key=[[1, 2]])
    assert no_queries.status == 200 and no_queries.json["context"] == []
    no_batch = daemon.attend(query={"shape": [0, 3, 2], "data": []})
    assert no_batch.status == 200 and no_batch.json["context"] == []


def test_flat_tensors_equal_nested_ones(daemon):
    flat = {"shape": [4, 3], "data": [x for row in X for x in row]}
    assert context(daemon, query=flat).tolist() == context(daemon, query=X).tolist()


@pytest.mark.parametrize("seed", range(6))
def test_random_shapes_agree_with_float64(daemon, seed):
    rng = np.random.default_rng(seed)
    heads, d, dv = (int(rng.integers(1, n)) for n in (5, 9, 9))
    b, lq, lk = (int(n) for n in rng.integers(1, 20, 3))
    query, key = (rng.uniform(-1, 1, (b, n, heads * d)).astype(np.float32) for n in (lq, lk))
    value = rng.uniform(-1, 1, (b, lk, heads * dv)).astype(np.float32)
    lengths = rng.integers(0, lk + 1, b).tolist()
    mask = rng.random((b, 1, lq, lk)) < 0.8
    reply = daemon.attend(query=query.tolist(), key=key.tolist(), value=value.tolist(), heads=heads,
                          mask=mask.tolist(), key_lengths=lengths, causal="bottom_right")
    assert reply.status == 200, reply
    for n in range(b):
        ok = allowed_keys(lq, lk, "bottom_right", key_length=lengths[n], mask=mask[n, 0])
        expected, weights = multi_head(query[n], key[n], value[n], heads, ok)
        np.testing.assert_allclose(reply.json["context"][n], expected, atol=4e-6)
        np.testing.assert_allclose(reply.json["weights"][n], weights, atol=2e-6)


def test_rank_4_sets_the_heads(daemon):
    rng = np.random.default_rng(9)
    query, key = rng.uniform(-1, 1, (2, 4, 3, 5)), rng.uniform(-1, 1, (2, 2, 6, 5))
    reply = daemon.attend(query=query.tolist(), key=key.tolist())
    assert reply.json["shape"]["heads"] == 4 and reply.json["shape"]["kv_heads"] == 2
    assert np.array(reply.json["context"]).shape == (2, 4, 3, 5)
    assert np.array(reply.json["weights"]).shape == (2, 4, 3, 6)


def test_numbers_are_the_shortest_that_read_back(daemon):
    numbers = [0.1, 1, -2.5, 1e-7, 16777216, 1.1754944e-38, 3.4028235e38]
    reply = daemon.attend(query=zeros(1), value=[numbers])
    text = reply.body.decode()
    assert "0.1" in text and "0.10000000149" not in text
    assert np.array_equal(np.array(reply.json["context"][0], np.float32), np.array(numbers, np.float32))


def test_precision_rounds_to_significant_digits(daemon):
    reply = daemon.attend(query=zeros(1), value=[[1 / 3, 1234.5678]], precision=3)
    assert json.loads(reply.body)["context"] == [[0.333, 1230]]
