"""Attention in float64 by plain numpy, written from the formulas: what the Python client's answers are held against."""
import numpy as np


def softmax(scores):
    """Over the last dimension; a row with nothing allowed is zero."""
    top = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    powers = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = powers.sum(axis=-1, keepdims=True)
    return np.divide(powers, total, out=np.zeros_like(powers), where=total > 0)


def attend(query, key, value, allowed=True, bias=0.0, scale=None):
    """(context, weights) of [..., L, D], [..., S, D], [..., S, Dv]; allowed is True where a key may be attended to."""
    query, key, value = (np.asarray(array, dtype=np.float64) for array in (query, key, value))
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = query @ np.swapaxes(key, -1, -2) * scale + bias
    weights = softmax(np.where(allowed, scores, -np.inf))
    return weights @ value, weights


def split(array, heads):
    """[..., L, H * D] as [..., H, L, D]."""
    *lead, length, width = array.shape
    return np.swapaxes(array.reshape(*lead, length, heads, width // heads), -2, -3)


def join(array):
    """[..., H, L, D] as [..., L, H * D]."""
    *lead, heads, length, width = array.shape
    return np.swapaxes(array, -2, -3).reshape(*lead, length, heads * width)


def multi_head(query, key, value, heads, weights, biases, out_weight, out_bias, allowed=True, bias=0.0):
    """(output, weights by head) of batch-first input through torch-style [out, in] matrices, three of each."""
    q, k, v = (split(np.asarray(x, dtype=np.float64) @ np.asarray(w, dtype=np.float64).T + b, heads)
               for x, w, b in zip((query, key, value), weights, biases))
    context, found = attend(q, k, v, allowed, bias)
    return join(context) @ np.asarray(out_weight, dtype=np.float64).T + out_bias, found
