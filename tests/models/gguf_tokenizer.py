"""The tokenizer in a GGUF file's metadata, as tokenizer.json has it: byte-level BPE as GPT-2 and SmolLM2 cut it."""

CONTROL, USER_DEFINED = 3, 4  # types of tokens that are found in the text itself
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
DIGITS = {"type": "Digits", "individual_digits": True}
PRE_TOKENIZERS = {"gpt-2": BYTES, "smollm": {"type": "Sequence", "pretokenizers": [DIGITS, BYTES]}}


def tokenizer_json(metadata):
    tokens, kinds = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.token_type"]
    added = [{"id": i, "content": text, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
              "special": kind == CONTROL} for i, (text, kind) in enumerate(zip(tokens, kinds, strict=True))
             if kind in (CONTROL, USER_DEFINED)]
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
        "pre_tokenizer": PRE_TOKENIZERS[metadata["tokenizer.ggml.pre"]], "post_processor": None, "decoder": BYTES,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "vocab": {text: i for i, text in enumerate(tokens)},
                  "merges": [merge.split(" ") for merge in metadata["tokenizer.ggml.merges"]]},
    }
