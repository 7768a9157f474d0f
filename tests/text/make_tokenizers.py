"""Small tokenizers in the layouts of well-known checkpoints, trained by the reference implementation.

    make_tokenizers.py FOLDER          each as FOLDER/NAME/tokenizer.json

The corpus is the sample of make_sample.py. Needs the package `tokenizers`.
"""
import os
import sys

from make_sample import sample
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

GPT4 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = GPT4.replace(r"\p{N}{1,3}", r"\p{N}")
CLIP = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
BYTES = pre_tokenizers.ByteLevel.alphabet()


def train(tokenizer, corpus, size=600, trainer=trainers.BpeTrainer, **settings):
    tokenizer.train_from_iterator(corpus, trainer(vocab_size=size, show_progress=False, **settings))
    return tokenizer


def special(*texts):
    return [AddedToken(text, special=True, normalized=False) for text in texts]


def around(tokenizer, single, *texts):
    tokenizer.post_processor = processors.TemplateProcessing(
        single=single, special_tokens=[(text, tokenizer.token_to_id(text)) for text in texts])


def bert(corpus, lower=True, accents=None):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower, strip_accents=accents)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    train(tokenizer, corpus, 1000, trainers.WordPieceTrainer, special_tokens=special(*names), limit_alphabet=400)
    around(tokenizer, "[CLS] $A [SEP]", "[CLS]", "[SEP]")
    return tokenizer


def gpt2(corpus, prefix=False):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    tokenizer.decoder = decoders.ByteLevel()
    train(tokenizer, corpus, special_tokens=special("<|endoftext|>"), initial_alphabet=BYTES)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=prefix)
    return tokenizer


def roberta(corpus, prefix=False):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    tokenizer.decoder = decoders.ByteLevel()
    names = [*special("<s>", "<pad>", "</s>", "<unk>"), AddedToken("<mask>", lstrip=True, special=True, normalized=False)]
    train(tokenizer, corpus, special_tokens=names, initial_alphabet=BYTES)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=prefix)
    return tokenizer


def clip(corpus):
    tokenizer = Tokenizer(models.BPE(unk_token="<|endoftext|>", end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(CLIP), behavior="removed", invert=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    train(tokenizer, corpus, special_tokens=special("<|startoftext|>", "<|endoftext|>"), initial_alphabet=BYTES,
          end_of_word_suffix="</w>")
    tokenizer.post_processor = processors.RobertaProcessing(
        ("<|endoftext|>", 1), ("<|startoftext|>", 0), trim_offsets=False, add_prefix_space=False)
    return tokenizer


def llama3(corpus):
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(GPT4), behavior="isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    train(tokenizer, corpus, initial_alphabet=BYTES)
    tokenizer.add_special_tokens(special("<|begin_of_text|>", "<|im_start|>", "<|im_end|>"))
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=True, add_prefix_space=False),
        processors.TemplateProcessing(single="<|begin_of_text|> $A", special_tokens=[
            ("<|begin_of_text|>", tokenizer.token_to_id("<|begin_of_text|>"))])])
    return tokenizer


def qwen2(corpus):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(QWEN2), behavior="isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    train(tokenizer, corpus, initial_alphabet=BYTES)
    tokenizer.add_special_tokens(special("<|endoftext|>", "<|im_start|>", "<|im_end|>"))
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer


def smollm2(corpus):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    return train(tokenizer, corpus, special_tokens=special("<|endoftext|>", "<|im_start|>", "<|im_end|>"), initial_alphabet=BYTES)


def llama2(corpus):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([
        decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    names = special("<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)))
    train(tokenizer, [text[:60] for text in corpus], 600, special_tokens=names, limit_alphabet=200)
    around(tokenizer, "<s> $A", "<s>")
    return tokenizer


def metaspace(corpus, scheme="first"):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=scheme == "always"))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme=scheme)
    return train(tokenizer, corpus, special_tokens=special("<unk>", "<s>"), limit_alphabet=200)


def words(corpus):
    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Sequence([
        normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Strip()])
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    train(tokenizer, corpus, 500, trainers.WordLevelTrainer, special_tokens=special("[UNK]"))
    tokenizer.add_tokens([AddedToken("Alice", single_word=True), AddedToken("sister", rstrip=True, lstrip=True), AddedToken("Été")])
    return tokenizer


def pieces(corpus):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="##"))
    tokenizer.normalizer = normalizers.NFD()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.Digits(),
        pre_tokenizers.Split("e", "merged_with_previous"), pre_tokenizers.Split(Regex("[aou]+"), "merged_with_next")])
    tokenizer.decoder = decoders.WordPiece(prefix="##", cleanup=False)
    return train(tokenizer, corpus, special_tokens=special("<unk>"), continuing_subword_prefix="##", limit_alphabet=400)


LAYOUTS = {
    "bert": bert,
    "bert_cased": lambda corpus: bert(corpus, lower=False),
    "bert_accents": lambda corpus: bert(corpus, accents=False),
    "gpt2": gpt2,
    "gpt2_prefix": lambda corpus: gpt2(corpus, prefix=True),
    "roberta": roberta,
    "roberta_prefix": lambda corpus: roberta(corpus, prefix=True),
    "clip": clip,
    "llama3": llama3,
    "qwen2": qwen2,
    "smollm2": smollm2,
    "llama2": llama2,
    "metaspace": metaspace,
    "metaspace_always": lambda corpus: metaspace(corpus, "always"),
    "words": words,
    "pieces": pieces,
}


def make(folder):
    corpus = sample()
    for name, layout in LAYOUTS.items():
        os.makedirs(os.path.join(folder, name), exist_ok=True)
        layout(corpus).save(os.path.join(folder, name, "tokenizer.json"), pretty=False)


if __name__ == "__main__":
    make(sys.argv[1])
