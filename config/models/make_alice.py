#!/usr/bin/env python3
"""Trains the default language model: GPT-2's layout, on Alice's Adventures in Wonderland.

    make_alice.py TEXT [DIRECTORY]      (default: alice beside this script)

TEXT is the book (public domain), for example ../shared/data/text/alice29.txt. Writes config.json,
tokenizer.json and model.safetensors in bfloat16, and prints the loss on the last tenth of the book, which
is not trained on. Minutes on two cores.
"""
import re
import sys
from pathlib import Path

import torch
from transformers import GPT2Config, GPT2LMHeadModel

import training

SEED = 1865
VOCABULARY, POSITIONS, WIDTH, LAYERS, HEADS = 1024, 128, 128, 4, 4
STEPS, BATCH, RATE, DROPOUT = 1400, 16, 2e-3, 0.2
END = "<|endoftext|>"


def read_paragraphs(path):
    """The book from its first chapter on, one line a paragraph, verses kept in lines."""
    book = Path(path).read_text(encoding="ascii", errors="ignore")
    book = book[book.index("CHAPTER I"):]
    paragraphs = []
    for block in re.split(r"\n\s*\n", book):
        lines = [line.strip() for line in block.splitlines() if line.strip()]
        if lines and not set("".join(lines)) <= set("* "):
            paragraphs.append(re.sub(r" +", " ", " ".join(lines)))
    return paragraphs


def windows(tokens, generator, count):
    starts = torch.randint(0, len(tokens) - POSITIONS, (count,), generator=generator)
    return torch.stack([tokens[start:start + POSITIONS] for start in starts])


def held_out_loss(model, tokens):
    losses = []
    with torch.no_grad():
        for start in range(0, len(tokens) - POSITIONS, POSITIONS):
            batch = tokens[start:start + POSITIONS][None]
            losses.append(model(input_ids=batch, labels=batch).loss.item())
    return sum(losses) / len(losses)


def main():
    here = Path(__file__).resolve().parent
    directory = sys.argv[2] if len(sys.argv) > 2 else here / "alice"
    torch.manual_seed(SEED)
    paragraphs = read_paragraphs(sys.argv[1])
    cut = len(paragraphs) * 9 // 10
    tokenizer = training.train_tokenizer(paragraphs[:cut], VOCABULARY, [END])
    trained, held_out = (
        torch.tensor(tokenizer.encode("\n".join(part)).ids) for part in (paragraphs[:cut], paragraphs[cut:])
    )
    config = GPT2Config(
        vocab_size=VOCABULARY, n_positions=POSITIONS, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS,
        resid_pdrop=DROPOUT, embd_pdrop=DROPOUT, attn_pdrop=DROPOUT, bos_token_id=0, eos_token_id=0,
    )
    model = GPT2LMHeadModel(config)
    generator = torch.Generator().manual_seed(SEED)

    def loss_of(step):
        batch = windows(trained, generator, BATCH)
        return model(input_ids=batch, labels=batch).loss

    training.train(model, loss_of, STEPS, RATE)
    training.round_to_bfloat16(model)
    print(f"{len(trained)} tokens trained on, {len(held_out)} held out")
    print(f"held-out loss {held_out_loss(model, held_out):.3f} nats a token")
    with torch.no_grad():
        prompt = torch.tensor([tokenizer.encode("Alice was beginning to get very tired").ids])
        said = model.generate(prompt, max_new_tokens=40, do_sample=False, pad_token_id=0)
    print(tokenizer.decode(said[0].tolist()))
    kept = {
        "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": VOCABULARY,
        "n_positions": POSITIONS, "n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS,
        "activation_function": config.activation_function,
        "layer_norm_epsilon": config.layer_norm_epsilon, "tie_word_embeddings": True,
        "bos_token_id": 0, "eos_token_id": 0, "torch_dtype": "bfloat16",
    }
    training.save(model, tokenizer, kept, directory, {"lm_head.weight"})


if __name__ == "__main__":
    main()
