"""A scene of eight by eight image features, prompt words, and a cross-attention layer that tells them apart.

python unet_scene.py DIRECTORY      makes the layer: a model directory in the UNet's layout

The features stand for what a UNet computes of an image: every place has those of its region (sun, sky, house, grass)
with noise. The layer's query and key projections are trained here, in numpy, so that a place attends to the word that
names its region; the scene that `regions.py` shows has noise of its own, which was not trained on.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from attnd import safetensors

FloatArray = NDArray[np.float32]

WORDS = ("sun", "sky", "house", "grass")
PICTURE = """\
sky sky sky sky sky sun sun sky
sky sky sky sky sky sun sun sky
sky sky sky sky sky sky sky sky
sky sky house house sky sky sky sky
sky house house house house sky sky sky
sky house house house house sky sky sky
grass house house house house grass grass grass
grass grass grass grass grass grass grass grass
"""
SEED, CHANNELS, CONTEXT, HEADS, NOISE = 1874, 16, 12, 2, 0.8
STEPS, RATE = 30, 0.015
LAYER = "mid_block.attentions.0.transformer_blocks.0.attn2"


def regions() -> NDArray[np.int64]:
    """The number of the word at each place, [64]."""
    return np.array([WORDS.index(word) for word in PICTURE.split()])


def scene(seed: int) -> FloatArray:
    """Image features [64, CHANNELS]: those of the regions, and noise drawn from the seed."""
    prototypes = np.random.default_rng(SEED).normal(size=(len(WORDS), CHANNELS))
    noise = np.random.default_rng(seed).normal(size=(64, CHANNELS)) * NOISE
    return (prototypes[regions()] + noise).astype(np.float32)


def words() -> FloatArray:
    """An embedding for each word, [words, CONTEXT]."""
    return np.random.default_rng(SEED + 1).normal(size=(len(WORDS), CONTEXT)).astype(np.float32)


def split(projected: NDArray[np.float64]) -> NDArray[np.float64]:
    """[rows, CHANNELS] to [HEADS, rows, CHANNELS / HEADS]."""
    return projected.reshape(len(projected), HEADS, -1).swapaxes(0, 1)


def joined(heads: NDArray[np.float64]) -> NDArray[np.float64]:
    """The other way."""
    return heads.swapaxes(0, 1).reshape(heads.shape[1], -1)


def train() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Query [CHANNELS, CHANNELS] and key [CONTEXT, CHANNELS] projections, by gradient descent on cross-entropy."""
    generator = np.random.default_rng(SEED + 2)
    query = generator.normal(size=(CHANNELS, CHANNELS)) / CHANNELS**0.5
    key = generator.normal(size=(CONTEXT, CHANNELS)) / CONTEXT**0.5
    wanted, embedded = np.eye(len(WORDS))[regions()], words().astype(np.float64)
    scale = (CHANNELS / HEADS) ** -0.5
    for step in range(STEPS):
        features = scene(SEED + 10 + step).astype(np.float64)
        queries, keys = split(features @ query), split(embedded @ key)
        scores = scale * queries @ keys.swapaxes(1, 2)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        slope = scale * (weights - wanted) / len(features)
        query -= RATE * CHANNELS * features.T @ joined(slope @ keys)
        key -= RATE * CHANNELS * embedded.T @ joined(slope.swapaxes(1, 2) @ queries)
    return query, key


def make(directory: Path) -> None:
    """config.json and model.safetensors; values and outputs are drawn, since only the weights are looked at."""
    query, key = train()
    generator = np.random.default_rng(SEED + 3)
    tensors = {
        f"{LAYER}.to_q.weight": query.T,
        f"{LAYER}.to_k.weight": key.T,
        f"{LAYER}.to_v.weight": generator.normal(size=(CHANNELS, CONTEXT)),
        f"{LAYER}.to_out.0.weight": generator.normal(size=(CHANNELS, CHANNELS)),
        f"{LAYER}.to_out.0.bias": np.zeros(CHANNELS),
    }
    config = {
        "model_type": "unet-cross-attention",
        "attention_head_dim": HEADS,
        "block_out_channels": [CHANNELS],
        "cross_attention_dim": CONTEXT,
    }
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    stored = {name: np.ascontiguousarray(tensor, dtype=np.float32) for name, tensor in tensors.items()}
    (directory / "model.safetensors").write_bytes(b"".join(safetensors.encode(stored)))


if __name__ == "__main__":
    make(Path(sys.argv[1]))
