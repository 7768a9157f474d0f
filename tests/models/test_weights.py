"""Forward passes of trained models against transformers: hidden states and weights of every layer, and logits.

The models are fetched into the build folder; those of MathFormer lie in ../shared.
"""
import json
import os
import subprocess
from pathlib import Path

import pytest
from frameworks import needed

pytestmark, installed = needed("torch", "transformers", "tokenizers", "safetensors")
if installed:
    import make_checkpoints
    import tokenizers
    import torch
    import transformers

BUILD = Path(os.environ.get("ATTND_BINARY", "build/attnd")).resolve().parent
PROGRAM = BUILD / "tests/unit/lib/test_forward_vectors"
MATHFORMER = Path("../shared/data/models").resolve()
TEXT = ("The keys that a query attends to most are seldom the words beside it, and a head that copies looks back further "
        "than one that counts.")


def compare(folder, vectors, where):
    """Runs the model on every kernel set and compares; the table it prints is shown with pytest -s."""
    case = where / "cases" / folder.name
    case.mkdir(parents=True)
    for path in folder.iterdir():
        (case / path.name).symlink_to(path)
    make_checkpoints.write_vectors(case, vectors)
    done = subprocess.run([PROGRAM], env={**os.environ, "FORWARD_CASES": str(case.parent), "FORWARD_TABLE": "1"},
                          capture_output=True, text=True)
    print(done.stdout)
    assert done.returncode == 0, done.stdout


def model_of(folder, kind):
    return kind.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager").eval()


def test_minilm_is_what_transformers_computes(fetched, tmp_path):
    folder = fetched["all-MiniLM-L6-v2"]
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    ids = tokenizer.encode(TEXT).ids[:20], tokenizer.encode(TEXT[::-1]).ids[:20]
    compare(folder, make_checkpoints.decoder_vectors(model_of(folder, transformers.AutoModel), torch.tensor(ids)), tmp_path)


def test_smollm2_is_what_transformers_computes(fetched, tmp_path):
    folder = fetched["SmolLM2-135M-Instruct"]
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    model = model_of(folder, transformers.AutoModelForCausalLM)
    capital = torch.tensor([tokenizer.encode("The capital of France is").ids])
    assert tokenizer.decode([int(model(capital).logits[0, -1].argmax())]) == " Paris", "rows of queries and keys are permuted"
    compare(folder, make_checkpoints.decoder_vectors(model, torch.tensor([tokenizer.encode(TEXT).ids[:20]])), tmp_path)


@pytest.mark.parametrize("name", ["mathformer-addformer", "mathformer-mulformer"])
def test_mathformer_is_what_transformers_computes(name, tmp_path):
    folder = MATHFORMER / name
    if not folder.exists():
        pytest.skip(f"{folder} is not there")
    vocabulary = json.loads((folder / "vocab.json").read_text())
    ids = [[vocabulary[character] for character in text] for text in ("12+34=46", "98*76=74", "55+55=11")]
    model = model_of(folder, transformers.AutoModelForCausalLM)
    compare(folder, make_checkpoints.decoder_vectors(model, torch.tensor(ids)), tmp_path)
