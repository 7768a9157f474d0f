"""POST /v1/models/{model}/forward with text: words in, and words named, through the whole path."""
import json
import shutil

import numpy as np
import pytest
import stacks
import tensors
from daemon import ROOT, Daemon
from stacks import forward, refused

LETTERS = "abcdefghijklmnopqrstuvwxyz .,'é😀"
DECODER, PAIR, TOKENS_ONLY = "gpt2-head", "t5-relu", "marian-swish"


def add_letters(folder):
    """A vocabulary of characters, 50 tokens at most, as the models have."""
    words = ["<pad>", "<unk>", *LETTERS]
    (folder / "vocab.json").write_text(json.dumps({word: number for number, word in enumerate(words)}))
    return words


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for name in (DECODER, PAIR, TOKENS_ONLY):
        shutil.copytree(stacks.FOLDER / name, folder / name)
        add_letters(folder / name)
    (folder / TOKENS_ONLY / "source.spm").write_bytes(b"not read")
    return folder


@pytest.fixture(scope="module")
def reading(models):
    with Daemon("--models", models, "--workers", 2) as running:
        yield running


def ids(text):
    return [2 + LETTERS.index(letter) if letter in LETTERS else 1 for letter in text]


def ranges(text):
    ends = np.cumsum([0, *(len(letter.encode()) for letter in text)]).tolist()
    return [list(pair) for pair in zip(ends, ends[1:])]


def test_a_text_answers_as_its_tokens_do_and_is_named(reading):
    text = "it's é 😀!"
    reply = forward(reading, DECODER, text=text, outputs=["hidden", "weights"])
    same = forward(reading, DECODER, tokens=ids(text), outputs=["hidden", "weights"])
    assert reply.pop("token_offsets") == ranges(text)
    assert reply == same
    assert reply["token_strings"] == [*text[:-1], "<unk>"]


def test_texts_are_a_ragged_batch(reading):
    texts = ["tea", "a", "", "cup."]
    reply = forward(reading, DECODER, text=texts, outputs="hidden")
    assert reply["tokens"] == [ids(text) for text in texts]
    assert reply["token_offsets"] == [ranges(text) for text in texts]
    for text, hidden in zip(texts, reply["hidden"], strict=True):
        assert hidden == forward(reading, DECODER, text=text)["hidden"]


def test_encoder_and_decoder_read_texts(reading):
    reply = forward(reading, PAIR, text="tea", decoder_text="cup", outputs="weights", layers=[0])
    assert reply["token_strings"] == list("tea") and reply["decoder_token_strings"] == list("cup")
    assert reply["decoder_token_offsets"] == ranges("cup")
    assert np.shape(reply["weights"]["cross"][0])[1:] == (3, 3)


def test_text_travels_in_safetensors_both_ways(reading):
    reply = tensors.ask(reading, stacks.path(DECODER), text=["tea", "été"], outputs=[])
    assert reply["token_offsets"].tolist() == [ranges("tea"), ranges("été")]
    assert reply["token_strings"] == [list("tea"), list("été")]


def test_a_sentencepiece_model_takes_tokens_and_says_so(reading):
    status, code, pointer, detail = refused(reading, TOKENS_ONLY, text="tea")
    assert (status, code, pointer) == (400, "no-tokenizer", "/text") and "SentencePiece" in detail
    assert forward(reading, TOKENS_ONLY, tokens=[2, 3], outputs=[])["token_strings"] == ["a", "b"]


def test_a_text_longer_than_the_positions_is_too_long(reading):
    status, code, pointer, detail = refused(reading, DECODER, text=["a", "a" * 17])
    assert (status, code, pointer) == (413, "sequence-too-long", "/text/1") and "17" in detail and "16" in detail


def test_what_is_not_utf8_is_refused(reading):
    body = b'{"text": "a\xff"}'
    reply = reading.request("POST", stacks.path(DECODER), body, {"Content-Type": "application/json"})
    assert reply.status == 400 and reply.json["code"] == "syntax"


def test_a_model_tells_whether_it_reads_text(reading):
    able = {entry["id"]: entry["abilities"]["text"] for entry in reading.get("/v1/models").json["data"]}
    assert able == {DECODER: True, PAIR: True, TOKENS_ONLY: False}


def test_a_tokenizer_with_more_tokens_than_the_model_is_refused(models, tmp_path):
    shutil.copytree(models / DECODER, tmp_path / "good")
    shutil.copytree(models / DECODER, tmp_path / "wide")
    words = {f"<{number}>": number for number in range(51)}
    (tmp_path / "wide" / "vocab.json").write_text(json.dumps(words))
    with Daemon("--models", tmp_path) as daemon:
        daemon.wait_log("wide.*tokenizer has 51 tokens.*has 50")
        assert [entry["id"] for entry in daemon.get("/v1/models").json["data"]] == ["good"]


def test_sums_come_out_right_by_text(start):
    folder = ROOT.parent / "shared/data/models"
    if not folder.is_dir():
        pytest.skip("../shared/data/models is not there")
    served = start("--models", folder)
    for prompt, answer in (("7+5=", "12"), ("9+9=", "18"), ("8+7=", "15")):
        said = ""
        while len(said) < 2:
            reply = forward(served, "mathformer-addformer", text=prompt + said, outputs=[], top_logits=1)
            assert reply["token_strings"] == list(prompt + said)
            best = reply["top_logits"]["indices"]
            said += forward(served, "mathformer-addformer", tokens=best, outputs=[])["token_strings"][0]
        assert said == answer, prompt
