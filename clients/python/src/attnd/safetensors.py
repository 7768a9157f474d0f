"""Safetensors bodies: bytes to named numpy arrays and back.

The format: a little-endian u64 N, then N bytes of JSON (each tensor's dtype, shape and data_offsets, and
``__metadata__``, strings to strings), then the data. :func:`encode` lays out the widest elements first, so that every
array is aligned for whoever reads it; :func:`decode` refuses a body whose offsets overlap, leave a hole, or do not
fit their shapes.

numpy has no bfloat16: arrays of an extension dtype of that name (ml_dtypes) are written as BF16, and BF16 is read as
float32, which holds each of its values exactly.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnd.errors import ProtocolError

#: Longest JSON header that is read, in bytes.
MAX_HEADER = 100_000_000

_DTYPES: Mapping[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
_NAMES = {(dtype.kind, dtype.itemsize): name for name, dtype in _DTYPES.items()}
_BF16_STORAGE = np.dtype("<u2")


def encode(tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str] | None = None) -> list[memoryview]:
    """A body in pieces to be sent one after another: the header, then the data of each tensor.

    Args:
        tensors: arrays of any rank, float64, float32, float16, bfloat16, int64, int32, uint8 or bool, by name.
        metadata: strings by name.

    Returns:
        Byte views. Those of contiguous little-endian arrays are of the arrays themselves, not copies.

    Raises:
        TypeError: a dtype that the format, or the daemon, does not have.
    """
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    pieces: list[memoryview] = []
    offset = 0
    for name, array in sorted(tensors.items(), key=lambda item: -item[1].dtype.itemsize):
        dtype, stored = _storable(name, array)
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [offset, offset + stored.nbytes]}
        offset += stored.nbytes
        if stored.nbytes:
            pieces.append(stored.reshape(-1).view(np.uint8).data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return [memoryview(len(text).to_bytes(8, "little") + text), *pieces]


def _storable(name: str, array: NDArray[Any]) -> tuple[str, NDArray[Any]]:
    """The format's name of an array's dtype, and the array contiguous and little-endian."""
    if array.dtype.name == "bfloat16":
        return "BF16", np.ascontiguousarray(array).view(np.uint16).astype(_BF16_STORAGE, copy=False)
    dtype = _NAMES.get((array.dtype.kind, array.dtype.itemsize))
    if dtype is None:
        raise TypeError(f"{name}: safetensors bodies have no dtype {array.dtype}")
    return dtype, np.ascontiguousarray(array, dtype=_DTYPES[dtype])


def decode(body: bytes | bytearray | memoryview) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """The tensors and the metadata of a body.

    Returns:
        Arrays by name, in the order of the header, and the metadata. The arrays are views of `body` (writable if it
        is), but for BF16 tensors, which become new float32 arrays.

    Raises:
        ProtocolError: a body against the format; the message names the tensor.
    """
    view = memoryview(body)
    header, start = _header(view)
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ProtocolError("safetensors: __metadata__ is not strings by name")
    data = view[start:]
    spans = []
    tensors = {}
    for name, entry in header.items():
        dtype, shape, begin, end = _entry(name, entry, len(data))
        spans.append((begin, end, name))
        tensors[name] = _array(dtype, shape, data[begin:end])
    _check_cover(spans, len(data))
    return tensors, metadata


def _header(view: memoryview) -> tuple[dict[str, Any], int]:
    """The JSON header, and where the data starts."""
    if len(view) < 8:
        raise ProtocolError("safetensors: the body is shorter than a header length")
    length = int.from_bytes(view[:8], "little")
    if length > MAX_HEADER or 8 + length > len(view):
        raise ProtocolError(f"safetensors: a header of {length} bytes in a body of {len(view)}")
    try:
        header = json.loads(bytes(view[8 : 8 + length]), object_pairs_hook=_without_duplicates)
    except ValueError as error:
        raise ProtocolError(f"safetensors: the header is not JSON: {error}") from error
    if not isinstance(header, dict):
        raise ProtocolError("safetensors: the header is not an object")
    return header, 8 + length


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _is_sizes(value: Any) -> bool:
    return isinstance(value, list) and all(type(size) is int and size >= 0 for size in value)


def _entry(name: str, entry: Any, size: int) -> tuple[str, list[int], int, int]:
    """dtype, shape, begin and end of a tensor's entry, checked against each other."""
    if not isinstance(entry, dict) or not _is_sizes(entry.get("shape")) or not _is_sizes(entry.get("data_offsets")):
        raise ProtocolError(f"safetensors: tensor {name} has no shape or no data_offsets")
    dtype, shape, offsets = entry.get("dtype"), entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or (dtype != "BF16" and dtype not in _DTYPES):
        raise ProtocolError(f"safetensors: tensor {name} has the unknown dtype {dtype}")
    if len(offsets) != 2 or not offsets[0] <= offsets[1] <= size:
        raise ProtocolError(f"safetensors: tensor {name} has offsets {offsets} in {size} bytes of data")
    width = (_BF16_STORAGE if dtype == "BF16" else _DTYPES[dtype]).itemsize
    if math.prod(shape) * width != offsets[1] - offsets[0]:
        raise ProtocolError(f"safetensors: tensor {name} of shape {shape} and dtype {dtype} has offsets {offsets}")
    return dtype, shape, offsets[0], offsets[1]


def _array(dtype: str, shape: Sequence[int], data: memoryview) -> NDArray[Any]:
    if dtype == "BF16":
        bits = np.frombuffer(data, dtype=_BF16_STORAGE).astype(np.uint32) << 16
        return bits.view(np.float32).reshape(shape)
    return np.frombuffer(data, dtype=_DTYPES[dtype]).reshape(shape)


def _check_cover(spans: list[tuple[int, int, str]], size: int) -> None:
    """The tensors' bytes follow one another from the first byte of the data to the last."""
    expected = 0
    for begin, end, name in sorted(spans):
        if begin != expected:
            raise ProtocolError(f"safetensors: tensor {name} starts at {begin}, not {expected}")
        expected = end
    if expected != size:
        raise ProtocolError(f"safetensors: {size - expected} bytes after the last tensor")
