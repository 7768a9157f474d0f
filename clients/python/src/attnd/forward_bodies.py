"""Bodies of forward calls: tokens on the way there, and on the way back a tree of results, whichever the encoding.

A tree has names, and numbers of layers and of sequences, as keys, and arrays as leaves: in a safetensors reply it is
made of the tensors' names, in a JSON one of objects and lists.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from attnd import bodies, safetensors
from attnd.errors import ProtocolError
from attnd.options import Tokens
from attnd.results import ByLayer, Forward, Rows, Top, TopLogits, TopWeights

Tree = dict[Any, Any]
T = TypeVar("T")

_KINDS = ("encoder", "decoder", "cross")
_WORDS = ("token_strings", "decoder_token_strings")


def as_tokens(name: str, value: Tokens) -> NDArray[np.int64] | list[list[int]]:
    """Tokens as a body can hold them: an int64 array, or lists where rows differ in length.

    Raises:
        TypeError: not integers.
        ValueError: neither one row nor rows.
    """
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.asarray(None)
    if array.dtype == object:
        return [_row(name, row) for row in _rows_of(name, value)]
    if array.size == 0:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name}: token numbers, not {array.dtype}")
    if array.ndim not in (1, 2):
        raise ValueError(f"{name}: one row of tokens, or rows, not {array.ndim} dimensions")
    return array.astype(np.int64)


def _rows_of(name: str, value: Any) -> Sequence[Any]:
    if not isinstance(value, (Sequence, np.ndarray)) or isinstance(value, (str, bytes)):
        raise TypeError(f"{name}: token numbers, not a {type(value).__name__}")
    return list(value)


def _row(name: str, row: Any) -> list[int]:
    array = np.asarray(row)
    if array.size == 0:
        return []
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise TypeError(f"{name}: rows of token numbers, not {row!r}")
    return [int(token) for token in array]


# ---- replies


def read(
    media_type: str,
    body: bytes | bytearray,
    *,
    timing: Mapping[str, float],
    batch_size: int | None,
    request_id: str | None,
) -> Forward:
    """The result that the reply to a forward request holds.

    Raises:
        ProtocolError: it is none.
    """
    try:
        return _forward(_decode(media_type, body), timing, batch_size, request_id)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ProtocolError(f"the reply is not that of a forward request: {error}") from error


def _decode(media_type: str, body: bytes | bytearray) -> Tree:
    if media_type == bodies.MEDIA_TYPES["safetensors"]:
        tensors, metadata = safetensors.decode(body)
        words = {name: json.loads(metadata[name]) for name in _WORDS if name in metadata}
        return {**_tree_of_names(tensors), **words}
    if media_type == bodies.MEDIA_TYPES["json"]:
        return _tree_of_json(bodies.object_of(body, "the reply"))
    raise ProtocolError(f"a reply of media type {media_type!r}")


def _tree_of_names(tensors: Mapping[str, NDArray[Any]]) -> Tree:
    tree: Tree = {}
    for name, array in tensors.items():
        *parents, last = (int(part) if part.isdecimal() else part for part in name.split("."))
        place = tree
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = array
    return tree


def _tree_of_json(reply: Mapping[str, Any]) -> Tree:
    """Lists by layer get the numbers of the layers; the lists inside stay for :func:`_leaf`."""
    layers = reply.get("layers")
    tree = dict(reply)
    for name in ("hidden_all", "weights"):
        if name in reply:
            tree[name] = _numbered(reply[name], layers if name == "weights" else None)
    if "statistics" in reply:
        tree["statistics"] = {name: _numbered(value, layers) for name, value in reply["statistics"].items()}
    return tree


def _numbered(value: Any, layers: Any) -> Tree:
    if isinstance(value, dict):
        return {kind: _numbered(part, layers[kind] if layers else None) for kind, part in value.items()}
    if not isinstance(value, list):
        raise ProtocolError("the reply has no list by layer")
    return dict(zip(layers or range(len(value)), value, strict=True))


def _leaf(node: Any, name: str) -> Any:
    """One array, or a list by sequence where those differ in shape."""
    if isinstance(node, np.ndarray):
        return node
    if isinstance(node, dict):
        parts = [_leaf(node[number], name) for number in sorted(node)]
        return np.stack(parts) if len({part.shape for part in parts}) == 1 else parts
    try:
        return bodies.json_array(name, node)
    except ProtocolError:
        return [bodies.json_array(name, part) for part in node]


def _kinds(node: Any, read: Callable[[Any], T]) -> T | dict[str, T]:
    if isinstance(node, dict) and node.keys() & set(_KINDS):
        return {kind: read(part) for kind, part in node.items()}
    return read(node)


def _layers(node: Any, read: Callable[[Any], T]) -> dict[int, T]:
    return {number: read(node[number]) for number in sorted(node)}


def _weights(node: Any) -> Rows | Top:
    """Those of one layer, or the largest of them."""
    if not isinstance(node, dict) or "indices" not in node:
        return _floats(node)
    indices, values = _leaf(node["indices"], "weights.indices"), _leaf(node["values"], "weights.values")
    if isinstance(indices, list):
        return [TopWeights(*pair) for pair in zip(indices, values, strict=True)]
    return TopWeights(indices, values)


def _floats(node: Any) -> Rows:
    rows: Rows = _leaf(node, "")
    return rows


def _statistic(name: str, node: Any) -> ByLayer | dict[str, ByLayer]:
    def rows(part: Any) -> Rows:
        found: Rows = _leaf(part, f"statistics.{name}")
        return found

    def layers(part: Any) -> ByLayer:
        return _layers(part, rows)

    return _kinds(node, layers)


def _top_logits(node: Any) -> TopLogits:
    return TopLogits(_leaf(node["indices"], "top_logits.indices"), _leaf(node["values"], "top_logits.values"))


def _forward(tree: Tree, timing: Mapping[str, float], batch_size: int | None, request_id: str | None) -> Forward:
    def optional(name: str, made: Callable[[Any], T]) -> T | None:
        return made(tree[name]) if name in tree else None

    return Forward(
        tokens=optional("tokens", lambda node: _leaf(node, "tokens")),
        token_strings=tree.get("token_strings"),
        token_offsets=optional("token_offsets", lambda node: _leaf(node, "token_offsets")),
        decoder_tokens=optional("decoder_tokens", lambda node: _leaf(node, "tokens")),
        decoder_token_strings=tree.get("decoder_token_strings"),
        decoder_token_offsets=optional("decoder_token_offsets", lambda node: _leaf(node, "token_offsets")),
        hidden=optional("hidden", lambda node: _kinds(node, _floats)),
        hidden_all=_kinds(tree.get("hidden_all", {}), lambda node: _layers(node, _floats)),
        weights=_kinds(tree.get("weights", {}), lambda node: _layers(node, _weights)),
        statistics={name: _statistic(name, node) for name, node in tree.get("statistics", {}).items()},
        rollout=optional("rollout", lambda node: _kinds(node, _floats)),
        pooled=optional("pooled", lambda node: _leaf(node, "pooled")),
        logits=optional("logits", lambda node: _leaf(node, "logits")),
        logits_all=optional("logits_all", _floats),
        top_logits=optional("top_logits", _top_logits),
        timing=timing,
        batch_size=batch_size,
        request_id=request_id,
    )
