"""The textbook's four embeddings through attnd: what each becomes, and a heat map of who attends to whom.

python heat_map.py [--url http://127.0.0.1:8080] [--encoding json]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

import attnd
from attnd.results import FloatArray

EMBEDDINGS = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 1], [1, 1, 0]], dtype=np.float32)
PROJECTIONS: attnd.Projections = {
    "query": np.arange(1, 10).reshape(3, 3) / 10,
    "key": np.arange(9, 0, -1).reshape(3, 3) / 10,
    "value": np.arange(1, 10).reshape(3, 3) / 5,
}
SHADES = " ░▒▓█"


def heat_map(weights: FloatArray) -> Iterator[str]:
    """Lines of a heat map of weights [queries, keys]; the largest is the darkest."""
    yield "          " + "".join(f"key {key}".center(9) for key in range(weights.shape[1]))
    levels = np.minimum(len(SHADES) - 1, weights / weights.max() * len(SHADES)).astype(int)
    for query, row in enumerate(weights):
        cells = (f" {SHADES[level] * 2} {weight:.2f} " for level, weight in zip(levels[query], row, strict=True))
        yield f"  query {query} " + "".join(cells)


def main() -> None:
    """Asks the daemon and prints."""
    parser = argparse.ArgumentParser(description="The textbook's four embeddings through attnd.")
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("--encoding", choices=["safetensors", "json"], default="safetensors")
    arguments = parser.parse_args()
    with attnd.Client(arguments.url, encoding=arguments.encoding) as client:
        result = client.attention(EMBEDDINGS, projections=PROJECTIONS)
    assert result.weights is not None
    print("Context vectors")
    for query, row in enumerate(result.context):
        print(f"  query {query} " + "".join(f" {number:.5f} " for number in row))
    print("Attention weights: how much each query takes from each key")
    print("\n".join(heat_map(result.weights[0])))
    print(f"Computed in {result.timing.get('compute', float('nan')):.3f} ms, request {result.request_id}")


if __name__ == "__main__":
    main()
