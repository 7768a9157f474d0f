#!/usr/bin/env python3
"""Random cases through torch's own attention and through a daemon, by the Python client's torch-style functions.

    PYTHONPATH=clients/python/src tests/clients/compare_torch.py --url http://127.0.0.1:8080 [--cases N] [--seed N]

torch computes in float64, so that what differs is the daemon's rounding. Prints the largest difference of each kind;
exit status 1 where one is over its bound. Rows with nothing to attend to are left out of the cases: torch's answer to
them depends on its version.
"""
import argparse
import sys

import attnd
import numpy as np
from attnd.torch_style import multi_head_attention, scaled_dot_product_attention

# Raw tensors: absolute, for inputs in [-1, 1]. Projected ones: relative to the largest magnitude of the tensor.
CONTEXT, PROJECTED = 4e-6, 1e-5


def uniform(random, *shape):
    return random.uniform(-1, 1, shape).astype(np.float32)


def boolean(random, *shape):
    """True somewhere in each row."""
    mask = random.random(shape) < 0.6
    mask[..., 0] |= ~mask.any(axis=-1)
    return mask


def difference(got, wanted):
    return float(np.abs(got - wanted).max(initial=0))


def compare_sdpa(torch, client, random):
    """Largest absolute difference of one random case of scaled_dot_product_attention."""
    lead = [(), (2,), (2, 4), (2, 3, 4)][random.integers(4)]
    grouped = len(lead) > 1 and random.random() < 0.4
    key_lead = (*lead[:-1], 2) if grouped else lead
    queries, keys, width, value_width = (int(n) for n in random.integers(1, 12, 4))
    q, k = uniform(random, *lead, queries, width), uniform(random, *key_lead, keys, width)
    v = uniform(random, *key_lead, keys, value_width)
    kind = random.choice(["none", "causal", "boolean", "float"])
    shape = (queries, keys) if random.random() < 0.5 else (*lead, queries, keys)
    mask = {"boolean": boolean, "float": uniform}[kind](random, *shape) if kind in ("boolean", "float") else None
    options = {"is_causal": bool(kind == "causal"), "scale": float(random.uniform(0.1, 2)) if random.random() < 0.5 else None}
    if grouped:
        options["enable_gqa"] = True
    as_double = [torch.from_numpy(array).double() for array in (q, k, v)]
    torch_mask = None if mask is None else torch.from_numpy(mask)
    if kind == "float":
        torch_mask = torch_mask.double()
    wanted = torch.nn.functional.scaled_dot_product_attention(*as_double, attn_mask=torch_mask, **options).numpy()
    return difference(scaled_dot_product_attention(q, k, v, mask, client=client, **options), wanted)


def random_layer(torch, random):
    """A MultiheadAttention in float64 whose parameters are float32 values, and the widths of keys and values."""
    heads = int(random.choice([1, 2, 4]))
    width = heads * int(random.integers(1, 9))
    other = {"kdim": int(random.integers(1, 9)), "vdim": int(random.integers(1, 9))} if random.random() < 0.3 else {}
    layer = torch.nn.MultiheadAttention(width, heads, bias=bool(random.random() < 0.7), batch_first=bool(random.random() < 0.5),
                                        **other).double().eval()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.from_numpy(uniform(random, *parameter.shape)))
    return layer, other.get("kdim", width), other.get("vdim", width)


def random_masks(random, batch, heads, queries, keys):
    """attn_mask and key_padding_mask in torch's polarity; key 0 is never ignored, so that no row is empty."""
    shape = (queries, keys) if random.random() < 0.5 else ((batch or 1) * heads, queries, keys)
    padding = (keys,) if batch is None else (batch, keys)
    masks = {}
    for name, size in (("attn_mask", shape), ("key_padding_mask", padding)):
        kind = random.choice(["none", "boolean", "float"])
        if kind == "boolean":
            masks[name] = random.random(size) < 0.4
            masks[name][..., 0] = False
        elif kind == "float":
            masks[name] = uniform(random, *size)
    return masks


def compare_mha(torch, client, random):
    """Largest differences of one random case of MultiheadAttention, relative to the output's and weights' largest."""
    layer, key_width, value_width = random_layer(torch, random)
    batch = int(random.integers(1, 4)) if random.random() < 0.8 else None
    queries, keys = (int(n) for n in random.integers(1, 10, 2))
    arrays = []
    for length, width in ((queries, layer.embed_dim), (keys, key_width), (keys, value_width)):
        order = (length,) if batch is None else (batch, length) if layer.batch_first else (length, batch)
        arrays.append(uniform(random, *order, width))
    masks = random_masks(random, batch, layer.num_heads, queries, keys)
    average = bool(random.random() < 0.5)
    torch_masks = {name: torch.from_numpy(mask) if mask.dtype == bool else torch.from_numpy(mask).double()
                   for name, mask in masks.items()}
    with torch.no_grad():
        wanted, found = layer(*(torch.from_numpy(array).double() for array in arrays), average_attn_weights=average, **torch_masks)
    named = {name: parameter.detach().numpy() for name, parameter in layer.named_parameters()}
    separate = {name: named.get(name) for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight")}
    output, weights = multi_head_attention(
        *arrays, layer.num_heads, named.get("in_proj_weight"), named.get("in_proj_bias"), named["out_proj.weight"],
        named.get("out_proj.bias"), batch_first=layer.batch_first, average_attn_weights=average, client=client, **masks, **separate)
    return (difference(output, wanted.numpy()) / float(wanted.abs().max()),
            difference(weights, found.numpy()) / float(found.abs().max()))


def compare(torch, client, cases, seed):
    """Largest difference of each kind over as many cases of each function, with its bound."""
    random = np.random.default_rng(seed)
    raw = max(compare_sdpa(torch, client, random) for _ in range(cases))
    projected = [compare_mha(torch, client, random) for _ in range(cases)]
    return {"scaled_dot_product_attention": (raw, CONTEXT),
            "MultiheadAttention, output": (max(output for output, _ in projected), PROJECTED),
            "MultiheadAttention, weights": (max(weights for _, weights in projected), PROJECTED)}


def main():
    parser = argparse.ArgumentParser(description="torch's attention against a daemon's.")
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("--encoding", choices=["safetensors", "json"], default="safetensors")
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    import torch

    with attnd.Client(arguments.url, encoding=arguments.encoding) as client:
        found = compare(torch, client, arguments.cases, arguments.seed)
    print(f"torch {torch.__version__}, {arguments.cases} cases each, seed {arguments.seed}")
    for name, (largest, bound) in found.items():
        print(f"  {name}: {largest:.2e}, at most {bound:.0e}")
    return 0 if all(largest <= bound for largest, bound in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
