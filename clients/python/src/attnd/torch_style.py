"""Attention by torch's argument names and mask polarity, computed by the daemon.

torch has two conventions for boolean masks, and these functions keep each where torch has it:

===========================================  ===================  =============================
function                                     boolean masks        ``is_causal``
===========================================  ===================  =============================
:func:`scaled_dot_product_attention`         True = may attend    aligned to the top left
:func:`multi_head_attention`                 True = **ignore**    aligned to the top left
===========================================  ===================  =============================

Float masks are added to the scores in both. Arguments are numpy arrays, or anything numpy makes an array of, a CPU
tensor of torch included. Two things differ from torch: a row with nothing to attend to is zero, where torch may give
NaN, and there is no dropout.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnd.client import Client
from attnd.options import Projections
from attnd.results import FloatArray

Array = NDArray[Any]


def scaled_dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    attn_mask: ArrayLike | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    client: Client,
) -> FloatArray:
    """As ``torch.nn.functional.scaled_dot_product_attention``. N: any leading dimensions, none included.

    Args:
        query: [N..., H, L, D], or [N, L, D], or [L, D].
        key: [N..., Hkv, S, D] and so on.
        value: [N..., Hkv, S, Dv] and so on.
        attn_mask: broadcast to [N..., H, L, S]: booleans, True = may attend, or floats added to the scores.
        dropout_p: 0; the daemon drops nothing.
        is_causal: query i sees key j where j <= i; not together with `attn_mask`.
        scale: factor of the scores; default 1/sqrt(D).
        enable_gqa: whether Hkv may be a divisor of H; else they must be equal.
        client: where it is computed.

    Returns:
        float32 [N..., H, L, Dv].

    Raises:
        ValueError: arguments that torch refuses as well.
        AttndError: as :meth:`attnd.Client.attention`.
    """
    q, k, v = (np.asarray(array) for array in (query, key, value))
    if dropout_p != 0.0:
        raise ValueError("dropout_p must be 0: the daemon drops nothing")
    if is_causal and attn_mask is not None:
        raise ValueError("attn_mask and is_causal exclude each other")
    if q.ndim < 2 or not q.ndim == k.ndim == v.ndim:
        raise ValueError(f"query, key and value need one rank, 2 or more, not {q.ndim}, {k.ndim} and {v.ndim}")
    if q.ndim >= 4 and not enable_gqa and not q.shape[-3] == k.shape[-3] == v.shape[-3]:
        raise ValueError("query, key and value differ in heads, which needs enable_gqa=True")
    masks: dict[str, Array] = {}
    if attn_mask is not None:
        mask = np.asarray(attn_mask)
        masks[_mask_kind("attn_mask", mask)] = _against(mask, q.shape, k.shape[-2])
    result = client.attention(
        _flat(q),
        _flat(k),
        _flat(v),
        causal="top_left" if is_causal else None,
        scale=scale,
        weights=False,
        mask=masks.get("mask"),
        bias=masks.get("bias"),
    )
    return result.context.reshape(q.shape[:-1] + v.shape[-1:])


def _flat(array: Array) -> Array:
    """Leading dimensions before the heads as one."""
    return array if array.ndim <= 4 else array.reshape(math.prod(array.shape[:-3]), *array.shape[-3:])


def _against(mask: Array, query: tuple[int, ...], keys: int) -> Array:
    """A mask that broadcasts to [N..., H, L, S], as one that broadcasts to [B, H, Lq, Lk] with the same meaning."""
    if mask.ndim < 2:
        return mask.reshape(1, mask.size)
    if len(query) == 3 and mask.ndim == 3:  # [N, L, S]: its first dimension is the batch, not heads
        return mask[:, np.newaxis]
    if len(query) <= 4 or mask.ndim <= 3:
        return mask
    return _flat(np.broadcast_to(mask, (*query[:-1], keys)))


def _mask_kind(name: str, mask: Array) -> str:
    if mask.dtype.kind == "b":
        return "mask"
    if mask.dtype.kind == "f":
        return "bias"
    raise TypeError(f"{name}: booleans or floats, not {mask.dtype}")


def multi_head_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    num_heads: int,
    in_proj_weight: ArrayLike | None,
    in_proj_bias: ArrayLike | None,
    out_proj_weight: ArrayLike,
    out_proj_bias: ArrayLike | None = None,
    *,
    client: Client,
    key_padding_mask: ArrayLike | None = None,
    need_weights: bool = True,
    attn_mask: ArrayLike | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
    batch_first: bool = False,
    q_proj_weight: ArrayLike | None = None,
    k_proj_weight: ArrayLike | None = None,
    v_proj_weight: ArrayLike | None = None,
) -> tuple[FloatArray, FloatArray | None]:
    """As ``torch.nn.MultiheadAttention``, with the module's parameters as arguments.

    L queries, S keys, N sequences, E the width, H = num_heads.

    Args:
        query: [L, N, E], or [N, L, E] with `batch_first`, or [L, E] for one sequence.
        key: [S, N, Ek] and so on.
        value: [S, N, Ev] and so on.
        num_heads: H, a divisor of E.
        in_proj_weight: [3E, E], rows for query, key and value; None with the three separate weights.
        in_proj_bias: [3E]; None: no bias.
        out_proj_weight: [E, E], as ``out_proj.weight``.
        out_proj_bias: [E]; None: no bias.
        client: where it is computed.
        key_padding_mask: [N, S] ([S] for one sequence): booleans, True = ignore the key, or floats to add.
        need_weights: whether weights come back.
        attn_mask: [L, S] or [N * H, L, S]: booleans, True = must not attend, or floats to add.
        average_attn_weights: weights averaged over heads, or one matrix a head.
        is_causal: with `attn_mask`, a hint that it is the causal mask, which changes nothing here; without, query i
            sees key j where j <= i.
        batch_first: the order of the dimensions of query, key, value and output.
        q_proj_weight: [E, E], in place of `in_proj_weight` where the widths differ.
        k_proj_weight: [E, Ek].
        v_proj_weight: [E, Ev].

    Returns:
        The output, of the query's shape, and the weights: [N, L, S] averaged, [N, H, L, S] by head, without N for one
        sequence, None where not needed.

    Raises:
        ValueError: weights or masks of other shapes than these.
        AttndError: as :meth:`attnd.Client.attention`.
    """
    q, k, v = (np.asarray(array) for array in (query, key, value))
    if q.ndim not in (2, 3) or not q.ndim == k.ndim == v.ndim:
        raise ValueError(f"query, key and value need one rank, 2 or 3, not {q.ndim}, {k.ndim} and {v.ndim}")
    turned = q.ndim == 3 and not batch_first
    if turned:
        q, k, v = (array.swapaxes(0, 1) for array in (q, k, v))
    projections = _in_projections(in_proj_weight, in_proj_bias, q_proj_weight, k_proj_weight, v_proj_weight)
    projections["output"] = out_proj_weight
    if out_proj_bias is not None:
        projections["output_bias"] = out_proj_bias
    masks = _combined(key_padding_mask, attn_mask, num_heads)
    result = client.attention(
        q,
        k,
        v,
        heads=num_heads,
        projections=projections,
        projection_layout="out_in",
        mask=masks.get("mask"),
        bias=masks.get("bias"),
        causal="top_left" if is_causal and attn_mask is None else None,
        weights=("mean" if average_attn_weights else True) if need_weights else False,
    )
    return result.context.swapaxes(0, 1) if turned else result.context, result.weights


def _in_projections(
    packed: ArrayLike | None,
    bias: ArrayLike | None,
    query: ArrayLike | None,
    key: ArrayLike | None,
    value: ArrayLike | None,
) -> Projections:
    """The packed or separate weights, and the packed bias, by the daemon's names."""
    found: Projections = {}
    if packed is not None:
        weight = np.asarray(packed)
        if weight.ndim != 2 or weight.shape[0] % 3:
            raise ValueError(f"in_proj_weight needs the shape [3E, E], not {list(weight.shape)}")
        found["query"], found["key"], found["value"] = np.split(weight, 3)
    elif query is None or key is None or value is None:
        raise ValueError("in_proj_weight, or all of q_proj_weight, k_proj_weight and v_proj_weight")
    else:
        found["query"], found["key"], found["value"] = query, key, value
    if bias is not None:
        vector = np.asarray(bias)
        if vector.ndim != 1 or vector.shape[0] % 3:
            raise ValueError(f"in_proj_bias needs the shape [3E], not {list(vector.shape)}")
        found["query_bias"], found["key_bias"], found["value_bias"] = np.split(vector, 3)
    return found


def _combined(key_padding_mask: ArrayLike | None, attn_mask: ArrayLike | None, heads: int) -> Mapping[str, Array]:
    """`mask` (True = may attend) and `bias`, each rank 4, of two masks of torch's polarity (True = ignore)."""
    found: dict[str, Array] = {}
    for name, given in (("key_padding_mask", key_padding_mask), ("attn_mask", attn_mask)):
        if given is None:
            continue
        array = _rank_four(name, np.asarray(given), heads)
        kind = _mask_kind(name, array)
        if kind == "mask":
            found[kind] = ~array & found[kind] if kind in found else ~array
        else:
            found[kind] = array + found[kind] if kind in found else array
    return found


def _rank_four(name: str, mask: Array, heads: int) -> Array:
    """[N, S], [S], [L, S] or [N * H, L, S], as what broadcasts to [N, H, L, S]."""
    if name == "key_padding_mask" and mask.ndim in (1, 2):
        return mask.reshape(-1, 1, 1, mask.shape[-1])
    if name == "attn_mask" and mask.ndim == 2:
        return mask[np.newaxis, np.newaxis]
    if name == "attn_mask" and mask.ndim == 3 and heads > 0 and mask.shape[0] % heads == 0:
        return mask.reshape(mask.shape[0] // heads, heads, *mask.shape[1:])
    raise ValueError(f"{name} of shape {list(mask.shape)} fits no sequence of {heads} heads")
