"""The GGUF format: metadata and tensors of a file, dequantised to float32 (F32, F16, Q8_0 and Q4_1)."""
import math
import struct

import numpy as np

SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
STRING, ARRAY = 8, 9
BLOCK = 32  # numbers of a quantised block


def plain(dtype):
    return np.dtype(dtype), 1, lambda blocks: blocks.astype(np.float32)


def q8_0(blocks):
    return blocks["scale"].astype(np.float32)[:, None] * blocks["numbers"].astype(np.float32)


def q4_1(blocks):
    """Low halves of the bytes are the first 16 numbers, high halves the others."""
    halves = np.concatenate([blocks["numbers"] & 15, blocks["numbers"] >> 4], axis=1).astype(np.float32)
    return blocks["scale"].astype(np.float32)[:, None] * halves + blocks["least"].astype(np.float32)[:, None]


TENSOR_TYPES = {
    0: plain("<f4"),
    1: plain("<f2"),
    3: (np.dtype([("scale", "<f2"), ("least", "<f2"), ("numbers", "u1", BLOCK // 2)]), BLOCK, q4_1),
    8: (np.dtype([("scale", "<f2"), ("numbers", "i1", BLOCK)]), BLOCK, q8_0),
}


class GgufFile:
    """metadata: values by key. tensors: float32 arrays by name, made when asked for."""

    def __init__(self, path):
        self.data = path.read_bytes()
        magic, version, tensors, keys = struct.unpack_from("<4sIQQ", self.data)
        if magic != b"GGUF" or version not in (2, 3):
            raise ValueError(f"{path} is not GGUF version 2 or 3")
        self.at = struct.calcsize("<4sIQQ")
        self.metadata = dict(self.read_pair() for _ in range(keys))
        self.places = dict(self.read_place() for _ in range(tensors))
        alignment = self.metadata.get("general.alignment", 32)
        self.start = -(-self.at // alignment) * alignment

    def read(self, form):
        (value,) = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def read_string(self):
        length = self.read("<Q")
        self.at += length
        return self.data[self.at - length:self.at].decode()

    def read_value(self, kind):
        if kind == STRING:
            return self.read_string()
        if kind == ARRAY:
            element, count = self.read("<I"), self.read("<Q")
            return [self.read_value(element) for _ in range(count)]
        return self.read(SCALARS[kind])

    def read_pair(self):
        key = self.read_string()
        return key, self.read_value(self.read("<I"))

    def read_place(self):
        name = self.read_string()
        dims = [self.read("<Q") for _ in range(self.read("<I"))]
        return name, (dims[::-1], self.read("<I"), self.read("<Q"))

    def tensor(self, name):
        shape, kind, offset = self.places[name]
        dtype, block, widen = TENSOR_TYPES[kind]
        blocks = np.frombuffer(self.data, dtype, math.prod(shape) // block, self.start + offset)
        return widen(blocks).reshape(shape)
