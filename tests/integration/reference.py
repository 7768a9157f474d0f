"""Attention in float64 by the book, to judge the daemon by; and right answers' tolerances."""
import numpy as np
from tensors import pack


def allowed_keys(queries, keys, causal=None, offset=0, key_length=None, mask=None, window=None):
    """[queries, keys] booleans: which key each query may attend to."""
    i, j = np.arange(queries)[:, None], np.arange(keys)[None, :]
    shift = {"top_left": 0, "offset": offset}.get(causal, keys - queries)
    ok = np.ones((queries, keys), bool)
    if causal:
        ok &= j <= i + shift
    if window:
        left, right = window
        if left >= 0:
            ok &= j >= i + shift - left
        if right >= 0:
            ok &= j <= i + shift + right
    if key_length is not None:
        ok &= j < key_length
    return ok if mask is None else ok & mask


def attend(query, key, value, allowed, scale=None, bias=None, softcap=None, sink=None):
    """One head: context [Lq,Dv] and weights [Lq,Lk] in float64."""
    query, key, value = (np.asarray(x, np.float64) for x in (query, key, value))
    scores = query @ key.T * (1 / np.sqrt(query.shape[-1]) if scale is None else scale)
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    if bias is not None:
        scores = scores + bias
    scores = np.where(allowed, scores, -np.inf)
    top = np.max(scores, axis=-1, keepdims=True, initial=-np.inf if sink is None else sink)
    e = np.where(allowed, np.exp(scores - np.where(np.isfinite(top), top, 0)), 0)
    total = e.sum(-1, keepdims=True) + (0 if sink is None else np.exp(sink - top))
    weights = np.divide(e, total, out=np.zeros_like(e), where=total > 0)
    return weights @ np.where(allowed.any(0)[:, None], value, 0), weights


def split(x, heads):
    """[L, heads*D] to [heads, L, D]."""
    return np.moveaxis(np.asarray(x, np.float64).reshape(len(x), heads, -1), 1, 0)


def multi_head(query, key, value, heads, allowed, kv_heads=None, scale=None):
    """Heads split, attended and joined: context [Lq, H*Dv], weights [H,Lq,Lk]."""
    kv_heads = kv_heads or heads
    q, k, v = split(query, heads), split(key, kv_heads), split(value, kv_heads)
    results = [attend(q[h], k[h * kv_heads // heads], v[h * kv_heads // heads], allowed, scale) for h in range(heads)]
    context = np.concatenate([c for c, _ in results], axis=-1)
    return context, np.stack([w for _, w in results])


def write_torch_mha(folder, width, heads, seed=1):
    """A model directory in torch.nn.MultiheadAttention's layout; returns its tensors."""
    import json
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    tensors = {
        "in_proj_weight": rng.uniform(-1, 1, (3 * width, width)) / np.sqrt(width),
        "in_proj_bias": rng.uniform(-0.1, 0.1, 3 * width),
        "out_proj.weight": rng.uniform(-1, 1, (width, width)) / np.sqrt(width),
        "out_proj.bias": rng.uniform(-0.1, 0.1, width),
    }
    tensors = {k: v.astype(np.float32) for k, v in tensors.items()}
    (folder / "model.safetensors").write_bytes(pack(tensors))
    (folder / "config.json").write_text(json.dumps({"model_type": "torch-mha", "num_heads": heads}))
    return tensors


def torch_mha(tensors, heads, query, key, value, allowed):
    """What torch.nn.MultiheadAttention computes with these tensors, in float64."""
    width = tensors["out_proj.weight"].shape[0]
    w, b = tensors["in_proj_weight"].astype(np.float64), tensors["in_proj_bias"].astype(np.float64)
    q, k, v = (np.asarray(x, np.float64) @ w[i * width:(i + 1) * width].T + b[i * width:(i + 1) * width]
               for i, x in enumerate((query, key, value)))
    context, weights = multi_head(q, k, v, heads, allowed)
    return context @ tensors["out_proj.weight"].T.astype(np.float64) + tensors["out_proj.bias"], weights
