"""The small models of tests/models served with their stacks: what their frameworks computed, and requests for it."""
import json

import numpy as np
import tensors
from daemon import ROOT

FOLDER = ROOT / "tests/models"
KINDS = {"first": "encoder", "second": "decoder", "cross": "cross"}


def vectors(case):
    """Arrays by name, as make_checkpoints.py says."""
    body = (FOLDER / case / "vectors.safetensors").read_bytes()
    size = int.from_bytes(body[:8], "little")
    header, data = json.loads(body[8:8 + size]), body[8 + size:]
    header.pop("__metadata__", None)
    return {name: np.frombuffer(data[slice(*entry["data_offsets"])], tensors.DTYPES[entry["dtype"]])
            .reshape(entry["shape"]) for name, entry in header.items()}


# Models whose vectors are of stacks; the others are layers alone.
CASES = sorted(path.parent.name for path in FOLDER.glob("*/vectors.safetensors")
               if any(name.startswith("first.") for name in vectors(path.parent.name)))


def inputs(case):
    """The fields of a request that the vectors are the answer to."""
    found = vectors(case)
    return {prefix + what: found[f"{stack}.{what}"] for stack, prefix in (("first", ""), ("second", "decoder_"))
            for what in ("tokens", "embeddings") if f"{stack}.{what}" in found}


def member(reply, group, name):
    """What a reply holds of a vector: group hidden_all, weights; name first.hidden.3."""
    stack, _, number = name.split(".")
    part = reply[group]
    part = part[KINDS[stack]] if KINDS[stack] in part else part
    return np.asarray(part[number] if isinstance(part, dict) else part[int(number)])


def plain(fields):
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in fields.items()}


def path(case):
    return f"/v1/models/{case}/forward"


def forward(daemon, case, **fields):
    """The members of a good JSON reply."""
    reply = daemon.post(path(case), plain(fields))
    assert reply.status == 200, reply
    return reply.json


def refused(daemon, case, **fields):
    """Status, code, pointer and detail of a problem."""
    reply = daemon.post(path(case), plain(fields))
    assert reply.status >= 400, reply
    return reply.status, reply.json["code"], reply.json["pointer"], reply.json["detail"]
