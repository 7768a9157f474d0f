"""What the scripts that train the small default models share: tokenizers, schedules, files.

Needs torch, transformers, tokenizers and safetensors (requirements-train.txt).
"""
import json
import math
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers


def train_tokenizer(texts, vocabulary, special):
    """A byte-level BPE of at most `vocabulary` tokens, the special ones first."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def train(model, loss_of, steps, rate, decay=0.1, warmup=100, report=200):
    """AdamW under a cosine schedule; loss_of(step) runs the model on a batch."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=decay)
    model.train()
    for step in range(steps):
        part = min(1.0, (step + 1) / warmup) * 0.5 * (1 + math.cos(math.pi * step / steps))
        for group in optimizer.param_groups:
            group["lr"] = rate * part
        loss = loss_of(step)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % report == 0 or step + 1 == steps:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)
    model.eval()


def round_to_bfloat16(model):
    """Weights become what the file will hold, so that what is measured is what is served."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.to(torch.bfloat16).float())


def save(model, tokenizer, config, directory, tied):
    """config.json, tokenizer.json and model.safetensors (bfloat16, without the tensors named in `tied`)."""
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    tensors = {
        name: tensor.detach().to(torch.bfloat16).contiguous()
        for name, tensor in model.state_dict().items()
        if name not in tied
    }
    save_file(tensors, directory / "model.safetensors")
    (directory / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    tokenizer.save(str(directory / "tokenizer.json"), pretty=False)
