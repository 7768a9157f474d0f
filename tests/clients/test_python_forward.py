"""Client.forward against the real daemon: every result by its name, in both encodings, and what is refused."""
import json
import shutil

import attnd
import numpy as np
import pytest
import stacks
from attnd import forward_bodies
from daemon import SLOW, Daemon
from fake_daemon import FakeDaemon, reply

GPT2, BERT, MARIAN = "gpt2-head", "bert-plain", "marian-swish"
ROWS = [[3, 1, 4, 1], [5, 9], [2, 6, 5, 3]]


@pytest.fixture(scope="module")
def url():
    with Daemon("--models", stacks.FOLDER, "--workers", "2") as running:
        yield f"http://127.0.0.1:{running.port}"


@pytest.fixture(params=["safetensors", "json"])
def client(request, url):
    with attnd.Client(url, encoding=request.param, timeout=60 * SLOW) as made:
        yield made


@pytest.mark.parametrize("case", ["gpt2-head", "t5-relu", "torch-transformer-post-norm"])
def test_results_are_what_the_framework_computed(client, case):
    wanted = stacks.vectors(case)
    outputs = ["hidden", "hidden_all", "weights"] + ["logits", "logits_all"] * ("logits" in wanted)
    result = client.forward(case, **stacks.inputs(case), outputs=outputs)
    for name, array in wanted.items():
        part, *_, number = name.split(".") if name.count(".") == 2 else (name, 0)
        if name == "logits":
            found = result.logits_all
            np.testing.assert_array_equal(result.logits, found[:, -1])
        elif number:
            group = result.hidden_all if ".hidden." in name else result.weights
            found = (group[stacks.KINDS[part]] if stacks.KINDS[part] in group else group)[int(number)]
        else:
            continue
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, array, rtol=0, atol=1e-4 * max(1, np.abs(array).max()), err_msg=name)


def test_every_result_has_its_name(client):
    result = client.forward(GPT2, ROWS[0], outputs=["hidden", "hidden_all", "weights", "logits", "logits_all", "pooled"],
                            layers=[-1], statistics=["entropy", "max"], rollout=True, top_logits=3)
    assert result.tokens.tolist() == ROWS[0] and result.tokens.dtype == np.int64 and result.decoder_tokens is None
    assert result.hidden.shape == (4, 24) and sorted(result.hidden_all) == [0, 1, 2]
    np.testing.assert_array_equal(result.hidden_all[2], result.hidden)
    assert {number: layer.shape for number, layer in result.weights.items()} == {1: (3, 4, 4)}
    assert set(result.statistics) == {"entropy", "max"} and result.statistics["max"][1].shape == (3, 4)
    assert result.rollout.shape == (4, 4) and result.pooled.shape == (24,) and result.logits.shape == (50,)
    assert result.logits_all.shape == (4, 50)
    np.testing.assert_array_equal(result.top_logits.values, np.sort(result.logits)[::-1][:3])
    assert result.logits[result.top_logits.indices].tolist() == result.top_logits.values.tolist()
    assert {"parse", "compute"} <= set(result.timing) and result.batch_size == 1 and result.request_id


def test_what_was_not_asked_for_is_not_there(client):
    result = client.forward(BERT, ROWS[0])
    assert result.hidden.shape == (4, 24) and result.pooled is None and result.logits is None and result.rollout is None
    assert not result.weights and not result.statistics and not result.hidden_all
    assert client.forward(BERT, ROWS[0], outputs=[]).hidden is None


def test_rows_of_several_lengths_come_back_as_lists(client):
    result = client.forward(GPT2, ROWS, outputs=["hidden", "hidden_all", "weights", "pooled"], top_k=2, layers=[0])
    assert [row.tolist() for row in result.tokens] == ROWS
    assert [h.shape for h in result.hidden] == [(4, 24), (2, 24), (4, 24)] == [h.shape for h in result.hidden_all[1]]
    assert [w.indices.shape for w in result.weights[0]] == [(3, 4, 2), (3, 2, 2), (3, 4, 2)]
    assert result.pooled.shape == (3, 24)
    alone = client.forward(GPT2, ROWS[1], outputs=["hidden", "weights"], top_k=2, layers=[0])
    np.testing.assert_array_equal(alone.hidden, result.hidden[1])
    np.testing.assert_array_equal(alone.weights[0].values, result.weights[0][1].values)


def test_kinds_have_names(client):
    result = client.forward(MARIAN, ROWS[0], decoder_tokens=[7, 8], outputs=["hidden", "weights"], layers=[-1],
                            ablate=[("cross", 2, 0)], statistics=["entropy"], rollout=True)
    assert {kind: list(layers) for kind, layers in result.weights.items()} == {"encoder": [1], "decoder": [2], "cross": [2]}
    assert result.weights["cross"][2].shape == (3, 2, 4) and not result.weights["cross"][2][0].any()
    assert result.hidden["decoder"].shape == (2, 18) and result.rollout["encoder"].shape == (4, 4)
    assert result.statistics["entropy"]["decoder"][2].shape == (3, 2)


def test_an_array_of_any_integers_and_embeddings_are_taken(client):
    wanted = client.forward(BERT, ROWS[0]).hidden
    np.testing.assert_array_equal(client.forward(BERT, np.array([ROWS[0]], np.uint8)).hidden[0], wanted)
    embedded = client.forward("llama-grouped", ROWS[0], outputs=["hidden", "hidden_all"])
    again = client.forward("llama-grouped", embeddings=embedded.hidden_all[0])
    np.testing.assert_array_equal(again.hidden, embedded.hidden)
    assert again.tokens is None


def test_an_empty_sequence_is_legal(client):
    result = client.forward(BERT, [], outputs=["hidden", "pooled"])
    assert result.hidden.size == 0 and not result.pooled.any()
    assert [h.shape[0] for h in client.forward(BERT, [[], [1]]).hidden] == [0, 1]


@pytest.fixture(scope="module")
def reading_url(tmp_path_factory):
    """A daemon whose model has a tokenizer: one token a letter."""
    folder = tmp_path_factory.mktemp("models") / GPT2
    shutil.copytree(stacks.FOLDER / GPT2, folder)
    (folder / "vocab.json").write_text(json.dumps({word: n for n, word in enumerate(["<pad>", "<unk>", *"aeté"])}))
    with Daemon("--models", folder.parent) as running:
        yield f"http://127.0.0.1:{running.port}"


@pytest.mark.parametrize("encoding", ["safetensors", "json"])
def test_the_tokens_of_a_text_are_named(reading_url, encoding):
    with attnd.Client(reading_url, encoding=encoding) as reading:
        one = reading.forward(GPT2, text="été", outputs=["pooled"])
        assert one.tokens.tolist() == [5, 4, 5] and one.token_strings == list("été")
        assert one.token_offsets.tolist() == [[0, 2], [2, 3], [3, 5]] and one.token_offsets.dtype == np.int64
        two = reading.forward(GPT2, text=["tea", "t"])
        assert two.token_strings == [list("tea"), ["t"]]
        assert [offsets.tolist() for offsets in two.token_offsets] == [[[0, 1], [1, 2], [2, 3]], [[0, 1]]]
        assert one.decoder_token_strings is None and one.decoder_token_offsets is None


def test_both_encodings_give_the_same_bits(url):
    asked = dict(outputs=["hidden", "weights", "logits"], statistics=["logsumexp"], top_logits=2)
    results = []
    for encoding in ("safetensors", "json"):
        with attnd.Client(url, encoding=encoding) as client:
            results.append(client.forward(GPT2, ROWS, **asked))
    a, b = results
    for n in range(3):
        assert a.hidden[n].tobytes() == b.hidden[n].tobytes()
        assert a.weights[1][n].tobytes() == b.weights[1][n].tobytes()
        assert a.statistics["logsumexp"][0][n].tobytes() == b.statistics["logsumexp"][0][n].tobytes()
    assert a.logits.tobytes() == b.logits.tobytes() and a.top_logits.indices.tobytes() == b.top_logits.indices.tobytes()


def test_what_the_daemon_refuses_points_at_the_field(client):
    for asked, code, pointer in ((dict(tokens=[99]), "bad-value", "/tokens"), (dict(), "missing-field", "/tokens"),
                                 (dict(tokens=[1], top_k=1), "bad-value", "/top_k"),
                                 (dict(text="a"), "no-tokenizer", "/text"),
                                 (dict(tokens=[1], decoder_tokens=[1]), "bad-value", "/decoder_tokens")):
        with pytest.raises(attnd.RequestError) as refused:
            client.forward(GPT2, **asked)
        assert refused.value.code == code and refused.value.pointer.startswith(pointer)
    with pytest.raises(attnd.RequestError) as refused:
        client.forward("torch-mha-self", [1])
    assert refused.value.code == "no-stack"


@pytest.mark.parametrize("tokens,error", [([1.5], TypeError), ("text", TypeError), ([[1], [2.5, 3]], TypeError),
                                          ([[1], 2], TypeError), ([[[1]]], ValueError), ([[1], "a"], TypeError)])
def test_tokens_that_are_no_rows_of_integers_are_refused_before_they_are_sent(client, tokens, error):
    with pytest.raises(error, match="tokens"):
        client.forward(GPT2, tokens)


@pytest.mark.parametrize("body", [{"weights": 3}, {"hidden": {"encoder": "x"}}, {"top_logits": {"indices": [1]}},
                                  {"statistics": [1]}, {"layers": [0], "weights": []}])
def test_a_reply_that_is_none_is_a_protocol_error(body):
    with FakeDaemon(reply(body=body)) as fake, attnd.Client(fake.url, encoding="json") as client, \
            pytest.raises(attnd.ProtocolError):
        client.forward("m", [1])


def test_rows_stay_as_they_are():
    assert forward_bodies.as_tokens("tokens", ([1, 2], [3])) == [[1, 2], [3]]
    assert forward_bodies.as_tokens("tokens", [np.array([1]), []]) == [[1], []]
    assert forward_bodies.as_tokens("tokens", [[1, 2], [3, 4]]).dtype == np.int64
