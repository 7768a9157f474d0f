"""Which region of an image answers which word: cross-attention of a UNet-layout layer.

python unet_scene.py models/unet-scene          makes the layer
attnd --models models                           serves it
python regions.py [--url http://127.0.0.1:8080] [--model unet-scene]

Queries are the image's features, keys the prompt's words. For each word: how much of each place's attention it takes,
mean over the heads; then the word that each place looks at most.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
import unet_scene

import attnd
from attnd.results import FloatArray

SHADES = " ░▒▓█"
SIDE = 8


def shaded(weights: FloatArray) -> Iterator[str]:
    """Lines of an image of weights [SIDE * SIDE] between 0 and 1."""
    for row in weights.reshape(SIDE, SIDE):
        yield "".join(SHADES[min(len(SHADES) - 1, int(weight * len(SHADES)))] * 2 for weight in row)


def main() -> None:
    """Asks the daemon and prints."""
    parser = argparse.ArgumentParser(description="Which region of an image answers which word.")
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("--model", default="unet-scene")
    arguments = parser.parse_args()
    with attnd.Client(arguments.url) as client:
        result = client.model_attention(
            arguments.model, unet_scene.scene(seed=1), unet_scene.words(), kind="cross", weights="mean"
        )
    assert result.weights is not None
    images = [list(shaded(result.weights[:, word])) for word in range(len(unet_scene.WORDS))]
    print("  ".join(word.ljust(2 * SIDE) for word in unet_scene.WORDS))
    for lines in zip(*images, strict=True):
        print("  ".join(lines))
    looked_at = result.weights.argmax(axis=1)
    print("\nThe word that each place looks at most:")
    for row in looked_at.reshape(SIDE, SIDE):
        print(" ".join(unet_scene.WORDS[word].ljust(5) for word in row).rstrip())
    right = int(np.sum(looked_at == unet_scene.regions()))
    print(f"{right} of {len(looked_at)} places look at the word for their region.")


if __name__ == "__main__":
    main()
