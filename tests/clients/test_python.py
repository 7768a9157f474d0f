"""The Python client against the real daemon: right answers, errors that point, and every encoding that it has."""
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from math import log

import attnd
import numpy as np
import pytest
from attnd import safetensors
from attnd.torch_style import multi_head_attention, scaled_dot_product_attention
from daemon import ROOT, SLOW, Daemon
from python_reference import attend, join, multi_head, split

EMBEDDINGS = [[0, 1, 0], [1, 0, 1], [0, 1, 1], [1, 1, 0]]
PROJECTIONS = {"query": np.arange(1, 10).reshape(3, 3) / 10, "key": np.arange(9, 0, -1).reshape(3, 3) / 10,
               "value": np.arange(1, 10).reshape(3, 3) / 5}
WEIGHTS = [[.176179, .268531, .207091, .348199], [.116131, .269791, .160458, .453621],
           [.087223, .262751, .133715, .516311], [.151182, .270862, .188270, .389686]]
CONTEXT = [[1.374392, 1.739156, 2.103920], [1.331198, 1.707972, 2.084746],
           [1.300664, 1.683219, 2.065775], [1.358205, 1.727969, 2.097732]]
THREE = [[10], [20], [60]]
NO_SAFETENSORS = "the daemon does not take safetensors bodies yet"
DESCRIPTION = (ROOT / "doc/openapi.yaml").read_text()
MODEL = ROOT / "config/models/tiny-mha"


@pytest.fixture(scope="module")
def url():
    with Daemon("--models", MODEL.parent, "--workers", "2") as running:
        yield f"http://127.0.0.1:{running.port}"


@pytest.fixture(scope="module")
def has_safetensors(url):
    """Whether the daemon takes safetensors bodies: asked once. Once its description says so, it must."""
    with attnd.Client(url) as client:
        try:
            client.attention([[1.0]])
        except attnd.RequestError as refused:
            if refused.status in (406, 415) and "application/x-safetensors" not in DESCRIPTION:
                return False
            raise
    return True


@pytest.fixture(params=["safetensors", "json"])
def client(request, url, has_safetensors):
    if request.param == "safetensors" and not has_safetensors:
        pytest.skip(NO_SAFETENSORS)
    with attnd.Client(url, encoding=request.param, timeout=60 * SLOW) as made:
        yield made


@pytest.fixture
def any_client(url, has_safetensors):
    """In the best encoding there is."""
    with attnd.Client(url, encoding="safetensors" if has_safetensors else "json", timeout=60 * SLOW) as made:
        yield made


def needs(client, *words, **options):
    """Skips a test of what the daemon does not know yet: it refuses the options, and its description lacks a word."""
    try:
        client.attention([[1.0, 1.0]], **options)
    except attnd.RequestError as refused:
        described = all(word in DESCRIPTION for word in words)
        if refused.code in ("unknown-field", "wrong-type", "missing-field") and not described:
            pytest.skip(f"the daemon does not know {', '.join(words)} yet: {refused}")


def zeros(rows, width=1):
    return np.zeros((rows, width))


def near(array, wanted, tolerance=2e-6):
    np.testing.assert_allclose(array, wanted, rtol=0, atol=tolerance)


# ---- right answers
def test_the_textbook(client):
    result = client.attention(EMBEDDINGS, projections=PROJECTIONS)
    near(result.weights, [WEIGHTS])
    near(result.context, CONTEXT)
    assert result.context.dtype == result.weights.dtype == np.float32
    assert result.shape == attnd.Shape(batch=1, heads=1, kv_heads=1, queries=4, keys=4, head_width=3, value_width=3)
    assert {"read", "parse", "compute"} <= set(result.timing) and all(ms >= 0 for ms in result.timing.values())
    assert result.batch_size >= 1 and result.request_id


def test_a_row_that_may_attend_to_nothing_is_zero_with_and_without_weights(client):
    asked = {"query": np.eye(2), "value": [[1, 2], [3, 4]], "mask": [[False, False], [True, True]]}
    result, bare = client.attention(**asked), client.attention(**asked, weights=False)
    near(result.weights, [[[0, 0], [.330238, .669762]]])
    near(result.context, [[0, 0], [2.339523, 3.339523]])
    assert bare.weights is None and bare.context.tobytes() == result.context.tobytes()


@pytest.mark.parametrize("queries,value,causal,context", [
    (2, THREE, True, [15, 30]), (2, THREE, "bottom_right", [15, 30]), (2, THREE, "top_left", [10, 15]),
    (1, THREE, "bottom_right", [30]), (1, THREE, "top_left", [10]), (3, THREE[:2], True, [0, 10, 15]),
    (2, THREE, 1, [15, 30]), (2, THREE, 0, [10, 15]), (2, THREE, False, [30, 30]),
])
def test_causal_alignment(client, queries, value, causal, context):
    result = client.attention(zeros(queries), zeros(len(value)), value, causal=causal)
    near(result.context[:, 0], context, 4e-6)


def test_each_sequence_may_have_its_own_offset(client):
    result = client.attention(np.zeros((2, 1, 1)), np.zeros((2, 3, 1)), [THREE, THREE], causal=[0, 2])
    near(result.context[:, 0, 0], [10, 30], 4e-6)


def test_true_in_a_mask_means_may_attend(client):
    near(client.attention(zeros(1), zeros(3), THREE, mask=[[True, False, False]]).context, [[10]])


def test_a_mask_and_causal_have_both_to_allow(client):
    near(client.attention(zeros(2), mask=np.ones((2, 2), bool), causal=True).weights, [[[1, 0], [.5, .5]]])


def test_a_bias_is_added_to_the_scores(client):
    needs(client, "bias", bias=[[0.0]])
    near(client.attention(zeros(1), zeros(2), bias=[[0, log(3)]]).weights, [[[.25, .75]]])


def test_a_bias_of_minus_infinity_excludes(client):
    needs(client, "base64", bias=[[-np.inf]])
    result = client.attention(zeros(1), zeros(3), THREE, bias=[[0, 0, -np.inf]])
    near(result.context, [[15]])
    assert result.weights[0, 0, 2] == 0


def test_padding_has_no_influence_even_where_it_is_nan(client):
    near(client.attention(zeros(1), zeros(6), key_lengths=1).weights, [[[1, 0, 0, 0, 0, 0]]])
    needs(client, "base64", value=[[np.nan]], key_lengths=0)
    near(client.attention(zeros(1), zeros(3), [[10], [20], [np.nan]], key_lengths=2).context, [[15]])


def test_a_nan_that_counts_is_a_nan_or_an_error(client):
    if client.encoding == "json":
        needs(client, "base64", value=[[np.nan]], key_lengths=0)
        with pytest.raises(attnd.RequestError) as refused:
            client.attention([[1.0], [np.nan]])
        assert refused.value.status == 422
    else:
        result = client.attention([[1.0], [np.nan]], [[1.0], [2.0]])
        assert np.isfinite(result.context[0]).all() and np.isnan(result.context[1]).all()


def test_weights_are_per_head_unless_the_mean_is_asked_for(client):
    far = 1e4
    asked = {"query": [[1, 1]], "key": [[far, 0], [0, far]], "heads": 2}
    near(client.attention(**asked).weights, [[[1, 0]], [[0, 1]]])
    near(client.attention(**asked, weights="mean").weights, [[.5, .5]])


def test_softcap_window_scale_and_sink(client):
    near(client.attention([[2.0]], [[1.0], [0.0]], softcap=2).weights, [[[.821007, .178993]]])
    near(client.attention([[1000.0]], [[1.0], [0.999]], scale=1).weights, [[[.731059, .268941]]], 1e-4)
    near(client.attention(zeros(3), window=(1, 0)).weights[0], [[1, 0, 0], [.5, .5, 0], [0, .5, .5]])
    near(client.attention(zeros(1), sink=0.0).weights, [[[.5]]])


def test_grouped_heads_share_their_keys(client):
    result = client.attention(np.zeros((1, 4, 1, 1)), np.zeros((1, 2, 1, 1)), [[[[10]], [[20]]]])
    assert result.context.tolist() == [[[[10]], [[10]], [[20]], [[20]]]]
    assert (result.shape.heads, result.shape.kv_heads) == (4, 2)


@pytest.mark.parametrize("seed", range(8))
def test_random_requests_agree_with_the_formulas_in_float64(client, seed):
    random = np.random.default_rng(seed)
    batch, heads, queries, keys, width = random.integers(1, 7, 5)
    q, k, v = (random.uniform(-1, 1, (batch, n, heads * width)) for n in (queries, keys, keys))
    mask = random.random((batch, 1, queries, keys)) < 0.7
    result = client.attention(q, k, v, heads=int(heads), mask=mask)
    context, weights = attend(*(split(x.astype(np.float32), heads) for x in (q, k, v)), mask)
    near(result.weights, weights)
    near(result.context, join(context), 4e-6)


def test_empty_sequences_keep_their_shapes(any_client, has_safetensors):
    if not has_safetensors:
        pytest.skip(NO_SAFETENSORS)
    result = any_client.attention(np.zeros((2, 0, 4)), np.zeros((2, 3, 4)), heads=2)
    assert result.context.shape == (2, 0, 4) and result.weights.shape == (2, 2, 0, 3)
    assert any_client.attention(np.zeros((0, 3, 4))).weights.shape == (0, 1, 3, 3)


def test_no_keys_give_zero(client):
    assert client.attention(zeros(2), np.zeros((0, 1)), np.zeros((0, 3))).context.tolist() == [[0, 0, 0]] * 2


def test_both_encodings_give_the_same_bits(url, has_safetensors):
    if not has_safetensors:
        pytest.skip(NO_SAFETENSORS)
    query = np.random.default_rng(3).normal(size=(2, 9, 8))
    results = [attnd.Client(url, encoding=encoding).attention(query, heads=2) for encoding in ("safetensors", "json")]
    assert results[0].context.tobytes() == results[1].context.tobytes()
    assert results[0].weights.tobytes() == results[1].weights.tobytes()


# ---- what else may be asked for
def test_the_largest_weights(client):
    needs(client, "top_k", weights={"top_k": 1})
    result = client.attention(zeros(1), zeros(3), bias=[[0, 2, 1]], weights={"top_k": 2})
    assert result.weights is None and result.top_weights.indices.tolist() == [[[1, 2]]]
    near(result.top_weights.values, [[[.665241, .244728]]])


def test_stages_of_the_scores(client):
    needs(client, "stage:", weights={"stage": "scores"})
    result = client.attention([[2.0]], [[1.0], [3.0]], mask=[[True, False]], weights={"stage": ["scores", "masked", "softmax"]})
    assert result.weights is None
    near(result.stages["scores"], [[[2, 6]]])
    assert result.stages["masked"].tolist() == [[[2, -np.inf]]]
    near(result.stages["softmax"], [[[1, 0]]])


def test_statistics(client):
    needs(client, "statistics", statistics=["max"])
    result = client.attention(zeros(2), zeros(4), mask=[[True] * 4, [False] * 4], statistics=["entropy", "logsumexp", "max"])
    near(result.statistics["entropy"], [[log(4), 0]])
    near(result.statistics["logsumexp"][0, 0], log(4))
    assert result.statistics["logsumexp"][0, 1] == result.statistics["max"][0, 1] == -np.inf


def test_a_cache_gives_what_the_whole_sequence_gives(client):
    needs(client, "past_key", past_key=np.zeros((1, 0, 2)), past_value=np.zeros((1, 0, 2)))
    query = np.random.default_rng(4).normal(size=(1, 2, 5, 4)).astype(np.float32)
    whole = client.attention(query, causal=True)
    past = {"past_key": np.zeros((1, 2, 0, 4)), "past_value": np.zeros((1, 2, 0, 4))}
    for step in range(5):
        result = client.attention(query[:, :, step:step + 1], causal=True, **past)
        past = {"past_key": result.present["key"], "past_value": result.present["value"]}
        near(result.context, whole.context[:, :, step:step + 1], 4e-6)
    assert result.shape.keys == 5


def test_rotated_positions_and_what_enters_the_scores(client):
    needs(client, "positions", "projected", positions="rope", projected=True)
    result = client.attention([[1.0, 2, 3, 4]], positions="rope", position_offset=1, projected=True)
    near(result.projected["query"], [[[-1.984111, 1.959901, 2.462378, 4.019800]]])
    near(result.projected["value"], [[[1, 2, 3, 4]]])


@pytest.mark.parametrize("dtype,arrives", [("float16", np.float16), ("bfloat16", np.float32), ("float64", np.float64)])
def test_other_output_dtypes(any_client, has_safetensors, dtype, arrives):
    if not has_safetensors:
        pytest.skip(NO_SAFETENSORS)
    needs(any_client, "output_dtype", output_dtype=dtype)
    result = any_client.attention([[1.0]], output_dtype=dtype)
    assert result.context.dtype == arrives and result.context.tolist() == [[1]]


# ---- refusals
@pytest.mark.parametrize("options,code,pointer", [
    ({"query": np.ones((2, 3)), "heads": 2}, "heads", "/heads"),
    ({"query": np.ones((2, 3)), "key": np.ones((2, 4))}, "shape-mismatch", "/key"),
    ({"query": [[1e39]]}, "beyond-float32", "/query"),
    ({"query": np.ones((2, 3)), "softcap": 0}, "bad-value", "/softcap"),
    ({"query": np.ones((2, 3)), "window": (-2, 0)}, None, "/window"),
    ({"query": np.ones((2, 3)), "projections": {"query": np.ones((4, 3))}}, "shape-mismatch", "/projections/query"),
    ({"query": np.ones((2, 3)), "causal": "sideways"}, None, "/causal"),
    ({"query": np.ones((2, 3)), "mask": np.ones((2, 2))}, None, "/mask"),
    ({"query": 1.0}, None, "/query"),
])
def test_a_refusal_points_at_the_field(client, options, code, pointer):
    with pytest.raises(attnd.RequestError) as refused:
        client.attention(**options)
    error = refused.value
    assert error.status == 400 and error.pointer.startswith(pointer)
    assert code in (None, error.code)
    assert error.detail and error.title and error.request_id


def test_numbers_in_a_mask_are_an_error_that_names_bias(client):
    with pytest.raises(attnd.RequestError, match="bias"):
        client.attention(np.ones((2, 3)), mask=np.ones((2, 2)))


def test_what_is_over_a_limit_is_413_and_a_model_that_is_not_there_404(client):
    with pytest.raises(attnd.RequestError) as long:
        client.attention(np.ones((16385, 1)), weights=False)
    assert (long.value.status, long.value.code) == (413, "sequence-too-long")
    with pytest.raises(attnd.RequestError) as absent:
        client.model_attention("no-such", np.ones((2, 16)))
    assert (absent.value.status, absent.value.code) == (404, "no-such-model")
    with pytest.raises(attnd.RequestError, match="no-such-model"):
        client.model("no-such")


def test_a_deadline_longer_than_the_daemon_allows_is_refused(client):
    with pytest.raises(attnd.RequestError) as refused:
        client.attention([[1.0]], timeout_ms=10**9)
    assert refused.value.status == 400
    assert client.attention([[1.0]], timeout_ms=5000).context.tolist() == [[1]]


def test_the_id_of_a_request_comes_back(client):
    assert client.attention([[1.0]], request_id="my-own-id").request_id == "my-own-id"
    with pytest.raises(attnd.RequestError) as refused:
        client.attention([[1.0]], heads=0, request_id="another-id")
    assert refused.value.request_id == "another-id"


# ---- models and the rest
@pytest.fixture(scope="module")
def parameters():
    tensors, _ = safetensors.decode((MODEL / "model.safetensors").read_bytes())
    return tensors


def test_a_layer_of_a_model_agrees_with_its_weights(client, parameters):
    query = np.random.default_rng(6).uniform(-1, 1, (2, 5, 16)).astype(np.float32)
    result = client.model_attention("tiny-mha", query, causal=True)
    wanted, weights = multi_head(query, query, query, 4, np.split(parameters["in_proj_weight"], 3),
                                 np.split(parameters["in_proj_bias"], 3), parameters["out_proj.weight"],
                                 parameters["out_proj.bias"], np.tri(5, dtype=bool))
    near(result.context, wanted, 1e-5 * np.abs(wanted).max())
    near(result.weights, weights, 1e-5)


def test_models_latency_metrics_and_health(any_client):
    any_client.attention([[1.0]])
    assert [model["id"] for model in any_client.models()] == ["alice", "english-french", "tiny-mha"]
    assert any_client.model("tiny-mha")["heads"] == 4
    assert any(entry["operation"] == "attention" for entry in any_client.latency())
    assert "# TYPE attnd_requests_total counter" in any_client.metrics()
    assert any_client.health() is True


def test_threads_get_their_own_answers(client):
    queries = [np.random.default_rng(n).normal(size=(n % 5 + 1, 4)) for n in range(60)]
    serial = [client.attention(query).context.tobytes() for query in queries]
    with ThreadPoolExecutor(8) as pool:
        mixed = [result.context.tobytes() for result in pool.map(client.attention, queries)]
    assert mixed == serial


# ---- torch's names and polarity
@pytest.mark.parametrize("lead", [(), (3,), (2, 3), (2, 2, 3)], ids=str)
@pytest.mark.parametrize("kind", ["none", "causal", "boolean", "row", "float", "whole"])
def test_scaled_dot_product_attention_is_torchs(any_client, lead, kind):
    random = np.random.default_rng(len(lead))
    q, k, v = (random.uniform(-1, 1, (*lead, n, w)).astype(np.float32) for n, w in ((4, 3), (5, 3), (5, 2)))
    mask = {"boolean": random.random((4, 5)) < 0.6, "row": random.random(5) < 0.6,
            "float": random.normal(size=(4, 5)).astype(np.float32),
            "whole": random.random((*lead, 4, 5)) < 0.6}.get(kind)
    got = scaled_dot_product_attention(q, k, v, mask, is_causal=kind == "causal", scale=0.7, client=any_client)
    allowed = np.tri(4, 5, dtype=bool) if kind == "causal" else True if mask is None or kind == "float" else mask
    context, _ = attend(q, k, v, allowed, mask if kind == "float" else 0.0, 0.7)
    assert got.shape == (*lead, 4, 2)
    near(got, context, 4e-6)


def test_scaled_dot_product_attention_refuses_what_torch_refuses(any_client):
    q, two, mask = np.ones((1, 4, 2, 3)), np.ones((1, 2, 2, 3)), np.ones((2, 2), bool)
    for arguments, message in [((q, two, two), "enable_gqa"), ((q, q, q, mask, 0.0, True), "exclude"),
                               ((q, q, q, None, 0.1), "dropout"), ((q, two[0], two[0]), "rank")]:
        with pytest.raises(ValueError, match=message):
            scaled_dot_product_attention(*arguments, client=any_client)
    with pytest.raises(TypeError, match="attn_mask"):
        scaled_dot_product_attention(q, q, q, np.ones((2, 2), int), client=any_client)
    shared = scaled_dot_product_attention(q, two, two, enable_gqa=True, client=any_client)
    assert shared.shape == (1, 4, 2, 3)


def layer(random, width, key_width, value_width):
    weights = [random.normal(size=(width, w)).astype(np.float32) / 4 for w in (width, key_width, value_width)]
    biases = [random.normal(size=width).astype(np.float32) for _ in range(3)]
    return weights, biases, random.normal(size=(width, width)).astype(np.float32) / 4, random.normal(size=width).astype(np.float32)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("padding", ["none", "boolean", "float"])
@pytest.mark.parametrize("mask", ["none", "causal", "boolean", "per_head", "float"])
def test_multi_head_attention_is_torchs(any_client, mask, padding, batch_first):
    random = np.random.default_rng(11)
    weights, biases, out, out_bias = layer(random, 8, 8, 8)
    q, k = random.uniform(-1, 1, (3, 4, 8)).astype(np.float32), random.uniform(-1, 1, (3, 5, 8)).astype(np.float32)
    ignored = {"boolean": random.random((4, 5)) < 0.4, "per_head": random.random((6, 4, 5)) < 0.4,
               "float": random.normal(size=(4, 5)).astype(np.float32)}.get(mask)
    padded = {"boolean": random.random((3, 5)) < 0.4, "float": random.normal(size=(3, 5)).astype(np.float32)}.get(padding)
    allowed, bias = np.ones((3, 2, 4, 5), bool), np.zeros((3, 2, 4, 5))
    if mask == "float":
        bias += ignored
    elif mask == "causal":
        allowed &= np.tri(4, 5, dtype=bool)
    elif ignored is not None:
        allowed &= ~ignored.reshape((3, 2, 4, 5) if mask == "per_head" else (4, 5))
    if padding == "float":
        bias += padded[:, None, None]
    elif padded is not None:
        allowed &= ~padded[:, None, None]
    wanted, found = multi_head(q, k, k, 2, weights, biases, out, out_bias, allowed, bias)

    turn = (lambda x: x) if batch_first else (lambda x: x.swapaxes(0, 1))
    arguments = (turn(q), turn(k), turn(k), 2, np.concatenate(weights), np.concatenate(biases), out, out_bias)
    options = {"key_padding_mask": padded, "attn_mask": ignored, "is_causal": mask == "causal",
               "batch_first": batch_first, "client": any_client}
    output, mean = multi_head_attention(*arguments, **options)
    near(turn(output), wanted, 1e-5 * np.abs(wanted).max())
    near(mean, found.mean(1), 1e-5)
    _, heads = multi_head_attention(*arguments, **options, average_attn_weights=False)
    near(heads, found, 1e-5)
    assert multi_head_attention(*arguments, **options, need_weights=False)[1] is None


def test_a_causal_hint_beside_a_mask_changes_nothing(any_client):
    x, square = np.eye(4), np.eye(4)
    _, weights = multi_head_attention(x, x, x, 1, np.tile(square, (3, 1)), None, square, client=any_client, is_causal=True,
                                      attn_mask=np.eye(4, dtype=bool))
    assert (weights > 0).tolist() == (~np.eye(4, dtype=bool)).tolist()


def test_multi_head_attention_of_other_widths_and_of_one_sequence(any_client):
    random = np.random.default_rng(12)
    weights, biases, out, out_bias = layer(random, 8, 6, 5)
    q, k, v = (random.uniform(-1, 1, (n, w)).astype(np.float32) for n, w in ((4, 8), (5, 6), (5, 5)))
    padded = np.array([False, True, False, False, True])
    output, mean = multi_head_attention(q, k, v, 2, None, np.concatenate(biases), out, out_bias, client=any_client,
                                        key_padding_mask=padded, q_proj_weight=weights[0], k_proj_weight=weights[1],
                                        v_proj_weight=weights[2])
    wanted, found = multi_head(q, k, v, 2, weights, biases, out, out_bias, ~padded)
    near(output, wanted, 1e-5 * np.abs(wanted).max())
    near(mean, found.mean(0), 1e-5)


def test_multi_head_attention_refuses_weights_and_masks_that_do_not_fit(any_client):
    x, square, bias = np.ones((2, 4)), np.ones((4, 4)), np.ones(4)
    for changed, message in [({"in_proj_weight": square}, "in_proj_weight"), ({"in_proj_weight": None}, "q_proj_weight"),
                             ({"in_proj_bias": bias}, "in_proj_bias"), ({"attn_mask": np.ones((3, 2, 2), bool)}, "attn_mask"),
                             ({"key_padding_mask": np.ones((1, 1, 2), bool)}, "key_padding_mask"), ({"key": x[None]}, "rank")]:
        arguments = {"query": x, "key": x, "value": x, "num_heads": 2, "in_proj_weight": np.ones((12, 4)),
                     "in_proj_bias": None, "out_proj_weight": square, **changed}
        with pytest.raises(ValueError, match=message):
            multi_head_attention(**arguments, client=any_client)


# ---- what is shown to newcomers
def test_the_example_draws_the_textbooks_heat_map(url, has_safetensors):
    encoding = "safetensors" if has_safetensors else "json"
    command = [sys.executable, ROOT / "clients/python/examples/heat_map.py", "--url", url, "--encoding", encoding]
    done = subprocess.run(command, env={"PYTHONPATH": str(ROOT / "clients/python/src"), "PYTHONIOENCODING": "utf-8"},
                          capture_output=True, text=True, timeout=60 * SLOW)
    assert done.returncode == 0, done.stderr
    assert "query 0  1.37439  1.73916  2.10392" in done.stdout
    rows = [[float(word) for word in line.split()[2:] if word[0] == "0"] for line in done.stdout.splitlines() if "query" in line]
    assert rows[-4:] == [[round(weight, 2) for weight in row] for row in WEIGHTS]
    assert "██ 0.52" in done.stdout
