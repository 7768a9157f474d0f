"""The safetensors format: bytes from named arrays and back, and requests in it."""
import json

import numpy as np

MEDIA = "application/x-safetensors"
DTYPES = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "I64": "<i8", "I32": "<i4", "U8": "u1", "BOOL": "?"}


class BFloat16:
    """An array as bfloat16: of float32, rounded to nearest even; its bits are `raw`."""

    def __init__(self, array):
        bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
        self.raw = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")
        self.shape = self.raw.shape


def widened(raw):
    """float32 of the bits of bfloat16."""
    return (raw.astype(np.uint32) << 16).view(np.float32)


def frame(header, data=b""):
    """A header, JSON or bytes, and data."""
    head = header if isinstance(header, bytes) else json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    return len(head).to_bytes(8, "little") + head + data


def pack(arrays, metadata=None):
    """Arrays by name, float64 ones too, and texts by key."""
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, array in arrays.items():
        if isinstance(array, BFloat16):
            dtype, raw = "BF16", array.raw.tobytes()
        else:
            little = array.dtype.newbyteorder("<")
            dtype = next(name for name, code in DTYPES.items() if np.dtype(code) == little)
            raw = np.ascontiguousarray(array, little).tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    return frame(header, data)


def unpack(body):
    """Arrays by name (bfloat16 as float32), dtypes by name, and metadata; every rule of the format holds."""
    size = int.from_bytes(body[:8], "little")
    assert size % 8 == 0
    header = json.loads(body[8:8 + size])
    metadata, arrays, dtypes, end = header.pop("__metadata__", {}), {}, {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, after = entry["data_offsets"]
        assert begin == end, f"{name} begins at {begin}, not at {end}"
        end = after
        raw = body[8 + size + begin:8 + size + after]
        dtypes[name] = entry["dtype"]
        flat = widened(np.frombuffer(raw, "<u2")) if entry["dtype"] == "BF16" else np.frombuffer(raw, DTYPES[entry["dtype"]])
        arrays[name] = flat.reshape(entry["shape"])
    assert end == len(body) - 8 - size
    return arrays, dtypes, metadata


def body_of(fields):
    """A request as one: arrays are tensors, what is in `projections` too; the rest is JSON text."""
    arrays, metadata = {}, {}
    for name, value in fields.items():
        if name == "projections":
            arrays |= {f"projections.{inner}": array for inner, array in value.items()}
        elif isinstance(value, (np.ndarray, BFloat16)):
            arrays[name] = value
        else:
            metadata[name] = json.dumps(value)
    return pack(arrays, metadata)


def nested(reply):
    """The arrays of a binary reply as the members of a JSON one."""
    arrays, _, metadata = unpack(reply.body)
    out = {name: json.loads(text) for name, text in metadata.items()}
    for name, array in arrays.items():
        *groups, last = name.split(".")
        place = out
        for group in groups:
            place = place.setdefault(group, {})
        place[last] = array
    return out


def send(daemon, body, path="/v1/attention", accept=MEDIA, **headers):
    """POSTs the bytes of a safetensors body; accept None sends no Accept."""
    wanted = {} if accept is None else {"Accept": accept}
    return daemon.request("POST", path, body=body, headers={"Content-Type": MEDIA, **wanted, **headers})


def ask(daemon, path="/v1/attention", **fields):
    """The members of a good reply, binary both ways."""
    reply = send(daemon, body_of(fields), path)
    assert reply.status == 200 and reply.headers["content-type"] == MEDIA, reply
    return nested(reply)
