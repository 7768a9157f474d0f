"""Request and reply bodies: named arrays and plain fields to bytes and back, as safetensors or as JSON.

Both encodings share one view: tensors by dotted name ("projections.query", "weights.indices") and fields that are not
tensors. Nothing here knows what a field means; that is the daemon's to judge.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnd import safetensors
from attnd.errors import ProtocolError
from attnd.results import Attention, Shape, StageArray, TopWeights

Encoding = Literal["safetensors", "json"]
MEDIA_TYPES: Mapping[str, str] = {"safetensors": "application/x-safetensors", "json": "application/json"}

_LOWEST = float(np.finfo(np.float32).min)
# Where text writes the lowest float32 for -infinity.
_MAY_BE_EXCLUDED = ("stages.masked", "statistics.logsumexp", "statistics.max")


@dataclass(frozen=True)
class Body:
    """A request body in pieces, its length in bytes and its media type."""

    pieces: Sequence[bytes | memoryview]
    media_type: str

    @property
    def length(self) -> int:
        """Bytes in all pieces."""
        return sum(len(piece) for piece in self.pieces)


def as_tensor(name: str, value: ArrayLike) -> NDArray[Any]:
    """An array that a body can hold.

    Float64, numpy's default, becomes float32, in which the daemon computes: the same rounding, half the bytes. It
    stays float64 where a number would leave float32's range, for the daemon to refuse. Integers become float32.

    Raises:
        TypeError: not numbers or booleans.
        ValueError: ragged nesting.
    """
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    if array.dtype == object:
        raise ValueError(f"{name}: not an array of numbers; nested lists must have equal lengths")
    if array.dtype.name == "bfloat16" or array.dtype.kind == "b":
        return array
    if array.dtype.kind in "iu":
        return array.astype(np.float32)
    if array.dtype.kind != "f":
        raise TypeError(f"{name}: numbers or booleans, not {array.dtype}")
    if array.dtype.itemsize <= 4:
        return array
    with np.errstate(over="ignore"):
        narrow = array.astype(np.float32)
    beyond = np.isinf(narrow) & ~np.isinf(array)
    return array.astype(np.float64) if beyond.any() else narrow


def _plain(value: Any) -> Any:
    """A numpy scalar or array among the fields, as Python's own."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"no request can hold a {type(value).__name__}")


def _text(value: Any) -> str:
    return json.dumps(value, default=_plain, allow_nan=False, separators=(",", ":"))


def encode(encoding: str, tensors: Mapping[str, NDArray[Any]], fields: Mapping[str, Any]) -> Body:
    """The body of a request.

    Raises:
        ValueError: an unknown encoding, or a field that is NaN or infinite.
        TypeError: a field that JSON does not have.
    """
    if encoding == "safetensors":
        metadata = {name: _text(value) for name, value in fields.items()}
        return Body(safetensors.encode(tensors, metadata), MEDIA_TYPES[encoding])
    if encoding != "json":
        raise ValueError(f"encoding must be 'safetensors' or 'json', not {encoding!r}")
    tree: dict[str, Any] = {}
    for name, array in tensors.items():
        parent, _, last = name.rpartition(".")
        (tree.setdefault(parent, {}) if parent else tree)[last] = _json_tensor(array)
    tree.update(fields)
    return Body([_text(tree).encode()], MEDIA_TYPES[encoding])


def _json_tensor(array: NDArray[Any]) -> Any:
    """A tensor as JSON has it: nested, with its shape where it is empty, in base64 where text cannot say it."""
    if array.size == 0:
        return {"shape": array.shape, "data": []}
    if array.dtype.kind == "b" or bool(np.isfinite(array).all()):
        return array.tolist()
    if array.dtype.name != "bfloat16":
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"shape": array.shape, "dtype": array.dtype.name, "base64": data}


def decode(media_type: str, body: bytes | bytearray) -> tuple[dict[str, NDArray[Any]], Mapping[str, Any]]:
    """The tensors, by dotted name, and the `shape` of a reply to an attention request."""
    if media_type == MEDIA_TYPES["safetensors"]:
        tensors, metadata = safetensors.decode(body)
        return tensors, object_of(metadata.get("shape", "").encode(), "shape")
    if media_type == MEDIA_TYPES["json"]:
        reply = object_of(body, "the reply")
        shape = reply.pop("shape", None)
        if not isinstance(shape, dict):
            raise ProtocolError("the reply has no shape")
        return dict(_json_arrays(reply, "")), shape
    raise ProtocolError(f"a reply of media type {media_type!r}")


def object_of(text: bytes | bytearray, what: str) -> dict[str, Any]:
    """The JSON object that a text is."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ProtocolError(f"{what} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise ProtocolError(f"{what} is not an object")
    return found


def _json_arrays(tree: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, NDArray[Any]]]:
    for key, value in tree.items():
        name = prefix + key
        if isinstance(value, dict):
            yield from _json_arrays(value, name + ".")
        else:
            yield name, json_array(name, value)


def json_array(name: str, value: Any) -> NDArray[Any]:
    """Nested lists as an array: of integers where the name says so, else of float32."""
    try:
        if name.endswith((".indices", "tokens", "offsets")):
            return np.array(value, dtype=np.int64)
        numbers = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ProtocolError(f"the reply's {name} is not an array: {error}") from error
    if name in _MAY_BE_EXCLUDED:
        numbers[numbers <= _LOWEST] = -np.inf
    return numbers.astype(np.float32)


def attention(
    tensors: Mapping[str, NDArray[Any]],
    shape: Mapping[str, Any],
    *,
    timing: Mapping[str, float],
    batch_size: int | None,
    request_id: str | None,
) -> Attention:
    """The result that a reply's tensors make.

    Raises:
        ProtocolError: a reply without context, or with a shape that lacks a size.
    """
    if "context" not in tensors:
        raise ProtocolError("the reply has no context")
    try:
        sizes = Shape(**{name: int(shape[name]) for name in Shape._fields})
    except (KeyError, TypeError, ValueError) as error:
        raise ProtocolError(f"the reply's shape is not whole: {shape}") from error
    top = "weights.indices" in tensors
    return Attention(
        context=tensors["context"],
        shape=sizes,
        weights=tensors.get("weights"),
        top_weights=TopWeights(tensors["weights.indices"], tensors["weights.values"]) if top else None,
        stages=_stages(_under(tensors, "stages.")),
        statistics=_under(tensors, "statistics."),
        projected=_under(tensors, "projected."),
        present=_under(tensors, "present_"),
        timing=timing,
        batch_size=batch_size,
        request_id=request_id,
    )


def _under(tensors: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {name[len(prefix) :]: array for name, array in tensors.items() if name.startswith(prefix)}


def _stages(found: Mapping[str, NDArray[Any]]) -> dict[str, StageArray]:
    stages: dict[str, StageArray] = {}
    for name, array in found.items():
        stage, _, part = name.partition(".")
        if not part:
            stages[stage] = array
        elif part == "indices":
            stages[stage] = TopWeights(array, found[f"{stage}.values"])
    return stages
