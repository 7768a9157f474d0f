"""Each curl example, run as it stands against the daemon, gives the right answer."""
import json
import os
import subprocess
from math import exp, sqrt
from pathlib import Path

import pytest
from daemon import Daemon

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "clients" / "curl"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for model in (*(ROOT / "config/models").glob("*/"), ROOT / "tests/models/gpt2-head"):
        (folder / model.name).symlink_to(model)
    with Daemon("--models", folder) as running:
        yield running


@pytest.fixture
def example(daemon):
    def run(name, status=0, read=json.loads, **environment):
        url = f"http://127.0.0.1:{daemon.port}"
        done = subprocess.run([EXAMPLES / name], env={**os.environ, "ATTND_URL": url, **environment}, capture_output=True,
                              text=True, timeout=60)
        assert done.returncode == status, done.stdout + done.stderr
        return read(done.stdout)

    return run


def flat(value):
    return [x for part in value for x in flat(part)] if isinstance(value, list) else [value]


def assert_near(got, wanted, tolerance=2e-6):
    assert len(flat(got)) == len(flat(wanted))
    assert flat(got) == pytest.approx(flat(wanted), abs=tolerance)


def test_attention(example):
    reply = example("attention.sh")
    high = exp(1 / sqrt(2)) / (exp(1 / sqrt(2)) + 1)
    assert_near(reply["weights"], [[[high, 1 - high], [1 - high, high]]])
    assert_near(reply["context"], [[3 - 2 * high, 4 - 2 * high], [1 + 2 * high, 2 + 2 * high]])


def test_projections(example):
    reply = example("projections.sh")
    assert_near(reply["weights"], [[[.176179, .268531, .207091, .348199], [.116131, .269791, .160458, .453621],
                                    [.087223, .262751, .133715, .516311], [.151182, .270862, .188270, .389686]]])
    assert_near(reply["context"], [[1.374392, 1.739156, 2.103920], [1.331198, 1.707972, 2.084746],
                                   [1.300664, 1.683219, 2.065775], [1.358205, 1.727969, 2.097732]])


def test_causal(example):
    assert_near(example("causal.sh")["context"], [[15], [30]], 1e-5)


def test_mask(example):
    reply = example("mask.sh")
    assert reply["weights"][0][0] == [0, 0] and reply["context"][0] == [0, 0]
    assert_near(reply["weights"][0][1], [.330238, .669762])
    assert_near(reply["context"][1], [2.339523, 3.339523])


def test_padding(example):
    reply = example("padding.sh")
    assert_near(reply["context"], [[[15]], [[30]]], 1e-5)
    assert_near(reply["weights"], [[[[.5, .5, 0]]], [[[1 / 3, 1 / 3, 1 / 3]]]])


def test_cross(example):
    reply = example("cross.sh")
    assert_near(reply["context"], [[30, 1, 2, 3]], 1e-5)
    assert_near(reply["weights"], [[1 / 3, 1 / 3, 1 / 3]])
    assert reply["shape"] == {"batch": 1, "heads": 2, "kv_heads": 2, "queries": 1, "keys": 3, "head_width": 1,
                              "value_width": 2}


def test_shape(example):
    assert example("shape.sh")["context"] == [[0, 0, 0]]


def test_model(example):
    reply = example("model.sh")
    assert len(reply["weights"]) == reply["shape"]["heads"] == 4
    assert all(sum(row) == pytest.approx(1, abs=2e-6) for head in reply["weights"] for row in head)
    assert [len(row) for row in reply["context"]] == [16, 16]


def test_models(example):
    reply = example("models.sh")
    assert reply["object"] == "list"
    assert "tiny-mha" in [entry["id"] for entry in reply["data"]]


def test_forward(example):
    reply = example("forward.sh", MODEL="gpt2-head", TOKENS="[3,1,4,1]")
    assert reply["tokens"] == [3, 1, 4, 1] and reply["layers"] == [1]
    assert len(reply["top_logits"]["indices"]) == 5
    assert reply["top_logits"]["values"] == sorted(reply["top_logits"]["values"], reverse=True)
    (top,) = reply["weights"]
    assert [[len(row) for row in head] for head in top["values"]] == [[3]] * 3
    assert all(0 < sum(row) <= 1 + 2e-6 for head in top["values"] for row in head)


def test_words(example):
    heads = [line.split(": ")[1].split(", ") for line in example("words.sh", read=str.splitlines)]
    assert len(heads) == 4 and all(len(words) == 3 for words in heads)
    for words in heads:
        weights = [float(word.split()[1]) for word in words]
        assert weights == sorted(weights, reverse=True) and 0 < sum(weights) <= 1.002
        assert all(word.split()[0] in "Alice looked at the little door".split() for word in words)


def test_latency(example):
    entries = [entry for entry in example("latency.sh")["data"] if entry["operation"] == "attention"]
    lengths = {point["length"] for entry in entries for point in entry["lengths"]}
    assert {16, 64, 128, 256, 512} <= lengths


def test_error(example):
    reply = example("error.sh", status=22)
    assert (reply["status"], reply["code"], reply["pointer"]) == (400, "beyond-float32", "/query/1/1")


def test_every_example_is_run_here():
    source = Path(__file__).read_text()
    assert all(f'example("{path.name}"' in source for path in EXAMPLES.glob("*.sh"))
