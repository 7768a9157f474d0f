"""Writes tests/fuzz/corpus/model: the smallest models of several families, a config.json, a NUL, the weights."""

import json
import struct
from pathlib import Path

FOLDER = Path(__file__).parent / "corpus" / "model"


def weights(shapes):
    """A safetensors text of zeros with those shapes by name."""
    header, end = {}, 0
    for name, shape in shapes.items():
        size = 2
        for dimension in shape:
            size *= dimension
        header[name] = {"dtype": "F16", "shape": list(shape), "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text)) + text + bytes(end)


def write(name, config, shapes):
    text = json.dumps(config, separators=(",", ":")).encode()
    (FOLDER / name).write_bytes(text + b"\0" + weights(shapes))


def linears(prefix, names, shape, bias=True):
    out = {}
    for name in names:
        out[f"{prefix}{name}.weight"] = shape
        if bias:
            out[f"{prefix}{name}.bias"] = shape[:1]
    return out


def norms(prefix, names, bias=True):
    return linears(prefix, names, (2,), bias)


def bert():
    block = "encoder.layer.0."
    shapes = {f"embeddings.{name}_embeddings.weight": (2, 2) for name in ("word", "position", "token_type")}
    shapes |= norms("", ["embeddings.LayerNorm", block + "attention.output.LayerNorm", block + "output.LayerNorm"])
    shapes |= linears(block, ["attention.self.query", "attention.self.key", "attention.self.value",
                              "attention.output.dense", "intermediate.dense", "output.dense"], (2, 2))
    write("bert", {"model_type": "bert", "hidden_size": 2, "intermediate_size": 2, "num_attention_heads": 1,
                   "num_hidden_layers": 1, "vocab_size": 2, "max_position_embeddings": 2}, shapes)


def gpt2():
    shapes = {"wte.weight": (2, 2), "wpe.weight": (2, 2), "h.0.attn.c_attn.weight": (2, 6),
              "h.0.attn.c_attn.bias": (6,)}
    shapes |= norms("", ["h.0.ln_1", "h.0.ln_2", "ln_f"])
    shapes |= linears("h.0.", ["attn.c_proj", "mlp.c_fc", "mlp.c_proj"], (2, 2))
    write("gpt2", {"model_type": "gpt2", "n_embd": 2, "n_inner": 2, "n_head": 1, "n_layer": 1, "vocab_size": 2,
                   "n_positions": 2}, shapes)


def llama(name, **config):
    block = "model.layers.0."
    shapes = {"model.embed_tokens.weight": (2, 2)}
    shapes |= norms("", [block + "input_layernorm", block + "post_attention_layernorm", "model.norm"], bias=False)
    shapes |= linears(block, [f"self_attn.{part}_proj" for part in "qkvo"], (2, 2), bias=False)
    shapes |= linears(block, [f"mlp.{part}_proj" for part in ("gate", "up", "down")], (2, 2), bias=False)
    if name == "qwen3":
        shapes |= norms(block, ["self_attn.q_norm", "self_attn.k_norm"], bias=False)
    write(name, {"model_type": name, "hidden_size": 2, "intermediate_size": 2, "num_attention_heads": 1,
                 "num_hidden_layers": 1, "vocab_size": 2, "max_position_embeddings": 2, **config}, shapes)


def t5():
    shapes = {"shared.weight": (2, 2)}
    for stack in ("encoder", "decoder"):
        block = f"{stack}.block.0."
        attention = block + "layer.0.SelfAttention."
        last = 2 if stack == "decoder" else 1
        shapes |= linears(attention, "qkvo", (2, 2), bias=False)
        shapes[attention + "relative_attention_bias.weight"] = (4, 1)
        if stack == "decoder":
            shapes |= linears(block + "layer.1.EncDecAttention.", "qkvo", (2, 2), bias=False)
        shapes |= linears(f"{block}layer.{last}.DenseReluDense.", ["wi", "wo"], (2, 2), bias=False)
        shapes |= norms(block, [f"layer.{i}.layer_norm" for i in range(last + 1)], bias=False)
        shapes |= norms(stack + ".", ["final_layer_norm"], bias=False)
    write("t5", {"model_type": "t5", "d_model": 2, "d_ff": 2, "d_kv": 2, "num_heads": 1, "num_layers": 1,
                 "vocab_size": 2, "relative_attention_num_buckets": 4}, shapes)


def torch_mha():
    write("torch-mha", {"model_type": "torch-mha", "num_heads": 1},
          {"in_proj_weight": (6, 2), "in_proj_bias": (6,)} | linears("", ["out_proj"], (2, 2)))


def torch_encoder():
    block = "layers.0."
    shapes = {block + "self_attn.in_proj_weight": (6, 2), block + "self_attn.in_proj_bias": (6,)}
    shapes |= linears(block, ["self_attn.out_proj", "linear1", "linear2"], (2, 2))
    write("torch-encoder", {"model_type": "torch-encoder", "num_heads": 1},
          shapes | norms(block, ["norm1", "norm2"]))


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    bert()
    gpt2()
    llama("llama", rope_parameters={"rope_type": "default", "rope_theta": 10000})
    llama("qwen3", use_sliding_window=True, sliding_window=1, layer_types=["sliding_attention"])
    t5()
    torch_mha()
    torch_encoder()
