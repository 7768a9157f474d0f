"""Compares the daemon's tokenizers with the reference implementation on the sample of make_sample.py.

    compare.py ENCODER FOLDER...       each folder with a tokenizer.json

Prints a line a folder, `NAME ids AGREE of LINES, offsets AGREE, decoded AGREE`, and the first disagreements; exit 1 with any.
"""
import json
import subprocess
import sys

from make_sample import sample
from tokenizers import Tokenizer


def ours(encoder, folder, lines, *what):
    text = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run([encoder, folder, *what], input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{folder}: {done.stderr.strip()}")
    return done.stdout.split("\n")[:-1]


def byte_ranges(text, offsets):
    """Offsets in characters as offsets in bytes."""
    places = [0]
    for character in text:
        places.append(places[-1] + len(character.encode()))
    return [(places[start], places[end]) for start, end in offsets]


def load(folder):
    tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def parse(row):
    if row.startswith("!"):
        return row, row
    tokens = [tuple(map(int, token.split(":"))) for token in row.split()]
    return [token[0] for token in tokens], [token[1:] for token in tokens]


def compare(encoder, folder, lines, reference=None, show=3):
    """How many lines agree in ids, in offsets, and in what the ids decode to."""
    tokenizer = reference or load(folder)
    counts, shown = [0, 0, 0], 0
    wanted = [tokenizer.encode(line) for line in lines]
    plain = [tokenizer.encode(line, add_special_tokens=False).ids for line in lines]
    decoded = ours(encoder, folder, [encoding.ids for encoding in wanted], "decode")
    bare = ours(encoder, folder, lines, "plain")
    for line, encoding, row, text, ids, without in zip(lines, wanted, ours(encoder, folder, lines), decoded, plain, bare, strict=True):
        good = [parse(row)[0] == encoding.ids and parse(without)[0] == ids,
                parse(row)[1] == byte_ranges(line, encoding.offsets),
                json.loads(text) == tokenizer.decode(encoding.ids) if not text.startswith("!") else False]
        counts = [count + yes for count, yes in zip(counts, good, strict=True)]
        if not all(good) and shown < show:
            shown += 1
            print(f"  {line!r}\n    wanted {list(zip(encoding.ids, encoding.tokens, byte_ranges(line, encoding.offsets)))}\n"
                  f"    found  {row}\n    decoded {text} wanted {tokenizer.decode(encoding.ids)!r}")
    return counts


def main(encoder, *folders):
    lines, failed = sample(), False
    for folder in folders:
        ids, offsets, decoded = compare(encoder, folder, lines)
        print(f"{folder} ids {ids} of {len(lines)}, offsets {offsets}, decoded {decoded}", flush=True)
        failed |= min(ids, offsets, decoded) < len(lines)
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
