"""A picture of every head of a model: who attends to whom in a sentence, drawn with matplotlib.

python head_map.py [--url http://127.0.0.1:8080] [--model alice] [--text "..."] [--out heads.png]

One panel a head, layers from top to bottom; rows are the words that look, columns the words looked at.
"""

from __future__ import annotations

import argparse

import matplotlib
import numpy as np

import attnd
from attnd.results import FloatArray

matplotlib.use("Agg")
from matplotlib import pyplot


def draw(weights: list[FloatArray], labels: list[str], title: str, path: str) -> None:
    """Writes the picture of weights, one [heads, queries, keys] a layer, to a file."""
    layers, heads = len(weights), len(weights[0])
    figure, axes = pyplot.subplots(layers, heads, figsize=(2.4 * heads, 2.4 * layers), squeeze=False)
    for layer, row in enumerate(axes):
        for head, axis in enumerate(row):
            axis.imshow(weights[layer][head], cmap="magma", vmin=0, vmax=1)
            axis.set_title(f"layer {layer}, head {head}", fontsize=8)
            axis.set_xticks(np.arange(len(labels)), labels if layer == layers - 1 else [], rotation=90, fontsize=6)
            axis.set_yticks(np.arange(len(labels)), labels if head == 0 else [], fontsize=6)
    figure.suptitle(title, fontsize=10)
    figure.tight_layout()
    figure.savefig(path, dpi=100)
    pyplot.close(figure)


def main() -> None:
    """Asks the daemon and draws."""
    parser = argparse.ArgumentParser(description="A picture of every head of a model.")
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("--model", default="alice")
    parser.add_argument("--text", default="Alice was beginning to get very tired of sitting by her sister")
    parser.add_argument("--out", default="heads.png")
    arguments = parser.parse_args()
    with attnd.Client(arguments.url) as client:
        result = client.forward(arguments.model, text=arguments.text, outputs=["weights"])
    if not isinstance(result.token_offsets, np.ndarray):
        raise SystemExit(f"{arguments.model} reads no text")
    labels = [arguments.text.encode()[start:end].decode("utf-8", "replace") for start, end in result.token_offsets]
    weights = [np.asarray(layer) for layer in result.weights.values()]
    draw(weights, labels, f"{arguments.model}: {arguments.text}", arguments.out)
    print(f"{arguments.out}: {len(weights)} layers of {len(weights[0])} heads over {len(labels)} tokens")


if __name__ == "__main__":
    main()
