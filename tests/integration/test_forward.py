"""POST /v1/models/{model}/forward: stacks answer as their frameworks do, alone and in any company."""
import json
import threading

import numpy as np
import pytest
import stacks
import tensors
from daemon import ROOT, Daemon
from load import Busy, together
from stacks import forward, inputs, plain

GPT2, BERT, LLAMA, T5, MARIAN = "gpt2-head", "bert-plain", "llama-grouped", "t5-relu", "marian-swish"


@pytest.fixture(scope="module")
def stacked():
    with Daemon("--models", stacks.FOLDER, "--workers", 2) as running:
        yield running


def tokens(count, seed=0, vocabulary=50):
    return np.random.default_rng(seed).integers(0, vocabulary, count).tolist()


# ---- what is computed


@pytest.mark.parametrize("case", stacks.CASES)
def test_a_stack_answers_as_its_framework_does(stacked, case):
    wanted = stacks.vectors(case)
    outputs = ["hidden", "hidden_all", "weights"] + ["logits", "logits_all"] * ("logits" in wanted)
    reply = forward(stacked, case, **inputs(case), outputs=outputs)
    checked = 0
    for name, array in wanted.items():
        if name == "logits":
            got = np.array(reply["logits_all"])
            assert reply["logits"] == got[:, -1].tolist()
        elif ".hidden." in name or ".weights." in name:
            got = stacks.member(reply, "hidden_all" if ".hidden." in name else "weights", name)
        else:
            continue
        checked += 1
        np.testing.assert_allclose(got, array, rtol=0, atol=1e-4 * max(1, np.abs(array).max()), err_msg=name)
    assert checked >= 5
    if "encoder" in reply["hidden"]:
        assert all(reply["hidden"][stack] == reply["hidden_all"][stack][-1] for stack in ("encoder", "decoder"))
    else:
        assert reply["hidden"] == reply["hidden_all"][-1]


def test_one_layer_of_a_decoder_answers_with_its_own_mask(stacked):
    wanted = stacks.vectors(GPT2)
    weights = forward(stacked, GPT2, **inputs(GPT2), outputs="weights", layers=[0])["weights"][0]
    np.testing.assert_allclose(weights, wanted["first.weights.0"], atol=1e-5)
    x = np.random.default_rng(0).uniform(-1, 1, (5, 24)).tolist()
    own = stacked.post(f"/v1/models/{GPT2}/attention", dict(query=x)).json["weights"]
    assert np.triu(own, 1).max() == 0
    assert np.triu(stacked.post(f"/v1/models/{GPT2}/attention", dict(query=x, causal=False)).json["weights"], 1).max() > 0


def test_sums_come_out_right_by_repeated_calls(start):
    folder = ROOT.parent / "shared/data/models"
    if not folder.is_dir():
        pytest.skip("../shared/data/models is not there")
    words = json.loads((folder / "mathformer-addformer/vocab.json").read_text())
    names = {number: word for word, number in words.items()}
    served = start("--models", folder)
    for prompt, answer in (("7+5=", "12"), ("9+9=", "18"), ("8+7=", "15")):
        text = [words[letter] for letter in prompt]
        said = ""
        while len(said) < 4:
            best = forward(served, "mathformer-addformer", tokens=text, outputs=[], top_logits=1)["top_logits"]["indices"][0]
            if names[best] == "</s>":
                break
            said += names[best]
            text.append(best)
        assert said == answer, prompt


def test_embeddings_take_the_place_of_those_of_tokens(stacked):
    row = tokens(6, vocabulary=60)
    by_tokens = forward(stacked, LLAMA, tokens=row, outputs=["hidden", "hidden_all", "logits"])
    by_embeddings = forward(stacked, LLAMA, embeddings=by_tokens["hidden_all"][0], outputs=["hidden", "logits"])
    assert by_embeddings == {name: by_tokens[name] for name in ("hidden", "logits")}


def test_without_decoder_tokens_only_the_encoder_runs(stacked):
    row = tokens(5)
    both = forward(stacked, T5, tokens=row, decoder_tokens=tokens(3, 1), outputs=["hidden", "weights"])
    first = forward(stacked, T5, tokens=row, outputs=["hidden", "weights", "pooled"], rollout=True, statistics="max")
    assert set(both["weights"]) == {"encoder", "decoder", "cross"} and set(both["hidden"]) == {"encoder", "decoder"}
    for name in ("hidden", "weights"):
        assert first[name] == {"encoder": both[name]["encoder"]}
    assert set(first["rollout"]) == set(first["statistics"]["max"]) == {"encoder"}
    np.testing.assert_allclose(first["pooled"], np.mean(first["hidden"]["encoder"], axis=0), atol=1e-5)


# ---- what is asked for


def test_hidden_is_what_comes_when_nothing_is_asked_for(stacked):
    row = tokens(4)
    reply = forward(stacked, BERT, tokens=row)
    assert set(reply) == {"tokens", "hidden"} and reply["tokens"] == row
    assert forward(stacked, BERT, tokens=row, outputs=[]) == {"tokens": row}


def test_layers_heads_and_queries_narrow_the_weights(stacked):
    row = tokens(6)
    whole = np.array(forward(stacked, BERT, tokens=[row], outputs="weights")["weights"])
    part = forward(stacked, BERT, tokens=[row], outputs="weights", layers=[-1, 0], heads=[2, -4], queries=[-1, 1, 1])
    assert part["layers"] == [2, 0]
    assert np.array(part["weights"]).tolist() == whole[[2, 0]][:, :, [2, 0]][:, :, :, [5, 1, 1]].tolist()


def test_layers_are_told_by_kind_where_there_are_kinds(stacked):
    fields = dict(tokens=tokens(4), decoder_tokens=tokens(3), outputs="weights")
    whole, part = forward(stacked, MARIAN, **fields), forward(stacked, MARIAN, **fields, layers=[-1])
    assert part["layers"] == {"encoder": [1], "decoder": [2], "cross": [2]}
    assert part["weights"] == {kind: layers[-1:] for kind, layers in whole["weights"].items()}


def test_selections_count_from_the_end_of_each_stack(stacked):
    fields = dict(tokens=tokens(7), decoder_tokens=tokens(3), outputs="weights")
    whole, part = forward(stacked, MARIAN, **fields), forward(stacked, MARIAN, **fields, queries=[-1], heads=[-1])
    for kind, layers in whole["weights"].items():
        assert np.array(part["weights"][kind]).tolist() == np.array(layers)[:, -1:, -1:].tolist(), kind


def test_top_k_are_the_largest_weights_clipped_to_the_keys(stacked):
    fields = dict(tokens=tokens(6), decoder_tokens=tokens(2), outputs="weights", layers=[0])
    whole, top = forward(stacked, MARIAN, **fields), forward(stacked, MARIAN, **fields, top_k=4)
    for kind, keys in (("encoder", 6), ("decoder", 2), ("cross", 6)):
        weights, found = np.array(whole["weights"][kind][0]), top["weights"][kind][0]
        order = np.argsort(-weights, axis=-1, kind="stable")[..., :min(4, keys)]
        assert found["indices"] == order.tolist()
        assert found["values"] == np.take_along_axis(weights, order, -1).tolist()


def test_top_logits_are_the_largest_of_the_last_position(stacked):
    rows = [tokens(5), tokens(5, 1)]
    reply = forward(stacked, GPT2, tokens=rows, outputs=["logits", "logits_all"], top_logits=7)
    logits = np.array(reply["logits"])
    assert logits.tolist() == np.array(reply["logits_all"])[:, -1].tolist()
    order = np.argsort(-logits, axis=-1, kind="stable")[:, :7]
    assert reply["top_logits"]["indices"] == order.tolist()
    assert reply["top_logits"]["values"] == np.take_along_axis(logits, order, -1).tolist()
    assert np.shape(forward(stacked, GPT2, tokens=rows, top_logits=1000)["top_logits"]["indices"]) == (2, 50)


def test_pooling_is_of_the_last_hidden_states(stacked):
    rows = [tokens(4), tokens(2, 1), tokens(4, 2)]
    hidden = [np.array(h) for h in forward(stacked, BERT, tokens=rows)["hidden"]]
    for pooling, wanted in (("mean", [h.mean(0) for h in hidden]), ("cls", [h[0] for h in hidden]),
                            ("last", [h[-1] for h in hidden])):
        found = forward(stacked, BERT, tokens=rows, outputs="pooled", pooling=pooling)["pooled"]
        np.testing.assert_allclose(found, wanted, atol=1e-5)
        unit = forward(stacked, BERT, tokens=rows, outputs="pooled", pooling=pooling, normalize=True)["pooled"]
        np.testing.assert_allclose(unit, wanted / np.linalg.norm(wanted, axis=1, keepdims=True), atol=1e-5)
    assert forward(stacked, BERT, tokens=rows, outputs="pooled") == \
        forward(stacked, BERT, tokens=rows, outputs="pooled", pooling="mean", normalize=False)


@pytest.mark.parametrize("case,fields", [(BERT, {}), (GPT2, {}), (T5, dict(decoder_tokens=tokens(4, 3)))])
def test_rollout_multiplies_mean_weights_with_half_identity_upwards(stacked, case, fields):
    reply = forward(stacked, case, tokens=tokens(6), **fields, outputs="weights", rollout=True)
    kinds = ("encoder", "decoder") if fields else (None,)
    for kind in kinds:
        weights, found = (reply[name][kind] if kind else reply[name] for name in ("weights", "rollout"))
        wanted = np.eye(len(found))
        for layer in np.array(weights):
            wanted = (layer.mean(0) + np.eye(len(found))) / 2 @ wanted
        np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_statistics_are_those_of_the_weights_of_each_layer(stacked):
    reply = forward(stacked, GPT2, tokens=[tokens(5), tokens(5, 1)], outputs="weights", layers=[1],
                    statistics=["entropy", "logsumexp", "max"])
    weights, statistics = np.array(reply["weights"][0]), reply["statistics"]
    terms = np.where(weights > 0, weights * np.log(np.where(weights > 0, weights, 1)), 0)
    assert {name: len(layers) for name, layers in statistics.items()} == dict(entropy=1, logsumexp=1, max=1)
    np.testing.assert_allclose(statistics["entropy"][0], -terms.sum(-1), atol=1e-5)
    largest = np.exp(np.array(statistics["max"][0]) - np.array(statistics["logsumexp"][0]))
    np.testing.assert_allclose(largest, weights.max(-1), atol=1e-5)


def test_an_ablated_head_gives_nothing(stacked):
    row = tokens(5)
    whole = forward(stacked, BERT, tokens=row, outputs=["hidden_all", "weights"])
    cut = forward(stacked, BERT, tokens=row, outputs=["hidden_all", "weights"], ablate=[[1, 2], [-2, 0]])
    weights, before = np.array(cut["weights"]), np.array(whole["weights"])
    assert not weights[1, [0, 2]].any() and weights[1, [1, 3]].tolist() == before[1, [1, 3]].tolist()
    assert weights[0].tolist() == before[0].tolist() and weights[2].tolist() != before[2].tolist()
    assert cut["hidden_all"][:2] == whole["hidden_all"][:2] and cut["hidden_all"][2] != whole["hidden_all"][2]
    assert forward(stacked, BERT, tokens=row, outputs=["hidden_all", "weights"], ablate=[]) == whole


def linear(x, weights, name):
    return x @ weights[name + "weight"].T + weights[name + "bias"]


def norm(x, weights, name):
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return x * weights[name + "weight"] + weights[name + "bias"]


def encoder_block(x, weights, name, heads, ablated):
    """A post-norm block of torch.nn.TransformerEncoderLayer in float64."""
    length, width = x.shape
    packed = x @ weights[name + "self_attn.in_proj_weight"].T + weights[name + "self_attn.in_proj_bias"]
    q, k, v = (part.reshape(length, heads, -1).transpose(1, 0, 2) for part in np.split(packed, 3, axis=1))
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(width // heads)
    attention = np.exp(scores - scores.max(-1, keepdims=True))
    attention /= attention.sum(-1, keepdims=True)
    attention[ablated] = 0
    joined = (attention @ v).transpose(1, 0, 2).reshape(length, width)
    x = norm(x + linear(joined, weights, name + "self_attn.out_proj."), weights, name + "norm1.")
    inner = np.maximum(linear(x, weights, name + "linear1."), 0)
    return norm(x + linear(inner, weights, name + "linear2."), weights, name + "norm2.")


def test_what_an_ablation_does_to_the_blocks_above_is_what_numpy_says(stacked):
    case = "torch-encoder-post-norm"
    arrays, _, _ = tensors.unpack((stacks.FOLDER / case / "model.safetensors").read_bytes())
    weights = {name: array.astype(np.float64) for name, array in arrays.items()}
    x = np.random.default_rng(7).uniform(-1, 1, (4, 24)).astype(np.float32)
    found = forward(stacked, case, embeddings=x, outputs="hidden_all", ablate=[[0, 3], [2, 1]])["hidden_all"]
    wanted = x.astype(np.float64)
    for layer, ablated in enumerate(([3], [], [1])):
        wanted = encoder_block(wanted, weights, f"layers.{layer}.", 4, ablated)
        np.testing.assert_allclose(found[layer + 1], wanted, atol=1e-4)


def test_ablations_name_the_kind_where_there_are_kinds(stacked):
    fields = dict(tokens=tokens(4), decoder_tokens=tokens(3), outputs="weights")
    cut = forward(stacked, MARIAN, **fields, ablate=[["encoder", 0, 5], ["decoder", 1, -1], ["cross", -1, 0]])["weights"]
    for kind, layer, head in (("encoder", 0, 5), ("decoder", 1, 2), ("cross", 2, 0)):
        assert not np.array(cut[kind][layer][head]).any()
        assert np.array(cut[kind][layer]).any()


# ---- batches


def test_ragged_rows_come_back_as_lists_by_sequence(stacked):
    rows = [tokens(5), tokens(2, 1), [], tokens(5, 2)]
    reply = forward(stacked, GPT2, tokens=rows, outputs=["hidden", "hidden_all", "weights", "pooled", "logits_all"],
                    layers=[1], statistics="entropy", rollout=True)
    assert reply["tokens"] == rows
    lengths = [len(row) for row in rows]
    assert [len(h) for h in reply["hidden"]] == lengths == [len(h) for h in reply["logits_all"]]
    assert [len(state) for state in reply["hidden_all"]] == [4] * 3
    assert [np.shape(w) for w in reply["weights"][0] if w[0]] == [(3, n, n) for n in lengths if n]
    assert [[len(head) for head in heads] for heads in reply["statistics"]["entropy"][0]] == [[n] * 3 for n in lengths]
    assert [len(r) for r in reply["rollout"]] == lengths
    assert np.shape(reply["pooled"]) == (4, 24) and not any(reply["pooled"][2])


def test_one_ragged_side_makes_lists_of_what_has_its_length(stacked):
    reply = forward(stacked, MARIAN, tokens=[tokens(4), tokens(2)], decoder_tokens=[tokens(3), tokens(3, 1)],
                    outputs=["hidden", "weights"], layers=[0])
    assert np.shape(reply["hidden"]["decoder"]) == (2, 3, 18) and np.shape(reply["weights"]["decoder"][0]) == (2, 3, 3, 3)
    assert [np.shape(w) for w in reply["weights"]["cross"][0]] == [(3, 3, 4), (3, 3, 2)]
    alone = forward(stacked, MARIAN, tokens=tokens(2), decoder_tokens=tokens(3, 1), outputs=["hidden", "weights"], layers=[0])
    assert alone["hidden"] == {name: rows[1] for name, rows in reply["hidden"].items()}
    assert alone["weights"] == {name: [layers[0][1]] for name, layers in reply["weights"].items()}


ALL = dict(outputs=["hidden", "hidden_all", "weights", "logits", "logits_all", "pooled"], rollout=True, top_logits=3,
           statistics=["entropy", "logsumexp", "max"])


def one_of(value, n, last=("hidden", "pooled", "logits", "logits_all", "tokens", "decoder_tokens", "rollout")):
    """What a reply says of sequence n: lists by layer keep their layers."""
    def cut(name, part):
        if isinstance(part, dict):
            return {key: cut(key if name in ("statistics", "top_logits") else name, inner) for key, inner in part.items()}
        if name in last or name in ("indices", "values"):
            return part[n]
        return [layer[n] for layer in part]

    return {name: cut(name, part) for name, part in value.items()}


@pytest.mark.parametrize("case", [GPT2, LLAMA])
def test_a_sequence_has_the_same_bits_alone_in_a_batch_and_among_other_lengths(stacked, case):
    rows = [tokens(n, n) for n in (7, 3, 7, 7, 1, 3)]
    alone = [forward(stacked, case, tokens=row, **ALL) for row in rows]
    ragged = forward(stacked, case, tokens=rows, **ALL)
    assert [one_of(ragged, n) for n in range(len(rows))] == alone
    equal = [n for n, row in enumerate(rows) if len(row) == 7]
    batch = forward(stacked, case, tokens=[rows[n] for n in equal], **ALL)
    assert [one_of(batch, i) for i in range(len(equal))] == [alone[n] for n in equal]


def test_an_encoder_decoder_has_the_same_bits_alone_and_in_a_batch(stacked):
    pairs = [(tokens(n, n), tokens(m, m)) for n, m in ((5, 2), (3, 2), (5, 2), (5, 4))]
    alone = [forward(stacked, T5, tokens=a, decoder_tokens=b, **ALL) for a, b in pairs]
    ragged = forward(stacked, T5, tokens=[a for a, _ in pairs], decoder_tokens=[b for _, b in pairs], **ALL)
    assert [one_of(ragged, n) for n in range(4)] == alone


def test_results_do_not_depend_on_what_else_is_asked_for(stacked):
    row = tokens(9)
    whole = forward(stacked, GPT2, tokens=row, **ALL)
    for output in ALL["outputs"]:
        assert forward(stacked, GPT2, tokens=row, outputs=output)[output] == whole[output]


def test_requests_of_one_length_share_a_call_and_cannot_tell(start):
    one = start("--workers", 1, "--models", stacks.FOLDER, "--max-batch", 32, "--batch-max-age", 20000)
    bodies = [json.dumps(dict(tokens=tokens(6, n), **ALL)) for n in range(24)]
    alone = [one.post(stacks.path(GPT2), body).json for body in bodies]
    with Busy(one, length=8000):
        crowd = together(one, bodies, stacks.path(GPT2))
    assert {reply.headers["x-batch-size"] for reply in crowd} == {"24"}
    assert [reply.json for reply in crowd] == alone


def test_ragged_requests_meet_by_length(start):
    one = start("--workers", 1, "--models", stacks.FOLDER, "--max-batch", 64, "--batch-max-age", 20000)
    bodies = [json.dumps(dict(tokens=[tokens(4, n), tokens(6, n)], outputs=["hidden", "logits"])) for n in range(8)]
    alone = [one.post(stacks.path(GPT2), body).json for body in bodies]
    with Busy(one, length=8000):
        calls = one.metric("attnd_batch_sequences_count")
        crowd = together(one, bodies, stacks.path(GPT2))
    assert {reply.headers["x-batch-size"] for reply in crowd} == {"8"}
    assert one.metric("attnd_batch_sequences_count") - calls <= 3
    assert [reply.json for reply in crowd] == alone


def test_different_options_do_not_mix(start):
    one = start("--workers", 1, "--models", stacks.FOLDER)
    fields = [dict(outputs="weights"), dict(outputs="weights", top_k=2), dict(outputs="pooled"), dict(rollout=True),
              dict(outputs="pooled", pooling="last"), dict(ablate=[[0, 1]]), dict(outputs="weights", heads=[1]),
              dict(top_logits=2), dict(embeddings=np.ones((6, 24)).tolist())]
    bodies = [json.dumps({"tokens": tokens(6, n), **more} if "embeddings" not in more else more)
              for n in range(3) for more in fields]
    alone = [one.post(stacks.path(GPT2), body).json for body in bodies]
    with Busy(one, length=8000):
        crowd = together(one, bodies, stacks.path(GPT2))
    assert [reply.json for reply in crowd] == alone


def test_a_reply_does_not_depend_on_workers_or_batch_caps(start):
    bodies = [plain(dict(inputs(case), **{**ALL, "top_logits": 3})) for case in (GPT2, T5)]
    answers = []
    for flags in (("--workers", 1), ("--workers", 2), ("--workers", 2, "--max-batch", 1), ("--max-batch-scores", 1)):
        some = start("--models", stacks.FOLDER, *flags)
        answers.append([some.post(stacks.path(case), body).json for case, body in zip((GPT2, T5), bodies)])
    assert all(answer == answers[0] for answer in answers)


# ---- forms


@pytest.mark.parametrize("case", [GPT2, T5])
def test_binary_bodies_and_replies_carry_the_same_bits(stacked, case):
    fields = dict(inputs(case), **ALL)
    text = forward(stacked, case, **fields)
    reply = tensors.send(stacked, tensors.body_of(fields), stacks.path(case))
    assert reply.status == 200, reply
    binary, dtypes, _ = tensors.unpack(reply.body)
    for name, array in binary.items():
        part = text
        for key in name.split("."):
            part = part[int(key)] if isinstance(part, list) else part[key]
        assert dtypes[name] == ("I64" if "tokens" in name or "indices" in name else "F32")
        assert np.array(part, array.dtype).tobytes() == array.tobytes(), name
    assert {"tokens", "logits", "top_logits.indices", "pooled"} <= set(binary)
    assert ("weights.cross.0" if case == T5 else "weights.0") in binary


def test_names_of_a_binary_reply_count_layers_and_sequences(stacked):
    fields = dict(tokens=[tokens(3), tokens(2)], outputs=["weights", "hidden"], layers=[-1], top_k=2)
    reply = tensors.send(stacked, tensors.body_of(fields), stacks.path(BERT))
    arrays, _, metadata = tensors.unpack(reply.body)
    assert set(arrays) == {f"{name}.{n}" for n in (0, 1)
                           for name in ("tokens", "hidden", "weights.2.indices", "weights.2.values")}
    assert metadata == {"layers": "[2]"} and arrays["weights.2.values.1"].shape == (4, 2, 2)


def test_the_output_dtype_is_that_of_every_float_tensor(stacked):
    fields = dict(tokens=tokens(3), outputs=["weights", "pooled"], output_dtype="float64", top_k=1)
    _, dtypes, _ = tensors.unpack(tensors.send(stacked, tensors.body_of(fields), stacks.path(BERT)).body)
    assert {dtypes[name] for name in dtypes if "indices" in name or name == "tokens"} == {"I64"}
    assert {dtypes[name] for name in dtypes if "values" in name or name == "pooled"} == {"F64"}


def test_tokens_may_come_with_a_shape_or_in_bytes(stacked):
    import base64
    rows = [tokens(3), tokens(3, 1)]
    wanted = forward(stacked, GPT2, tokens=rows)
    assert forward(stacked, GPT2, tokens=dict(shape=[2, 3], data=sum(rows, []))) == wanted
    for dtype in ("int64", "int32"):
        raw = base64.b64encode(np.array(rows, dtype).tobytes()).decode()
        assert forward(stacked, GPT2, tokens=dict(shape=[2, 3], dtype=dtype, base64=raw)) == wanted


def test_empty_sequences_and_batches_are_legal(stacked):
    reply = forward(stacked, BERT, tokens=dict(shape=[0], data=[]), outputs=["hidden", "weights", "pooled"])
    assert reply["tokens"] == reply["hidden"] == [] and reply["pooled"] == [0] * 24
    assert forward(stacked, BERT, tokens=dict(shape=[0, 4], data=[]), outputs=["hidden", "pooled"]) == \
        {"tokens": [], "hidden": [], "pooled": []}
    assert forward(stacked, BERT, tokens=[[], []])["hidden"] == [[], []]


def test_either_side_of_an_encoder_decoder_may_be_empty(stacked):
    outputs = ["hidden", "weights", "logits_all", "pooled"]
    reply = forward(stacked, T5, tokens=[[1, 2], [], [3]], decoder_tokens=[[], [4], [5, 6]], outputs=outputs)
    assert [np.shape(x) for x in reply["logits_all"]] == [(0,), (1, 50), (2, 50)]
    assert [np.shape(x) for x in reply["weights"]["cross"][0]] == [(3, 0), (3, 1, 0), (3, 2, 1)]
    assert reply["pooled"][1] == [0] * len(reply["pooled"][0])
    alone = forward(stacked, T5, tokens=[3], decoder_tokens=[5, 6], outputs=outputs)
    assert alone["logits_all"] == reply["logits_all"][2]


def test_precision_is_of_the_text(stacked):
    fields = dict(tokens=tokens(3), outputs="pooled")
    np.testing.assert_allclose(forward(stacked, BERT, **fields, precision=3)["pooled"],
                               forward(stacked, BERT, **fields)["pooled"], rtol=6e-3)


# ---- what is refused


ROW = [1, 2, 3]
REFUSALS = [
    (GPT2, {}, "missing-field", "/tokens"),
    (GPT2, dict(tokens=ROW, embeddings=[[0] * 24]), "bad-value", "/embeddings"),
    (GPT2, dict(tokens=[]), "bad-value", "/tokens"),
    (GPT2, dict(tokens=7), "wrong-type", "/tokens"),
    (GPT2, dict(tokens=[1, 2.5]), "wrong-type", "/tokens/1"),
    (GPT2, dict(tokens=[[1], 2]), "wrong-type", "/tokens/1"),
    (GPT2, dict(tokens=[1, [2]]), "wrong-type", "/tokens/1"),
    (GPT2, dict(tokens=[[1, "a"]]), "wrong-type", "/tokens/0/1"),
    (GPT2, dict(tokens=[[1], [2, 50]]), "bad-value", "/tokens/1/1"),
    (GPT2, dict(tokens=[-1]), "bad-value", "/tokens/0"),
    (GPT2, dict(tokens=dict(data=[1])), "missing-field", "/tokens/shape"),
    (GPT2, dict(tokens=dict(shape=[2], data=[1])), "shape-mismatch", "/tokens/data"),
    (GPT2, dict(tokens=dict(shape=[1, 1, 1], data=[1])), "shape-mismatch", "/tokens/shape"),
    (GPT2, dict(tokens=dict(shape=[2, 2], data=[1, 2, 3, 77])), "bad-value", "/tokens/data/3"),
    (GPT2, dict(tokens=dict(shape=[1], base64="AAAA")), "missing-field", "/tokens/dtype"),
    (GPT2, dict(tokens=dict(shape=[1], dtype="int64", base64="!")), "bad-value", "/tokens/base64"),
    (GPT2, dict(tokens=dict(shape=[2**40, 2**40], data=[])), "shape-overflow", "/tokens/shape"),
    (GPT2, dict(tokens=dict(shape=[2**40, 0], data=[])), "too-many-elements", "/tokens/shape"),
    (GPT2, dict(tokens=dict(shape=[1 << 20, 0], data=[])), "too-many-elements", "/tokens/shape"),
    (GPT2, dict(embeddings=[[0] * 23]), "shape-mismatch", "/embeddings"),
    (GPT2, dict(embeddings=[0] * 24), "shape-mismatch", "/embeddings"),
    (GPT2, dict(tokens=[ROW * 6]), "sequence-too-long", "/tokens/0"),
    (GPT2, dict(tokens=ROW * 6, no_such=1), "sequence-too-long", "/tokens"),
    (GPT2, dict(text="a"), "no-tokenizer", "/text"),
    (GPT2, dict(text=[1]), "wrong-type", "/text"),
    (GPT2, dict(tokens=ROW, decoder_tokens=ROW), "bad-value", "/decoder_tokens"),
    (GPT2, dict(tokens=ROW, token=1), "unknown-field", "/token"),
    (GPT2, dict(tokens=ROW, outputs="hiden"), "bad-value", "/outputs"),
    (GPT2, dict(tokens=ROW, outputs=["hidden", 1]), "wrong-type", "/outputs/1"),
    (GPT2, dict(tokens=ROW, outputs=None), "wrong-type", "/outputs"),
    (GPT2, dict(tokens=ROW, outputs="weights", layers=[0, 2]), "bad-value", "/layers/1"),
    (GPT2, dict(tokens=ROW, outputs="weights", layers=[1, -1]), "bad-value", "/layers/1"),
    (GPT2, dict(tokens=ROW, outputs="weights", layers=[]), "bad-value", "/layers"),
    (GPT2, dict(tokens=ROW, outputs="weights", layers=0), "wrong-type", "/layers"),
    (GPT2, dict(tokens=ROW, outputs="weights", heads=[3]), "bad-value", "/heads/0"),
    (GPT2, dict(tokens=[ROW, [1]], outputs="weights", queries=[0, -2]), "bad-value", "/queries/1"),
    (GPT2, dict(tokens=ROW, outputs="weights", top_k=0), "bad-value", "/top_k"),
    (GPT2, dict(tokens=ROW, top_k=1), "bad-value", "/top_k"),
    (GPT2, dict(tokens=ROW, layers=[0]), "bad-value", "/layers"),
    (GPT2, dict(tokens=ROW, pooling="mean"), "bad-value", "/pooling"),
    (GPT2, dict(tokens=ROW, outputs="pooled", pooling="max"), "bad-value", "/pooling"),
    (GPT2, dict(tokens=ROW, normalize=True), "bad-value", "/normalize"),
    (GPT2, dict(tokens=ROW, outputs="pooled", normalize=1), "wrong-type", "/normalize"),
    (GPT2, dict(tokens=ROW, ablate=[1, 2]), "wrong-type", "/ablate/0"),
    (GPT2, dict(tokens=ROW, ablate=[[1]]), "bad-value", "/ablate/0"),
    (GPT2, dict(tokens=ROW, ablate=[[0, 0], [2, 0]]), "bad-value", "/ablate/1/0"),
    (GPT2, dict(tokens=ROW, ablate=[[0, 3]]), "bad-value", "/ablate/0/1"),
    (GPT2, dict(tokens=ROW, ablate=[["encoder", 0, 0]]), "bad-value", "/ablate/0"),
    (GPT2, dict(tokens=ROW, ablate=[["self", 0, 0]]), "bad-value", "/ablate/0/0"),
    (GPT2, dict(tokens=ROW, rollout=1), "wrong-type", "/rollout"),
    (GPT2, dict(tokens=ROW, statistics="mean"), "bad-value", "/statistics"),
    (GPT2, dict(tokens=ROW, top_logits=0), "bad-value", "/top_logits"),
    (GPT2, dict(tokens=[ROW, []], outputs="logits"), "bad-value", "/tokens/1"),
    (GPT2, dict(tokens=ROW, precision=10), "bad-value", "/precision"),
    (GPT2, dict(tokens=ROW, output_dtype="float32"), "bad-value", "/output_dtype"),
    (GPT2, dict(tokens=ROW, timeout_ms=10**9), "bad-value", "/timeout_ms"),
    (BERT, dict(tokens=ROW, outputs="logits"), "bad-value", "/outputs"),
    (BERT, dict(tokens=ROW, top_logits=1), "bad-value", "/top_logits"),
    (T5, dict(tokens=ROW, outputs="logits_all"), "missing-field", "/decoder_tokens"),
    (T5, dict(tokens=ROW, top_logits=1), "missing-field", "/decoder_tokens"),
    (T5, dict(tokens=ROW, decoder_tokens=[ROW]), "shape-mismatch", "/decoder_tokens"),
    (T5, dict(tokens=[ROW], decoder_tokens=[ROW, ROW]), "shape-mismatch", "/decoder_tokens"),
    (T5, dict(tokens=ROW, decoder_tokens=[0, 50]), "bad-value", "/decoder_tokens/1"),
    (T5, dict(tokens=ROW, decoder_text="a"), "no-tokenizer", "/decoder_text"),
    (T5, dict(tokens=ROW, ablate=[[0, 0]]), "bad-value", "/ablate/0"),
    (T5, dict(tokens=ROW, ablate=[["cross", 3, 0]]), "bad-value", "/ablate/0/1"),
    (T5, dict(tokens=ROW, decoder_tokens=ROW, outputs="weights", layers=[2]), "bad-value", "/layers/0"),
    ("torch-encoder-post-norm", dict(tokens=ROW), "bad-value", "/tokens"),
    ("torch-mha-self", dict(tokens=ROW), "no-stack", ""),
    ("unet-heads", dict(tokens=ROW), "no-stack", ""),
    ("nothing", dict(tokens=ROW), "no-such-model", ""),
]


@pytest.mark.parametrize("case,fields,code,pointer", REFUSALS)
def test_what_is_wrong_is_told_with_its_place(stacked, case, fields, code, pointer):
    status, *found, detail = stacks.refused(stacked, case, **fields)
    assert found == [code, pointer], detail
    assert status == (404 if code == "no-such-model" else 413 if code.startswith(("too-", "sequence-")) else 400)


def test_an_unknown_field_is_told_the_nearest_known_one(stacked):
    assert "`top_logits`" in stacks.refused(stacked, GPT2, tokens=ROW, top_logit=1)[3]


def test_a_sequence_over_the_positions_is_told_with_both_numbers(stacked):
    detail = stacks.refused(stacked, GPT2, tokens=[1] * 17)[3]
    assert "17" in detail and "16 positions" in detail


def test_binary_bodies_are_refused_as_json_ones_are(stacked):
    for fields, code, pointer in (
            (dict(tokens=np.float32([1, 2])), "wrong-type", "/tokens"),
            (dict(tokens=np.int64([1, 99])), "bad-value", "/tokens"),
            (dict(tokens=np.int64([[[1]]])), "shape-mismatch", "/tokens"),
            (dict(tokens=np.int64([1]), heads=np.int64([1])), "wrong-type", "/heads"),
            (dict(tokens=np.int64([1]), nothing=np.int64([1])), "unknown-field", "/nothing"),
            (dict(embeddings=[[1]]), "wrong-type", "/embeddings"),
            (dict(embeddings=np.float32([[1]])), "shape-mismatch", "/embeddings")):
        reply = tensors.send(stacked, tensors.body_of(fields), stacks.path(GPT2))
        assert (reply.status, reply.json["code"], reply.json["pointer"]) == (400, code, pointer), reply


def test_a_reply_over_its_limit_is_told_what_would_fit(start):
    small = start("--models", stacks.FOLDER, "--max-reply", 20000)
    status, code, _, detail = stacks.refused(small, BERT, tokens=tokens(12), outputs=["hidden", "weights"])
    assert (status, code) == (413, "reply-too-large")
    assert "`weights`" in detail and "top_k" in detail and "20000" in detail
    assert forward(small, BERT, tokens=tokens(12), outputs=["hidden", "weights"], top_k=1, layers=[0])
    assert "fewer or shorter" in stacks.refused(small, BERT, tokens=[tokens(16)] * 9)[3]


def test_a_request_that_memory_can_never_hold_is_told_so(start):
    small = start("--models", stacks.FOLDER, "--max-inflight", 100000)
    status, code, _, detail = stacks.refused(small, BERT, tokens=[tokens(16)] * 8, outputs=["hidden", "weights"])
    assert (status, code) == (413, "never-fits") and "100000" in detail and "`weights`" in detail


def test_a_batch_of_tokens_may_be_larger_than_what_else_a_body_may_hold(stacked):
    rows = [[11] * 512] * 700
    assert len(json.dumps(rows)) > 1 << 20
    reply = stacked.post(stacks.path(T5), dict(tokens=rows, outputs=[], statistics="max", layers=[0], precision=2))
    assert reply.status == 200 and reply.json["tokens"] == rows


def test_tokens_given_twice_are_a_duplicate_key(stacked):
    reply = stacked.post(stacks.path(GPT2), '{"tokens":[1],"tokens":[2]}')
    assert (reply.status, reply.json["code"]) == (400, "duplicate-key")


def test_the_limit_of_elements_holds_for_tokens(start):
    small = start("--models", stacks.FOLDER, "--max-elements", 10)
    assert stacks.refused(small, GPT2, tokens=[ROW] * 4)[:3] == (413, "too-many-elements", "/tokens")


# ---- time


def test_a_deadline_passes_while_a_request_waits(start):
    one = start("--workers", 1, "--models", stacks.FOLDER)
    with Busy(one, length=8000):
        reply = one.post(stacks.path(GPT2), dict(tokens=ROW), {"X-Timeout-Ms": "100"})
        assert (reply.status, reply.json["code"]) == (504, "deadline")
    assert forward(one, GPT2, tokens=ROW)["hidden"]


def test_a_mate_that_leaves_does_not_harm_the_others(start):
    one = start("--workers", 1, "--models", stacks.FOLDER)
    wanted = forward(one, GPT2, tokens=ROW)
    replies = []
    with Busy(one, length=8000):
        stay = threading.Thread(target=lambda: replies.extend(
            together(one, [json.dumps(dict(tokens=ROW))] * 3, stacks.path(GPT2))))
        stay.start()
        one.wait_until(lambda: one.metric("attnd_queue_depth") == 3, what="three waiting")
        leaves = one.post(stacks.path(GPT2), dict(tokens=ROW), {"X-Timeout-Ms": "50"})
        stay.join()
    assert leaves.json["code"] == "deadline" and [reply.json for reply in replies] == [wanted] * 3


def test_a_reload_under_forward_traffic_loses_no_request(start, tmp_path):
    (tmp_path / "m").symlink_to(stacks.FOLDER / GPT2)
    served = start("--models", tmp_path, "--workers", 2)
    wanted = forward(served, "m", tokens=[ROW, [4]], outputs=["hidden", "logits"])
    outcomes, stop = [], threading.Event()

    def client():
        while not stop.is_set():
            reply = served.post(stacks.path("m"), dict(tokens=[ROW, [4]], outputs=["hidden", "logits"]))
            outcomes.append(reply.status == 200 and reply.json == wanted)

    threads = [threading.Thread(target=client) for _ in range(3)]
    for thread in threads:
        thread.start()
    for round in range(6):
        if round == 3:  # a broken one beside it disturbs nothing
            (tmp_path / "broken").mkdir()
        event = "reload-failed" if round >= 3 else "reloaded"
        before = sum(f"event={event} " in line for line in served.log)
        served.signal(1)
        served.wait_until(lambda: sum(f"event={event} " in line for line in served.log) > before, 20, event)
        seen = len(outcomes)
        served.wait_until(lambda: len(outcomes) > seen + 5, what="traffic")
    stop.set()
    for thread in threads:
        thread.join()
    assert outcomes and all(outcomes)


def test_forward_requests_are_counted_and_timed_under_their_name(start):
    one = start("--models", stacks.FOLDER)
    forward(one, GPT2, tokens=tokens(5))
    stacks.refused(one, GPT2)
    text = one.get("/metrics").body.decode()
    assert 'attnd_requests_total{operation="forward",code="200"} 1' in text
    assert 'attnd_requests_total{operation="forward",code="400"} 1' in text
    entry = next(e for e in one.get("/v1/latency").json["data"] if e["operation"] == "forward")
    assert (entry["model"], entry["heads"], entry["width"]) == (GPT2, 3, 24)
    assert [length["length"] for length in entry["lengths"]] == [5]


def test_models_say_what_may_be_asked_of_them(stacked):
    t5 = stacked.get(f"/v1/models/{T5}").json
    assert t5["abilities"] == {"attention": ["self", "cross"], "forward": True, "logits": True, "text": False}
    assert t5["vocabulary"] == 50 and t5["limits"]["positions"] is None
    assert [(s["name"], s["layers"], s["causal"]) for s in t5["stacks"]] == [("encoder", 2, False), ("decoder", 3, True)]
    gpt2 = stacked.get(f"/v1/models/{GPT2}").json
    assert gpt2["stacks"] == [{"name": "decoder", "layers": 2, "heads": 3, "width": 24, "positions": 16, "causal": True}]
    assert gpt2["limits"]["positions"] == 16
    unet = stacked.get("/v1/models/unet-heads").json
    assert unet["stacks"] == [] and unet["abilities"] == {"attention": ["cross"], "forward": False, "logits": False, "text": False}
