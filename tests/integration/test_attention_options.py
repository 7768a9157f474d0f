"""Every field of POST /v1/attention: the right answers of ATTENTION.md, and a float64 reference over combinations."""
import base64
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from contract import LOWEST, answer, rotate, sinusoid, slopes
from daemon import Daemon, runnable
from reference import torch_mha

DTYPES = {"float32": np.float32, "float16": np.float16, "float64": np.float64}


def binary(array, dtype="float32"):
    """A base64 tensor."""
    if dtype == "bfloat16":
        raw = (np.asarray(array, np.float32).view(np.uint32) >> 16).astype("<u2").tobytes()
    else:
        raw = np.ascontiguousarray(array, bool if dtype == "bool" else DTYPES[dtype]).tobytes()
    return {"shape": list(np.shape(array)), "dtype": dtype, "base64": base64.b64encode(raw).decode()}


def sent(fields):
    """The fields as JSON can say them: arrays with infinities or without elements by their other forms."""
    def form(x):
        if isinstance(x, dict):
            return {k: form(v) for k, v in x.items()}
        if not isinstance(x, np.ndarray):
            return x
        if x.dtype != bool and not np.isfinite(x).all():
            return binary(x)
        return x.tolist() if x.size else {"shape": list(x.shape), "data": []}
    return form(fields)


def ask(daemon, path="/v1/attention", **fields):
    reply = daemon.post(path, sent(fields))
    assert reply.status == 200, reply
    return reply.json


def same(found, expected, place="reply"):
    """Whether a reply agrees with the reference, member by member, and has no other."""
    if isinstance(expected, dict):
        assert set(found) - {"shape"} == set(expected), place
        for name in expected:
            same(found[name], expected[name], f"{place}.{name}")
        return
    expected = np.where(np.isneginf(expected), LOWEST, expected)
    found = np.asarray(found, np.float64).reshape(expected.shape) if expected.size == 0 else np.asarray(found)
    assert found.shape == expected.shape, place
    name = place.split(".")[1]
    absolute = {"weights": 2e-6, "context": 4e-6}.get(name, 1e-5)
    np.testing.assert_allclose(found, expected, atol=absolute, rtol=1e-6, err_msg=place)


def check(daemon, **fields):
    same(ask(daemon, **fields), answer(fields))


def draw(seed, *shape):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


# ---- positions

def test_rope_turns_the_pair_of_the_contract(daemon):
    for positions, expected in (("rope", [-1.984111, 1.959901, 2.462378, 4.019800]),
                                ("rope_interleaved", [-1.142640, 1.922076, 2.959851, 4.029800])):
        got = ask(daemon, query=[[1, 2, 3, 4]], positions=positions, position_offset=1, projected=True, weights=False)
        np.testing.assert_allclose(got["projected"]["query"], [[expected]], atol=1e-6)
        np.testing.assert_allclose(got["projected"]["key"], [[expected]], atol=1e-6)
        assert got["projected"]["value"] == [[[1, 2, 3, 4]]]


@pytest.mark.parametrize("positions", ["rope", "rope_interleaved", "sinusoidal", "alibi", "none"])
@pytest.mark.parametrize("offset", [None, 0, 7, -3])
def test_positions_agree_with_the_reference(daemon, positions, offset):
    more = {} if offset is None else {"position_offset": offset}
    check(daemon, query=draw(1, 2, 5, 12), key=draw(2, 2, 6, 12), heads=3, positions=positions, projected=True, **more)


def test_rope_theta_is_the_base_of_the_angles(daemon):
    check(daemon, query=draw(3, 4, 8), positions="rope", rope_theta=500000.0, heads=2, projected=True)
    check(daemon, query=draw(3, 1, 2, 4, 8), positions="rope_interleaved", rope_theta=2.5, projected=True)


def test_sinusoidal_positions_are_added_before_the_projections(daemon):
    x, matrix = draw(4, 3, 4), draw(5, 4, 6)
    got = ask(daemon, query=x, projections={"query": matrix, "key": matrix, "value": matrix}, positions="sinusoidal",
              position_offset=2, heads=2, projected=True)
    flat = (x + sinusoid(3, 4, 2)) @ matrix.astype(np.float64)
    for name in ("query", "key", "value"):
        np.testing.assert_allclose(got["projected"][name], np.swapaxes(flat.reshape(3, 2, 3), 0, 1), atol=1e-5)


def test_alibi_has_the_published_slopes(daemon):
    for heads in (1, 3, 4, 6, 8):
        got = ask(daemon, query=np.zeros((1, heads, 1, 1)), key=np.zeros((1, heads, 3, 1)), positions="alibi",
                  weights={"stage": "masked"})
        np.testing.assert_allclose(np.array(got["stages"]["masked"])[0, :, 0],
                                   -slopes(heads)[:, None] * np.array([2, 1, 0]), rtol=1e-6)


def test_alibi_measures_from_the_aligned_diagonal(daemon):
    for causal in (False, True, "top_left", 1, [2, -1]):
        check(daemon, query=draw(6, 2, 3, 4), key=draw(7, 2, 5, 4), heads=2, positions="alibi", causal=causal,
              weights={"stage": ["masked", "softmax"]})


# ---- past and present

def test_a_cache_grown_key_by_key_gives_the_bits_of_the_whole(daemon):
    x = draw(8, 6, 8)
    whole = ask(daemon, query=x, heads=2, causal=True, positions="rope", weights=False)["context"]
    empty = np.zeros((2, 0, 4), np.float32)
    past = {"past_key": empty, "past_value": empty}
    for i in range(6):
        got = ask(daemon, query=x[i:i + 1], heads=2, causal=True, positions="rope", weights=False, **past)
        np.testing.assert_allclose(got["context"][0], whole[i], atol=4e-6)
        past = {"past_" + n: np.array(got["present_" + n], np.float32) for n in ("key", "value")}
        assert past["past_key"].shape == (2, i + 1, 4)
    np.testing.assert_allclose(past["past_key"][:, 3], rotate(x.reshape(6, 2, 4).swapaxes(0, 1).astype(float), 0, 1e4,
                                                              False)[:, 3], atol=1e-6)


@pytest.mark.parametrize("form", ["single", "single_with_batch", "batch", "split"])
def test_present_comes_back_in_the_form_of_past(daemon, form):
    past = (draw(9, 2, 3, 4), draw(10, 2, 3, 5))
    query, key, value = draw(11, 2, 8), draw(12, 3, 8), draw(13, 3, 10)
    if form != "single":
        past = tuple(x[None] for x in past)
    if form in ("batch", "split"):
        query, key, value = query[None], key[None], value[None]
    if form == "split":
        query, key, value = (x.reshape(1, -1, 2, x.shape[-1] // 2).swapaxes(1, 2) for x in (query, key, value))
    heads = {} if form == "split" else {"heads": 2}
    check(daemon, query=query, key=key, value=value, past_key=past[0], past_value=past[1], **heads)
    check(daemon, query=query, key=key, value=value, past_key=past[0][..., :0, :], past_value=past[1][..., :0, :], **heads)


def test_no_present_without_a_past(daemon):
    got = ask(daemon, query=draw(14, 2, 4), projected=True)
    assert "present_key" not in got and "present_value" not in got


def test_keys_count_the_past_everywhere(daemon):
    fields = dict(query=draw(15, 2, 3, 4), past_key=draw(16, 2, 1, 4, 4), past_value=draw(17, 2, 1, 4, 4))
    got = ask(daemon, **fields)
    assert got["shape"]["keys"] == 7 and np.array(got["weights"]).shape == (2, 1, 3, 7)
    ok = np.random.default_rng(18).random((2, 1, 3, 7)) < 0.7
    check(daemon, mask=ok, **fields)
    check(daemon, bias=draw(19, 3, 7), **fields)
    check(daemon, key_lengths=[7, 5], **fields)
    check(daemon, causal=True, **fields)
    check(daemon, window=[2, 1], **fields)


def test_grouped_heads_share_the_past(daemon):
    check(daemon, query=draw(20, 3, 8), key=draw(21, 3, 4), heads=4, kv_heads=2, past_key=draw(22, 2, 2, 2),
          past_value=draw(23, 2, 2, 2), projected=True, causal=True, positions="rope")


# ---- weights: heads, queries, top k and stages

def test_heads_and_queries_narrow_every_form(daemon):
    fields = dict(query=draw(24, 2, 5, 12), heads=4)
    for narrow in ({"heads": [2]}, {"queries": [0, -1]}, {"heads": [-1, 0, 0], "queries": [3]}, {"heads": []}, {}):
        for more in ({}, {"top_k": 2}, {"stage": "scores"}, {"stage": ["masked", "softmax"]},
                     {"top_k": 3, "stage": "softmax"}):
            check(daemon, weights={**narrow, **more}, **fields)
    check(daemon, weights={"heads": [1]}, statistics=["entropy", "max"], **fields)


def test_top_k_is_largest_first_with_ties_to_the_lower_index(daemon):
    got = ask(daemon, query=[[1]], key=[[1], [3], [2], [3]], scale=1, weights={"top_k": 3})["weights"]
    assert got["indices"] == [[[1, 3, 2]]] and got["values"][0][0][0] == got["values"][0][0][1]
    got = ask(daemon, query=np.zeros((1, 1)), key=np.zeros((3, 1)), mask=[[False, True, False]], weights={"top_k": 2})
    assert got["weights"] == {"indices": [[[1, 0]]], "values": [[[1, 0]]]}


def test_top_k_is_clipped_to_the_keys(daemon):
    got = ask(daemon, query=np.zeros((1, 1)), key=np.zeros((3, 1)), weights={"top_k": 10**9})["weights"]
    assert got["indices"] == [[[0, 1, 2]]]
    got = ask(daemon, query=np.zeros((1, 1)), key=np.zeros((0, 1)), weights={"top_k": 2})["weights"]
    assert got == {"indices": [[[]]], "values": [[[]]]}


def test_stages_come_under_their_names(daemon):
    fields = dict(query=draw(25, 3, 4), key=draw(26, 4, 4), heads=2, softcap=0.5, bias=draw(27, 3, 4), causal=True)
    for stage in ("scores", "capped", "masked", "softmax", ["scores", "capped", "masked", "softmax"]):
        check(daemon, weights={"stage": stage}, **fields)
    assert "weights" not in ask(daemon, weights={"stage": "softmax"}, **fields)


def test_an_excluded_score_is_the_lowest_float32_in_text(daemon):
    got = ask(daemon, query=np.zeros((2, 1)), causal=True, mask=[[False, True], [True, True]], sink=3.0,
              weights={"stage": "masked"}, statistics=["logsumexp", "max"])
    assert got["stages"]["masked"] == [[[LOWEST, LOWEST], [0, 0]]]
    assert got["statistics"]["logsumexp"][0][0] == LOWEST and got["statistics"]["max"] == [[LOWEST, 0]]


# ---- statistics and projected

def test_statistics_are_of_each_row(daemon):
    fields = dict(query=draw(28, 2, 3, 8), key=draw(29, 2, 4, 8), heads=2, key_lengths=[4, 2])
    for statistics in (["entropy"], ["logsumexp"], ["max"], ["max", "entropy", "logsumexp"]):
        check(daemon, statistics=statistics, weights=False, **fields)
        check(daemon, statistics=statistics, weights=False, sink=[0.5, -1.0], **fields)


def test_projected_is_before_the_scale(daemon):
    matrices = {name: draw(30 + i, 6, 8) for i, name in enumerate(("query", "key", "value"))}
    check(daemon, query=draw(34, 3, 6), projections=matrices, heads=2, scale=3.0, projected=True)
    check(daemon, query=draw(35, 1, 2, 3, 4), scale=0.0, projected=True)


# ---- binary tensors

@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_base64_tensors_are_their_numbers(daemon, dtype):
    query = (np.arange(12).reshape(3, 4) - 5).astype(np.float32) / 4  # exact in each type
    key = -query
    assert ask(daemon, query=binary(query, dtype), key=binary(key, dtype)) == ask(daemon, query=query, key=key)


def test_base64_reaches_every_tensor(daemon):
    matrix, past = draw(40, 4, 4), draw(41, 2, 3, 2)
    ok, bias = np.random.default_rng(42).random((2, 5)) < 0.5, draw(43, 2, 5)
    plain = dict(query=draw(44, 2, 4), key=draw(45, 2, 4), value=draw(46, 2, 4), heads=2, mask=ok, bias=bias,
                 past_key=past, past_value=past, projections={"query": matrix, "output": matrix, "output_bias": matrix[0]})
    coded = {**plain, **{n: binary(plain[n]) for n in ("query", "key", "value", "bias", "past_key", "past_value")}}
    coded["mask"] = binary(ok, "bool")
    coded["projections"] = {n: binary(x) for n, x in plain["projections"].items()}
    assert ask(daemon, **coded) == ask(daemon, **plain)


def test_base64_may_be_empty_and_may_escape_its_slashes(daemon):
    got = ask(daemon, query=[[1.0]], key=binary(np.zeros((0, 1))))
    assert got["context"] == [[0]]
    text = binary(np.full((1, 3), -1.9999999))
    assert "/" in text["base64"]
    escaped = '{"query":{"base64":"%s","dtype":"float32","shape":[1,3]}}' % text["base64"].replace("/", "\\/")
    reply = daemon.post("/v1/attention", escaped)
    assert reply.json == ask(daemon, query=text)


def test_a_bias_of_minus_infinity_excludes_as_a_mask_does(daemon):
    ok = np.array([[True, False, True], [False, False, False]])
    value = np.array([[10.0], [20], [60]])
    masked = ask(daemon, query=np.zeros((2, 1)), key=np.zeros((3, 1)), value=value, mask=ok)
    biased = ask(daemon, query=np.zeros((2, 1)), key=np.zeros((3, 1)), value=value, bias=np.where(ok, 0.0, -np.inf))
    assert biased == masked and masked["context"] == [[35], [0]]


def test_nan_in_an_excluded_key_or_value_changes_nothing(daemon):
    key, value = np.zeros((3, 1)), np.array([[10], [20], [np.nan]])
    assert ask(daemon, query=[[0]], key=key, value=value, key_lengths=2)["context"] == [[15]]
    key[2] = np.inf
    assert ask(daemon, query=[[0]], key=key, value=value, mask=[[True, True, False]])["context"] == [[15]]


def test_nan_in_a_query_makes_a_result_that_text_cannot_say(daemon):
    query = np.array([[0.0, 1], [np.nan, 1]])
    reply = daemon.attend(query=binary(query), key=[[1, 2]], value=[[1, 2]], weights=False)
    assert (reply.status, reply.json["code"], reply.json["pointer"]) == (422, "result-not-finite", "/context/1/0")
    reply = daemon.attend(query=binary(query), key=[[1, 2]], statistics=["max"], weights={"stage": "scores"})
    assert reply.status == 422


# ---- the route of a model

def test_a_model_takes_the_options_that_are_not_its_own(daemon, models):
    folder, tensors = models
    matrices = {name: tensors["in_proj_weight"][16 * i:16 * i + 16] for i, name in enumerate(("query", "key", "value"))}
    matrices |= {f"{name}_bias": tensors["in_proj_bias"][16 * i:16 * i + 16]
                 for i, name in enumerate(("query", "key", "value"))}
    own = dict(heads=4, projection_layout="out_in",
               projections={**matrices, "output": tensors["out_proj.weight"], "output_bias": tensors["out_proj.bias"]})
    query, past = draw(50, 2, 3, 16), draw(51, 2, 4, 2, 4)
    for options in (dict(past_key=past, past_value=past, causal=True), dict(softcap=0.3, sink=[0.0, 1, 2, 3]),
                    dict(window=[1, 0], statistics=["entropy", "logsumexp", "max"], projected=True),
                    dict(bias=draw(52, 4, 3, 3), weights={"heads": [1], "top_k": 2}),
                    dict(weights={"stage": ["scores", "masked"], "queries": [-1]}, key_lengths=[2, 3])):
        found = ask(daemon, "/v1/models/m/attention", query=query, **options)
        same(found, answer({"query": query, **own, **options}))


def test_the_model_of_the_route_is_torchs(daemon, models):
    x = draw(53, 4, 16)
    expected, _ = torch_mha(models[1], 4, x, x, x, np.ones((4, 4), bool))
    np.testing.assert_allclose(ask(daemon, "/v1/models/m/attention", query=x)["context"], expected, atol=1e-5)


# ---- combinations

def random_weights(rng, heads, queries):
    form = rng.choice(["all", "none", "mean", "object"], p=[.3, .1, .1, .5])
    if form != "object":
        return {"all": True, "none": False, "mean": "mean"}[form]
    out = {}
    if rng.random() < .4:
        out["heads"] = rng.integers(-heads, heads, rng.integers(1, 4)).tolist()
    if rng.random() < .4 and queries:
        out["queries"] = rng.integers(-queries, queries, rng.integers(1, 4)).tolist()
    if rng.random() < .4:
        out["top_k"] = int(rng.integers(1, 5))
    elif rng.random() < .6:
        names = ["scores", "capped", "masked", "softmax"]
        out["stage"] = sorted(rng.choice(names, rng.integers(1, 5), replace=False).tolist())
    return out


def random_masks(rng, fields, batch, heads, queries, keys):
    shape = tuple(int(n if rng.random() < .7 else 1) for n in (batch, heads, queries, keys))[rng.integers(0, 3):]
    if rng.random() < .4:
        fields["mask"] = rng.random(shape) < .8
    if rng.random() < .4:
        bias = rng.uniform(-2, 2, shape).astype(np.float32)
        fields["bias"] = np.where(rng.random(shape) < .1, -np.inf, bias) if rng.random() < .5 else bias
    if rng.random() < .3:
        fields["key_lengths"] = rng.integers(0, keys + 1, batch).tolist()
    choices = [True, "top_left", "bottom_right", int(rng.integers(-2, 4)), rng.integers(-2, 4, batch).tolist()]
    if rng.random() < .4:
        fields["causal"] = choices[rng.integers(0, 5)]
    if rng.random() < .3:
        fields["window"] = rng.integers(-1, 4, 2).tolist()


def random_fields(rng):
    rank, batch = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    batch = 1 if rank == 2 else batch
    kv_heads = int(rng.integers(1, 4))
    heads, width, value_width = kv_heads * int(rng.integers(1, 3)), 2 * int(rng.integers(1, 5)), int(rng.integers(1, 7))
    queries, new, past = (int(rng.integers(low, 8)) for low in (1, 1, 0))

    def tensor(length, count, each):
        x = rng.uniform(-1, 1, (batch, count, length, each)).astype(np.float32)
        x = x if rank == 4 else x.swapaxes(1, 2).reshape(batch, length, count * each)
        return x[0] if rank == 2 else x

    fields = {"query": tensor(queries, heads, width), "key": tensor(new, kv_heads, width),
              "value": tensor(new, kv_heads, value_width)}
    if rank < 4:
        fields |= {"heads": heads, "kv_heads": kv_heads}
    if rng.random() < .4:
        fields["past_key"] = rng.uniform(-1, 1, (batch, kv_heads, past, width)).astype(np.float32)
        fields["past_value"] = rng.uniform(-1, 1, (batch, kv_heads, past, value_width)).astype(np.float32)
        if rank == 2 and rng.random() < .5:
            fields |= {n: fields[n][0] for n in ("past_key", "past_value")}
    keys = new + (past if "past_key" in fields else 0)
    fields["positions"] = str(rng.choice(["none", "rope", "rope_interleaved", "alibi"] + ["sinusoidal"] * (rank < 4)))
    if rng.random() < .5:
        fields["position_offset"] = int(rng.integers(-3, 20))
    random_masks(rng, fields, batch, heads, queries, keys)
    if rng.random() < .3:
        fields["softcap"] = float(rng.uniform(.3, 3))
    if rng.random() < .3:
        fields["scale"] = float(np.float32(rng.uniform(-1, 1)))
    if rng.random() < .3:
        fields["sink"] = rng.uniform(-1, 1, heads).astype(np.float32).tolist()
    fields["statistics"] = [n for n in ("entropy", "logsumexp", "max") if rng.random() < .3]
    fields["projected"] = bool(rng.random() < .3)
    fields["weights"] = random_weights(rng, heads, queries)
    return fields


def check_random(found, expected):
    """As same(), but of the top k, whose order hangs on the last bit, only the values."""
    for group, name in (("weights", None), ("stages", "softmax")):
        part, wanted = found.get(group), expected.get(group)
        if name and part:
            part, wanted = part.get(name), wanted.get(name)
        if isinstance(wanted, dict) and "indices" in wanted:
            assert np.shape(part["indices"]) == wanted["indices"].shape
            part["indices"] = wanted["indices"]
    same(found, expected)


@pytest.fixture(scope="module", params=["native", "blas", "reference"])
def on_each(request):
    with Daemon("--kernels", runnable(request.param), "--workers", "2") as running:
        yield running


@pytest.mark.parametrize("block", range(5))
def test_random_combinations_agree_with_float64(on_each, block):
    rng = np.random.default_rng(1000 + block)
    for _ in range(100):
        fields = random_fields(rng)
        check_random(ask(on_each, **fields), answer(fields))


def test_replies_do_not_depend_on_what_is_computed_beside_them(on_each):
    rng = np.random.default_rng(7)
    requests = [random_fields(rng) for _ in range(60)]
    alone = [ask(on_each, **fields) for fields in requests]
    with ThreadPoolExecutor(12) as pool:
        together = list(pool.map(lambda fields: ask(on_each, **fields), requests * 3))
    assert together == alone * 3


def test_the_context_does_not_depend_on_the_outputs_asked_for(on_each):
    rng = np.random.default_rng(8)
    for _ in range(60):
        fields = random_fields(rng)
        bare = {**fields, "weights": False, "statistics": [], "projected": False}
        assert ask(on_each, **fields)["context"] == ask(on_each, **bare)["context"]
