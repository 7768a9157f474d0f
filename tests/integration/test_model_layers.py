"""POST /v1/models/{model}/attention: the layers of every family, with what is the model's own."""
import contract
import numpy as np
import pytest
import stacks
import tensors
from daemon import Daemon

# Models whose vectors are of layers alone: N.query, N.key, N.value, N.mask, N.output, N.weights.
LAYERS = sorted(path.parent.name for path in stacks.FOLDER.glob("*/vectors.safetensors")
                if path.parent.name not in stacks.CASES)


@pytest.fixture(scope="module")
def served():
    with Daemon("--models", stacks.FOLDER, "--workers", 2) as running:
        yield running


def ask(daemon, model, **fields):
    reply = daemon.post(f"/v1/models/{model}/attention", stacks.plain(fields))
    assert reply.status == 200, reply
    return reply.json


def weights_of(model):
    return tensors.unpack((stacks.FOLDER / model / "model.safetensors").read_bytes())[0]


@pytest.mark.parametrize("model", LAYERS)
def test_each_layer_answers_as_its_framework_does(served, model):
    vectors = stacks.vectors(model)
    layers = sum(name.endswith(".output") for name in vectors)
    kind = "cross" if model.startswith("unet") else "self"
    entry = served.get(f"/v1/models/{model}").json
    assert (entry["cross_layers"] if kind == "cross" else entry["layers"]) == layers
    for layer in range(layers):
        fields = {name: vectors[f"{layer}.{name}"] for name in ("query", "key", "value", "mask") if f"{layer}.{name}" in vectors}
        if "mask" in fields:
            fields["mask"] = fields["mask"].astype(bool)
        reply = ask(served, model, layer=layer, kind=kind, **fields)
        np.testing.assert_allclose(reply["context"], vectors[f"{layer}.output"], atol=1e-5)
        np.testing.assert_allclose(reply["weights"], vectors[f"{layer}.weights"], atol=1e-5)
        assert reply["shape"]["keys"] == np.shape(reply["weights"])[-1]


def own_fields(weights, layer, query):
    """What the layer of a small Mistral is, said to the route that knows no models."""
    name = f"model.layers.{layer}.self_attn."
    projections = {part: weights[f"{name}{letter}_proj.weight"].tolist()
                   for part, letter in (("query", "q"), ("key", "k"), ("value", "v"), ("output", "o"))}
    return dict(query=query.tolist(), projections=projections, projection_layout="out_in", heads=4, kv_heads=2,
                positions="rope", causal=True, window=[3, -1])


def test_rotation_causality_and_window_are_the_models_where_nothing_else_is_sent(served):
    query, weights = np.random.default_rng(5).uniform(-1, 1, (7, 24)), weights_of("mistral-window")
    said = own_fields(weights, 1, query)
    for fields in ({}, {"causal": False}, {"window": [-1, -1]}, {"softcap": 0.5}, {"position_offset": 11}):
        wanted = contract.answer({**said, **fields})
        reply = ask(served, "mistral-window", query=query, layer=1, **fields)
        np.testing.assert_allclose(reply["context"], wanted["context"], atol=1e-5)
        np.testing.assert_allclose(reply["weights"], wanted["weights"], atol=1e-5)


def test_positions_of_a_model_go_on_where_its_past_ends(served):
    query = np.random.default_rng(6).uniform(-1, 1, (1, 7, 24))
    whole = ask(served, "llama-grouped", query=query)
    empty = {"shape": [1, 2, 0, 8], "data": []}
    first = ask(served, "llama-grouped", query=query[:, :4], past_key=empty, past_value=empty)
    second = ask(served, "llama-grouped", query=query[:, 4:], past_key=first["present_key"], past_value=first["present_value"])
    np.testing.assert_allclose(second["context"], np.array(whole["context"])[:, 4:], atol=1e-5)


def test_scores_of_t5_have_their_distances_biases_and_no_scale(served):
    query, weights = np.random.default_rng(7).uniform(-1, 1, (9, 20)), weights_of("t5-relu")
    name = "decoder.block.0.layer.0.SelfAttention."
    learned = weights[name + "relative_attention_bias.weight"]  # [8 buckets, 3 heads]; distances below 4 have their own
    projections = {part: weights[f"{name}{letter}.weight"].tolist()
                   for part, letter in (("query", "q"), ("key", "k"), ("value", "v"), ("output", "o"))}
    distance = np.maximum(np.arange(9)[:, None] - np.arange(9)[None], 0)
    far = 4 + (np.log(np.maximum(distance, 4) / 4) / np.log(20 / 4) * 4).astype(int)
    bias = np.moveaxis(learned[np.where(distance < 4, distance, np.minimum(far, 7))], 2, 0)
    wanted = contract.answer(dict(query=query.tolist(), projections=projections, projection_layout="out_in", heads=3,
                                  scale=1.0, causal=True, bias=bias.tolist()))
    reply = ask(served, "t5-relu", query=query, layer=2)  # the two of the encoder come first
    np.testing.assert_allclose(reply["weights"], wanted["weights"], atol=1e-5)
    np.testing.assert_allclose(reply["context"], wanted["context"], atol=1e-5)


def test_cross_attention_is_numbered_by_itself_and_sees_all_keys(served):
    rng = np.random.default_rng(8)
    reply = ask(served, "marian-swish", query=rng.uniform(-1, 1, (5, 18)), key=rng.uniform(-1, 1, (4, 18)), kind="cross", layer=2)
    assert np.shape(reply["weights"]) == (3, 5, 4) and np.min(reply["weights"]) > 0
    for fields, pointer in ((dict(kind="cross", layer=3), "/layer"), (dict(layer=5), "/layer")):
        refused = served.post("/v1/models/marian-swish/attention", dict(query=[[0] * 18], **fields))
        assert (refused.status, refused.json["pointer"]) == (400, pointer)


def test_keys_that_a_layer_appends_have_columns_and_no_past(served):
    query = [[0.5] * 24] * 3
    reply = ask(served, "torch-mha-appended", query=query, key_lengths=1, causal=True, weights={"top_k": 5})
    assert np.shape(reply["weights"]["values"]) == (4, 3, 5) and reply["shape"]["keys"] == 5
    assert sorted(reply["weights"]["indices"][0][0][:3]) == [0, 3, 4]
    past = {"shape": [4, 1, 6], "data": [0] * 24}
    refused = served.post("/v1/models/torch-mha-appended/attention", dict(query=query, past_key=past, past_value=past))
    assert (refused.status, refused.json["pointer"]) == (400, "/past_key")
    refused = served.post("/v1/models/torch-mha-appended/attention", dict(query=query, mask=[[True] * 5] * 3))
    assert (refused.status, refused.json["code"], refused.json["pointer"]) == (400, "shape-mismatch", "/mask")
