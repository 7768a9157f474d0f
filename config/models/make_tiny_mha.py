#!/usr/bin/env python3
"""Makes the default model: one multi-head attention layer of width 16 with 4 heads, in torch's layout.

    make_tiny_mha.py [DIRECTORY]      (default: tiny-mha beside this script)

Writes config.json and model.safetensors. The weights are Xavier-uniform and the biases small, drawn from a
fixed seed by a generator of our own (splitmix64), so that the bytes are the same wherever it runs.
"""
import json
import math
import struct
import sys
from pathlib import Path

SEED = 0x61_74_74_6E_64  # "attnd"
WIDTH, HEADS = 16, 4
BIAS_LIMIT = 0.05
MASK = (1 << 64) - 1


class SplitMix64:
    """Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014."""

    def __init__(self, seed):
        self.state = seed

    def bits(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def uniform(self, limit):
        """A multiple of limit / 2^23 in [-limit, limit)."""
        return ((self.bits() >> 40) / (1 << 23) - 1.0) * limit


def xavier(rows, columns):
    return math.sqrt(6.0 / (rows + columns))


def tensors():
    """(name, shape, numbers), by name; query, key and value rows each count as a [WIDTH, WIDTH] matrix."""
    draw = SplitMix64(SEED).uniform
    weight = xavier(WIDTH, WIDTH)
    plan = [
        ("in_proj_bias", [3 * WIDTH], BIAS_LIMIT),
        ("in_proj_weight", [3 * WIDTH, WIDTH], weight),
        ("out_proj.bias", [WIDTH], BIAS_LIMIT),
        ("out_proj.weight", [WIDTH, WIDTH], weight),
    ]
    return [(name, shape, [draw(limit) for _ in range(math.prod(shape))]) for name, shape, limit in plan]


def safetensors(items):
    """The file's bytes: header length, header padded to 8 bytes, data."""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, shape, numbers in items:
        start = len(data)
        data += struct.pack(f"<{len(numbers)}f", *numbers)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [start, len(data)]}
    text = json.dumps(header, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def main():
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "tiny-mha"
    directory.mkdir(parents=True, exist_ok=True)
    config = {"model_type": "torch-mha", "num_heads": HEADS}
    (directory / "config.json").write_bytes(json.dumps(config, indent=2).encode("ascii") + b"\n")
    (directory / "model.safetensors").write_bytes(safetensors(tensors()))


if __name__ == "__main__":
    main()
