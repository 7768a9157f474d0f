"""Writes tests/text/data: some of the small tokenizers, some lines of the sample, and what the reference makes of them.

    make_data.py [FOLDER]

A tokenizer that is there stays: training does not give the same twice. lines.jsonl holds the lines; NAME/tokens.txt a row `id:start:end ...` for each, offsets in bytes. Needs the package `tokenizers`
at the version of requirements.txt.
"""
import json
import os
import sys

from compare import byte_ranges
from make_sample import sample
from make_tokenizers import LAYOUTS
from tokenizers import Tokenizer

CHOSEN = ["bert", "bert_cased", "clip", "gpt2", "llama2", "llama3", "metaspace", "pieces", "qwen2", "roberta_prefix", "words"]
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")


def lines():
    """Every 60th of those that are not long."""
    return [text for text in sample() if len(text) < 120][::60]


def main(folder=FOLDER):
    corpus, chosen = sample(), lines()
    for name in CHOSEN:
        path = os.path.join(folder, name, "tokenizer.json")
        if not os.path.exists(path):
            os.makedirs(os.path.join(folder, name), exist_ok=True)
            LAYOUTS[name](corpus).save(path, pretty=False)
        tokenizer = Tokenizer.from_file(path)
        with open(os.path.join(folder, name, "tokens.txt"), "w") as file:
            for text in chosen:
                encoding = tokenizer.encode(text)
                ranges = byte_ranges(text, encoding.offsets)
                file.write(" ".join(f"{i}:{start}:{end}" for i, (start, end) in zip(encoding.ids, ranges, strict=True)) + "\n")
    with open(os.path.join(folder, "lines.jsonl"), "w") as file:
        file.writelines(json.dumps(text) + "\n" for text in chosen)


if __name__ == "__main__":
    main(*sys.argv[1:])
