"""The tokenizer in a GGUF file's metadata as tokenizer.json, for the pre-tokenizers of SmolLM2 and GPT-2.

    gguf_tokenizer.py FILE.gguf FOLDER

Only the standard library is used.
"""
import json
import os
import struct
import sys

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
CONTROL, USER_DEFINED = 3, 4  # token types that are found in the text itself


class Reader:
    def __init__(self, file):
        self.file = file

    def scalar(self, letter):
        return struct.unpack("<" + letter, self.file.read(struct.calcsize("<" + letter)))[0]

    def value(self, kind):
        if kind == STRING:
            return self.file.read(self.scalar("Q")).decode()
        if kind == ARRAY:
            item, count = self.scalar("I"), self.scalar("Q")
            return [self.value(item) for _ in range(count)]
        return self.scalar(SCALARS[kind])


def metadata(path):
    with open(path, "rb") as file:
        reader = Reader(file)
        if file.read(4) != b"GGUF":
            raise SystemExit(f"{path}: not a GGUF file")
        reader.scalar("I"), reader.scalar("Q")
        count = reader.scalar("Q")
        pairs = {}
        for _ in range(count):
            name = reader.value(STRING)
            pairs[name] = reader.value(reader.scalar("I"))
        return pairs


def tokenizer(pairs):
    tokens, kinds = pairs["tokenizer.ggml.tokens"], pairs["tokenizer.ggml.token_type"]
    added = [{"id": i, "content": text, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
              "special": kind == CONTROL} for i, (text, kind) in enumerate(zip(tokens, kinds, strict=True))
             if kind in (CONTROL, USER_DEFINED)]
    bytes_ = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    digits = {"type": "Digits", "individual_digits": True}
    smol = pairs["tokenizer.ggml.pre"] == "smollm"
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [digits, bytes_]} if smol else bytes_,
        "post_processor": None, "decoder": bytes_,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "vocab": {text: i for i, text in enumerate(tokens)},
                  "merges": [merge.split(" ") for merge in pairs["tokenizer.ggml.merges"]]},
    }


def main(path, folder):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "tokenizer.json"), "w") as file:
        json.dump(tokenizer(metadata(path)), file, ensure_ascii=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
