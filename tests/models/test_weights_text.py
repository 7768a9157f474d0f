"""Trained models with their own tokenizers: ids and ranges over a multilingual sample, and similarities with text in."""
import sys

import numpy as np
import pytest
from conftest import BUILD
from frameworks import needed

sys.path += ["tests/text", "tests/integration"]
pytestmark, installed = needed("torch", "transformers", "tokenizers")
if installed:
    import compare
    import torch
    import transformers
    from daemon import Daemon
    from make_sample import sample

ENCODER = BUILD / "tests/text/encode_lines"
SENTENCES = ["A cat sits on the mat.", "A kitten rests on a rug.", "The stock market fell sharply today.",
             "Börsenkurse sind heute gefallen.", "Où est la bibliothèque\u202f?", "今天天气很好。", "It's 7:45 — time to go!", ""]


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "SmolLM2-135M-Instruct"])
def test_tokens_of_the_sample_are_those_of_the_reference(fetched, name):
    lines = sample()
    assert compare.compare(str(ENCODER), str(fetched[name]), lines) == [len(lines)] * 3


def similarities(folder):
    """Cosines of all sentences as transformers computes them: the mean of the last hidden states."""
    tokenizer = compare.load(folder)
    model = transformers.AutoModel.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager").eval()
    with torch.no_grad():
        rows = torch.stack([model(torch.tensor([tokenizer.encode(text).ids])).last_hidden_state[0].mean(0) for text in SENTENCES])
    rows = rows / rows.norm(dim=1, keepdim=True)
    return (rows @ rows.T).numpy()


def test_similarities_of_minilm_are_those_of_transformers_with_text_in(fetched):
    folder = fetched["all-MiniLM-L6-v2"]
    with Daemon("--models", folder.parent) as daemon:
        fields = dict(text=SENTENCES, outputs="pooled", pooling="mean", normalize=True)
        reply = daemon.post(f"/v1/models/{folder.name}/forward", fields)
        assert reply.status == 200, reply
        rows = np.array(reply.json["pooled"])
        found = rows @ rows.T
        np.testing.assert_allclose(found, similarities(folder), atol=1e-4)
        assert found[0, 1] > found[0, 2] and reply.json["token_strings"][-1] == ["[CLS]", "[SEP]"]
        first, *_ = reply.json["token_offsets"]
        assert [SENTENCES[0].encode()[start:end].decode() for start, end in first[1:4]] == ["A", "cat", "sits"]
