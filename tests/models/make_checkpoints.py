#!/usr/bin/env python3
"""Small random models in the layouts that torch, transformers and diffusers write, with what those compute from them.

    make_checkpoints.py [--out FOLDER] [CASE ...]

Each case is a folder with config.json, the weights (model.safetensors, or an index and shards) and
vectors.safetensors. Every parameter is drawn at random, norms and biases too; results are computed in float64 from
the weights as stored and kept as float32. Names in vectors.safetensors, S being first, second or cross:

    first.tokens, second.tokens [batch, length]        or first.embeddings [batch, length, width]
    first.hidden.N, second.hidden.N                    the embedded input, then each block; the last after the final norm
    S.weights.N                                        [batch, heads, queries, keys] of attention layer N
    logits                                             [batch, length, vocabulary] of the last stack

and for models whose layers are not stacked, N being the layer:

    N.query, N.key, N.value, N.output, N.weights, N.mask

The layouts' names and config keys are those of the frameworks; requirements.txt pins the versions.
"""
import argparse
import importlib.metadata
import json
import math
import shutil
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

SEED = 20240229
MADE_WITH = f"seed {SEED}, " + ", ".join(f"{name} {importlib.metadata.version(name)}" for name in
                                         ("torch", "transformers", "diffusers", "safetensors"))
CASES = {}


def case(function):
    CASES[function.__name__.replace("_", "-")] = function
    return function


# ---------------------------------------------------------------- parameters


def randomise(module, name):
    """Draws every parameter: vectors called weight are norms, around 1; matrices keep the size of what they map."""
    generator = torch.Generator().manual_seed(SEED + sum(name.encode()))
    positions = {id(p) for m in module.modules() if "Sinusoidal" in type(m).__name__ for p in m.parameters()}
    transposed = {id(m.weight) for m in module.modules() if type(m).__name__ == "Conv1D"}
    embeddings = {id(m.weight) for m in module.modules() if isinstance(m, torch.nn.Embedding)}
    with torch.no_grad():
        for key, tensor in [*module.named_parameters(), *module.named_buffers()]:
            if id(tensor) in positions or not (isinstance(tensor, torch.nn.Parameter) or key == "final_logits_bias"):
                continue
            drawn = torch.randn(tensor.shape, generator=generator)
            if tensor.dim() == 1 and key.endswith("weight"):
                tensor.copy_(1 + 0.3 * drawn)
            elif tensor.dim() == 1 or min(tensor.shape) == 1 or "embed_positions" in key:
                tensor.copy_(0.3 * drawn)
            elif id(tensor) in embeddings:
                tensor.copy_(0.7 * drawn)
            else:
                tensor.copy_(1.3 * drawn / math.sqrt(tensor.shape[0 if id(tensor) in transposed else 1]))
    return module.eval().requires_grad_(False)


def stored_as(module, dtype):
    """Rounds every parameter to what a file of dtype holds."""
    for tensor in module.parameters():
        tensor.data = tensor.data.to(dtype)
    return module


def tokens_of(vocabulary, *shape):
    generator = torch.Generator().manual_seed(SEED)
    return torch.randint(0, vocabulary, shape, generator=generator)


def numbers_of(*shape):
    generator = torch.Generator().manual_seed(SEED + len(shape) + shape[-1])
    return torch.randn(shape, generator=generator)


# ---------------------------------------------------------------- files


def write_config(folder, config):
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def write_tensors(path, tensors):
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path, metadata={"format": "pt"})


def write_vectors(folder, vectors):
    stored = {name: (v if v.dtype in (torch.int64, torch.bool) else v.to(torch.float32)).contiguous().clone()
              for name, v in vectors.items()}
    save_file(stored, folder / "vectors.safetensors", metadata={"made_with": MADE_WITH})


def edit_tensors(folder, change):
    """Writes model.safetensors again with other names or further tensors: change maps a state dict to a state dict."""
    path = folder / "model.safetensors"
    write_tensors(path, change(load_file(path)))


def edit_config(folder, **changes):
    config = json.loads((folder / "config.json").read_text())
    config.update(changes)
    write_config(folder, {key: value for key, value in config.items() if value is not ...})


# ---------------------------------------------------------------- transformers


def stack_vectors(stack, tokens, hidden, last, weights):
    vectors = {f"{stack}.tokens": tokens}
    vectors |= {f"{stack}.hidden.{i}": h for i, h in enumerate([*hidden[:-1], last])}
    return vectors | {f"{stack}.weights.{i}": w for i, w in enumerate(weights)}


def save_transformers(folder, model, dtype=torch.float32, **how):
    randomise(model, folder.name)
    stored_as(model, dtype)
    model.config.dtype = dtype
    model.save_pretrained(folder, **how)
    (folder / "generation_config.json").unlink(missing_ok=True)
    return model.double()


@torch.no_grad()
def decoder_vectors(model, tokens):
    out = model(input_ids=tokens, output_hidden_states=True, output_attentions=True)
    last = getattr(out, "last_hidden_state", None)
    vectors = stack_vectors("first", tokens, out.hidden_states, out.hidden_states[-1] if last is None else last,
                            out.attentions)
    return vectors | ({"logits": out.logits} if "logits" in out else {})


@torch.no_grad()
def translator_vectors(model, source, target):
    out = model(input_ids=source, decoder_input_ids=target, output_hidden_states=True, output_attentions=True)
    encoded, decoded = out.encoder_hidden_states, out.decoder_hidden_states
    vectors = stack_vectors("first", source, encoded, out.encoder_last_hidden_state, out.encoder_attentions)
    vectors |= stack_vectors("second", target, decoded, decoded[-1], out.decoder_attentions)
    vectors |= {f"cross.weights.{i}": w for i, w in enumerate(out.cross_attentions)}
    return vectors | {"logits": out.logits}


def transformers_model(name, config, **settings):
    import transformers

    configuration = getattr(transformers, config)(**settings)
    configuration._attn_implementation = "eager"
    return getattr(transformers, name)(configuration)


def bert(folder, **how):
    model = transformers_model("BertModel", "BertConfig", vocab_size=50, hidden_size=24, num_hidden_layers=3,
                               num_attention_heads=4, intermediate_size=30, max_position_embeddings=16)
    return decoder_vectors(save_transformers(folder, model, **how), tokens_of(50, 2, 7))


@case
def bert_plain(folder):
    return bert(folder)


@case
def bert_float16(folder):
    return bert(folder, dtype=torch.float16)


@case
def bert_old_names(folder):
    """As early BERT checkpoints: a prefix, gamma and beta, the buffer of positions, a masked language head absent."""
    vectors = bert(folder)

    def rename(state):
        renamed = {"bert." + key.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"):
                   tensor for key, tensor in state.items()}
        return renamed | {"bert.embeddings.position_ids": torch.arange(16)[None]}

    edit_tensors(folder, rename)
    return vectors


def gpt2(folder, name):
    model = transformers_model(name, "GPT2Config", vocab_size=50, n_embd=24, n_layer=2, n_head=3, n_positions=16,
                               bos_token_id=0, eos_token_id=0)
    return decoder_vectors(save_transformers(folder, model), tokens_of(50, 2, 9))


@case
def gpt2_head(folder):
    return gpt2(folder, "GPT2LMHeadModel")


@case
def gpt2_buffers(folder):
    """As the first GPT-2 checkpoints: no prefix, and the causal mask as a buffer of each layer."""
    vectors = gpt2(folder, "GPT2LMHeadModel")
    mask = torch.tril(torch.ones(1, 1, 16, 16))
    edit_tensors(folder, lambda state: {key.removeprefix("transformer."): tensor for key, tensor in state.items()} |
                 {f"h.{i}.attn.bias": mask.clone() for i in range(2)} |
                 {f"h.{i}.attn.masked_bias": torch.tensor(-1e4) for i in range(2)})
    return vectors


def llama_family(folder, family, length=9, dtype=torch.float32, how=None, **settings):
    base = dict(vocab_size=60, hidden_size=24, intermediate_size=36, num_hidden_layers=3, num_attention_heads=4,
                num_key_value_heads=2, max_position_embeddings=32, rms_norm_eps=1e-5, bos_token_id=1, eos_token_id=2)
    model = transformers_model(f"{family}ForCausalLM", f"{family}Config", **(base | settings))
    model = save_transformers(folder, model, dtype, **(how or {}))
    return decoder_vectors(model, tokens_of(60, 2, length))


@case
def llama_grouped(folder):
    return llama_family(folder, "Llama", head_dim=8, tie_word_embeddings=False,
                        rope_parameters={"rope_type": "default", "rope_theta": 500.0})


@case
def llama_tied(folder):
    """theta at the top of config.json, as transformers 4 wrote it; biases; one key and value head."""
    vectors = llama_family(folder, "Llama", num_key_value_heads=1, attention_bias=True, mlp_bias=True,
                           tie_word_embeddings=True, rope_parameters={"rope_type": "default", "rope_theta": 2000.0})
    edit_config(folder, rope_parameters=..., rope_theta=2000.0, rope_scaling=None)
    return vectors


@case
def llama_bfloat16_sharded(folder):
    return llama_family(folder, "Llama", dtype=torch.bfloat16, how={"max_shard_size": "9KB"})


@case
def mistral_window(folder):
    return llama_family(folder, "Mistral", sliding_window=4, head_dim=10)


@case
def qwen2_biases(folder):
    return llama_family(folder, "Qwen2")


@case
def qwen3_head_norms(folder):
    return llama_family(folder, "Qwen3", head_dim=12, tie_word_embeddings=True)


def t5(folder, **settings):
    base = dict(vocab_size=50, d_model=20, d_kv=6, d_ff=28, num_layers=2, num_decoder_layers=3, num_heads=3,
                relative_attention_num_buckets=8, relative_attention_max_distance=20, decoder_start_token_id=0)
    return save_transformers(folder, transformers_model("T5ForConditionalGeneration", "T5Config", **(base | settings)))


@case
def t5_relu(folder):
    return translator_vectors(t5(folder), tokens_of(50, 1, 24), tokens_of(50, 1, 11))


@case
def t5_gated_untied(folder):
    """As version 1.1: a gated feed-forward, a head of its own, its output not scaled."""
    model = t5(folder, feed_forward_proj="gated-gelu", d_ff=28, tie_word_embeddings=False)
    head = torch.nn.Parameter(numbers_of(50, 20) / math.sqrt(20), requires_grad=False)
    edit_tensors(folder, lambda state: state | {"lm_head.weight": head.data})
    edit_config(folder, tie_word_embeddings=False, scale_decoder_outputs=...)
    model.lm_head.weight = torch.nn.Parameter(head.double(), requires_grad=False)
    return translator_vectors(model, tokens_of(50, 2, 7), tokens_of(50, 2, 5))


def marian_model(family, **settings):
    base = dict(vocab_size=50, d_model=18, encoder_layers=2, decoder_layers=3, encoder_attention_heads=6,
                decoder_attention_heads=3, encoder_ffn_dim=20, decoder_ffn_dim=28, max_position_embeddings=20,
                pad_token_id=49, bos_token_id=0, eos_token_id=0, forced_eos_token_id=0, decoder_start_token_id=49)
    return transformers_model(*family, **(base | settings))


def marian_like(folder, family, words=49, **settings):
    model = save_transformers(folder, marian_model(family, **settings))
    return translator_vectors(model, tokens_of(49, 2, 7), tokens_of(words, 2, 5))


@case
def marian_swish(folder):
    return marian_like(folder, ("MarianMTModel", "MarianConfig"), scale_embedding=True, activation_function="swish")


@case
def marian_two_vocabularies(folder):
    """Tables of their own for both sides, the decoder's smaller, and the sinusoids in the file, as old conversions."""
    vectors = marian_like(folder, ("MarianMTModel", "MarianConfig"), words=30, scale_embedding=True, decoder_vocab_size=31,
                          share_encoder_decoder_embeddings=False, tie_word_embeddings=False, decoder_start_token_id=30,
                          pad_token_id=30, encoder_layers=1, decoder_layers=1)
    edit_tensors(folder, lambda state: state | {f"model.{side}.embed_positions.weight": torch.zeros(20, 18)
                                                for side in ("encoder", "decoder")})
    return vectors


@case
def bart_learned_positions(folder):
    return marian_like(folder, ("BartForConditionalGeneration", "BartConfig"), scale_embedding=False,
                       activation_function="gelu")


@case
def bart_scaled(folder):
    """As the model without its head is saved: no prefix, no bias of logits."""
    model = marian_model(("BartForConditionalGeneration", "BartConfig"), scale_embedding=True, activation_function="relu",
                         encoder_attention_heads=2)
    model = save_transformers(folder, model)
    model.final_logits_bias.zero_()
    edit_tensors(folder, lambda state: {key.removeprefix("model."): tensor for key, tensor in state.items()
                                        if key.startswith("model.")})
    return translator_vectors(model, tokens_of(49, 2, 7), tokens_of(49, 2, 5))


def clip(folder):
    model = transformers_model("CLIPTextModel", "CLIPTextConfig", vocab_size=50, hidden_size=24, num_hidden_layers=2,
                               num_attention_heads=4, intermediate_size=40, max_position_embeddings=16,
                               bos_token_id=0, eos_token_id=2, projection_dim=24)
    return decoder_vectors(save_transformers(folder, model), tokens_of(50, 2, 9))


@case
def clip_text(folder):
    """As transformers 4 wrote it: a prefix, and the buffer of positions."""
    vectors = clip(folder)
    edit_tensors(folder, lambda state: {f"text_model.{key}": tensor for key, tensor in state.items()} |
                 {"text_model.embeddings.position_ids": torch.arange(16)[None]})
    return vectors


@case
def clip_text_bare(folder):
    return clip(folder)


# ---------------------------------------------------------------- torch.nn


def mha_vectors(layer, query, key, value, mask=None):
    layer = layer.double()
    mask_argument = None if mask is None else ~mask  # torch's true forbids, ours allows
    output, weights = layer(query.double(), key.double(), value.double(), attn_mask=mask_argument,
                            average_attn_weights=False)
    vectors = {"0.query": query, "0.key": key, "0.value": value, "0.output": output, "0.weights": weights}
    return vectors | ({} if mask is None else {"0.mask": mask})


def save_mha(folder, mask=None, inputs=None, **settings):
    layer = randomise(torch.nn.MultiheadAttention(24, 4, batch_first=True, **settings), folder.name)
    write_tensors(folder / "model.safetensors", layer.state_dict())
    config = {"model_type": "torch-mha", "num_heads": 4}
    write_config(folder, config | ({"add_zero_attn": True} if settings.get("add_zero_attn") else {}))
    return mha_vectors(layer, *(inputs or [numbers_of(2, 7, 24)] * 3), mask)


@case
def torch_mha_self(folder):
    return save_mha(folder)


@case
def torch_mha_widths(folder):
    return save_mha(folder, kdim=10, vdim=14, inputs=[numbers_of(2, 7, 24), numbers_of(2, 5, 10), numbers_of(2, 5, 14)])


@case
def torch_mha_appended(folder):
    return save_mha(folder, mask=torch.tril(torch.ones(7, 7, dtype=torch.bool), diagonal=-1), add_bias_kv=True,
                    add_zero_attn=True)


@case
def torch_mha_appended_bias(folder):
    return save_mha(folder, add_bias_kv=True, kdim=10, vdim=14,
                    inputs=[numbers_of(2, 7, 24), numbers_of(2, 5, 10), numbers_of(2, 5, 14)])


@case
def torch_mha_appended_zero(folder):
    return save_mha(folder, add_zero_attn=True, bias=False)


class Watch:
    """Weights of each MultiheadAttention of a module, in the order they run."""

    def __init__(self, module):
        self.weights = {}
        for name, part in module.named_modules():
            if isinstance(part, torch.nn.MultiheadAttention):
                part.register_forward_pre_hook(self.ask, with_kwargs=True)
                part.register_forward_hook(lambda _, __, result, name=name: self.weights.__setitem__(name, result[1]))

    @staticmethod
    def ask(_, arguments, named):
        return arguments, named | {"need_weights": True, "average_attn_weights": False}


def torch_stack(stack, inputs, norm, run):
    """Hidden states of the layers of an encoder or decoder."""
    hidden = [inputs]
    for layer in stack.layers:
        hidden.append(run(layer, hidden[-1]))
    if norm is not None:
        hidden[-1] = norm(hidden[-1])
    return hidden


def torch_vectors(stack, hidden, weights):
    vectors = {f"{stack}.embeddings": hidden[0]} | {f"{stack}.hidden.{i}": h for i, h in enumerate(hidden)}
    return vectors | {f"{stack}.weights.{i}": w for i, w in enumerate(weights)}


def torch_encoder(folder, final_norm, **settings):
    layer = torch.nn.TransformerEncoderLayer(24, 4, dim_feedforward=40, batch_first=True, **settings)
    norm = torch.nn.LayerNorm(24, eps=settings.get("layer_norm_eps", 1e-5)) if final_norm else None
    encoder = torch.nn.TransformerEncoder(layer, 3, norm=norm, enable_nested_tensor=False)
    randomise(encoder, folder.name)
    write_tensors(folder / "model.safetensors", encoder.state_dict())
    keys = {key: settings[key] for key in ("norm_first", "activation", "layer_norm_eps") if key in settings}
    write_config(folder, {"model_type": "torch-encoder", "num_heads": 4, **keys})
    watch = Watch(encoder.double())
    hidden = torch_stack(encoder, numbers_of(2, 7, 24).double(), encoder.norm, lambda block, x: block(x))
    return torch_vectors("first", hidden, watch.weights.values())


@case
def torch_encoder_post_norm(folder):
    return torch_encoder(folder, final_norm=False)


@case
def torch_encoder_pre_norm(folder):
    return torch_encoder(folder, final_norm=True, norm_first=True, activation="gelu", layer_norm_eps=1e-3)


@case
def torch_encoder_no_bias(folder):
    return torch_encoder(folder, final_norm=False, norm_first=True, bias=False)


def torch_transformer(folder, **settings):
    model = torch.nn.Transformer(16, 4, num_encoder_layers=2, num_decoder_layers=3, dim_feedforward=20,
                                 batch_first=True, **settings)
    model.encoder.enable_nested_tensor = False
    randomise(model, folder.name)
    write_tensors(folder / "model.safetensors", model.state_dict())
    write_config(folder, {"model_type": "torch-transformer", "num_heads": 4, **settings})
    watch = Watch(model.double())
    encoded = torch_stack(model.encoder, numbers_of(2, 7, 16).double(), model.encoder.norm, lambda block, x: block(x))
    mask = torch.nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64)
    decoded = torch_stack(model.decoder, numbers_of(2, 5, 16).double(), model.decoder.norm,
                          lambda block, x: block(x, encoded[-1], tgt_mask=mask))
    by_kind = [[w for name, w in watch.weights.items() if name.startswith(prefix) and name.endswith(suffix)]
               for prefix, suffix in (("encoder", "self_attn"), ("decoder", "self_attn"), ("decoder", "multihead_attn"))]
    vectors = torch_vectors("first", encoded, by_kind[0]) | torch_vectors("second", decoded, by_kind[1])
    return vectors | {f"cross.weights.{i}": w for i, w in enumerate(by_kind[2])}


@case
def torch_transformer_post_norm(folder):
    return torch_transformer(folder)


@case
def torch_transformer_pre_norm(folder):
    return torch_transformer(folder, norm_first=True, activation="gelu")


# ---------------------------------------------------------------- diffusers


def unet(folder, **settings):
    """Only attn2 and one convolution are kept of the weights: the rest of a UNet is large and not attention."""
    from diffusers import UNet2DConditionModel
    from diffusers.models.attention_processor import AttnProcessor

    model = UNet2DConditionModel(sample_size=4, block_out_channels=(8, 16), layers_per_block=1, norm_num_groups=4,
                                 down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
                                 up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), **settings)
    model.set_attn_processor(AttnProcessor())
    randomise(model, folder.name)
    model.save_config(folder)
    edit_config(folder, model_type="unet-cross-attention", _name_or_path=...)
    write_tensors(folder / "model.safetensors", {key: tensor for key, tensor in model.state_dict().items()
                                                 if ".attn2." in key or key.startswith("conv_in.")})
    vectors = {}

    def record(layer, arguments, named, output):
        index = sum(key.endswith(".output") for key in vectors)
        query, key = arguments[0], named["encoder_hidden_states"]
        heads = layer.head_to_batch_dim(layer.to_q(query)), layer.head_to_batch_dim(layer.to_k(key))
        weights = layer.get_attention_scores(*heads).unflatten(0, (-1, layer.heads))
        vectors.update({f"{index}.query": query.clone(), f"{index}.key": key.clone(), f"{index}.output": output,
                        f"{index}.weights": weights})

    for name, part in model.double().named_modules():
        if name.endswith(".attn2"):
            part.register_forward_hook(record, with_kwargs=True)
    channels = settings.get("in_channels", 4)
    model(numbers_of(2, channels, 4, 4).double(), 7, numbers_of(2, 5, settings["cross_attention_dim"]).double())
    return vectors


@case
def unet_heads(folder):
    """attention_head_dim is the number of heads, as Stable Diffusion 1 has it."""
    return unet(folder, cross_attention_dim=12, attention_head_dim=2)


@case
def unet_heads_by_block(folder):
    """A number of heads for each block, as Stable Diffusion 2 has it, and two transformer blocks in each."""
    return unet(folder, cross_attention_dim=10, attention_head_dim=[2, 4], transformer_layers_per_block=2)


# ---------------------------------------------------------------- making


def make(name, out):
    """Makes a case in an empty folder, then puts it in place of what was there."""
    with tempfile.TemporaryDirectory(dir=out) as temporary:
        folder = Path(temporary) / name
        folder.mkdir()
        torch.manual_seed(SEED)
        with torch.no_grad():
            write_vectors(folder, CASES[name](folder))
        shutil.rmtree(out / name, ignore_errors=True)
        shutil.move(folder, out / name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.cases or CASES:
        print(name, flush=True)
        make(name, arguments.out)


if __name__ == "__main__":
    main()
