"""The ONNX backend's node tests of Attention, opset 23 and 24, asked of the daemon over HTTP.

They are other people's data and lie beside the project. Each case goes as safetensors both ways, and as JSON where JSON
can say its results, with base64 for inputs that are infinite.
"""
import numpy as np
import pytest
import tensors as binary
from daemon import ROOT
from test_attention_options import ask

FOLDER = ROOT.parent / "shared/data/onnx-attention"
CASES = sorted(FOLDER.glob("*.safetensors"))
STAGES = ("scores", "capped", "masked", "softmax")


def read(path):
    """Tensors by name, and attributes."""
    tensors, _, attributes = binary.unpack(path.read_bytes())
    return tensors, attributes


def causal(tensors, queries):
    """is_causal aligns by nonpad_kv_seqlen - Lq, by the length of past, or else top left."""
    if "in.nonpad_kv_seqlen" in tensors:
        return (tensors["in.nonpad_kv_seqlen"] - queries).tolist()
    return int(tensors["in.past_key"].shape[2]) if "in.past_key" in tensors else "top_left"


def fields_of(tensors, attributes):
    """The request that a case is."""
    fields = {name: tensors["in." + letter] for name, letter in (("query", "Q"), ("key", "K"), ("value", "V"))}
    fields |= {name: tensors["in." + name] for name in ("past_key", "past_value") if "in." + name in tensors}
    if fields["query"].ndim == 3:
        fields |= {"heads": int(attributes["q_num_heads"]), "kv_heads": int(attributes["kv_num_heads"])}
    mask = tensors.get("in.attn_mask")
    if mask is not None:
        fields["mask" if mask.dtype == bool else "bias"] = mask
    if "in.nonpad_kv_seqlen" in tensors:
        fields["key_lengths"] = tensors["in.nonpad_kv_seqlen"].tolist()
    if attributes.get("is_causal") == "1":
        fields["causal"] = causal(tensors, fields["query"].shape[-2])
    fields |= {name: float(attributes[name]) for name in ("scale", "softcap") if float(attributes.get(name, 0)) != 0}
    stage = STAGES[int(attributes.get("qk_matmul_output_mode", 0))]
    return {**fields, "weights": {"stage": stage}}, stage


def close(found, expected):
    """At ONNX's own tolerance for float16, a hundred times closer for float32."""
    found = np.asarray(found, np.float64)
    assert found.shape == expected.shape
    relative = 1e-3 if expected.dtype == np.float16 else 1e-5
    np.testing.assert_allclose(found, expected.astype(np.float64), rtol=relative, atol=1e-7)


def test_all_cases_are_there():
    if not FOLDER.is_dir():
        pytest.skip(f"no {FOLDER}")
    assert len(CASES) == 51


def agree(reply, tensors, stage):
    close(reply["context"], tensors["out.Y"])
    if "out.qk_matmul_output" in tensors:
        close(reply["stages"][stage], tensors["out.qk_matmul_output"])
    for name in ("present_key", "present_value"):
        if "in.past_key" in tensors:
            close(reply[name], tensors["out." + name])


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_case_of_onnx(daemon, path):
    tensors, attributes = read(path)
    fields, stage = fields_of(tensors, attributes)
    agree(binary.ask(daemon, **fields), tensors, stage)
    if all(np.isfinite(x).all() for name, x in tensors.items() if name.startswith("out.")):
        as_float32 = {name: x.astype(np.float32) if getattr(x, "dtype", None) == np.float16 else x
                      for name, x in fields.items()}
        agree(ask(daemon, **as_float32), tensors, stage)
