"""The small trained models: what their cards say of them holds when the daemon runs them."""
import math
import re
import subprocess
import sys

import pytest
import words
from daemon import ROOT, SLOW, Daemon

MODELS = ROOT / "config" / "models"
BOOK = ROOT / ".." / "shared" / "data" / "text" / "alice29.txt"
POSITIONS = 128


@pytest.fixture(scope="module")
def url():
    with Daemon() as daemon:
        yield f"http://127.0.0.1:{daemon.port}"


def card_says(model, pattern):
    return re.search(pattern, (MODELS / model / "README.md").read_text())[1]


def held_out_paragraphs():
    """The last tenth of the book, as the training script cuts it."""
    book = BOOK.read_text(encoding="ascii", errors="ignore")
    blocks = [[line.strip() for line in block.splitlines() if line.strip()]
              for block in re.split(r"\n\s*\n", book[book.index("CHAPTER I"):])]
    paragraphs = [re.sub(r" +", " ", " ".join(lines)) for lines in blocks if lines and not set("".join(lines)) <= set("* ")]
    return "\n".join(paragraphs[len(paragraphs) * 9 // 10:])


def tokens_of(url, text, most=100):
    """Its tokens, asked for in pieces that begin with a space, as words do in this vocabulary."""
    pieces = [""]
    for word in re.split(r"(?<=\S)(?= \S)", text):
        if len(pieces[-1]) + len(word) > most:
            pieces.append("")
        pieces[-1] += word
    return [token for piece in pieces for token in words.forward(url, "alice", text=piece, outputs=[])["tokens"]]


def token_losses(logits, tokens):
    """-log p of each token after the first, from logits at the one before it."""
    for row, token in zip(logits, tokens[1:]):
        largest = max(row)
        yield largest + math.log(sum(math.exp(x - largest) for x in row)) - row[token]


@pytest.mark.skipif(not BOOK.exists(), reason="the book is not there: ../shared/data/text/alice29.txt")
def test_the_language_model_has_the_loss_its_card_says(url):
    tokens = tokens_of(url, held_out_paragraphs())
    losses = []
    for start in range(0, len(tokens) - POSITIONS, POSITIONS):
        window = tokens[start:start + POSITIONS]
        losses += token_losses(words.forward(url, "alice", tokens=window, outputs=["logits_all"])["logits_all"], window)
    assert sum(losses) / len(losses) == pytest.approx(float(card_says("alice", r"(\d\.\d+) nats")), abs=0.15)


def test_sentences_held_out_whole_are_translated_rightly_nine_times_in_ten(url):
    pairs = [line.split("\t") for line in (MODELS / "english-french/held-out.tsv").read_text().splitlines()]
    if SLOW > 1:
        pairs = pairs[:20]
    right = 0
    for english, french in pairs:
        tokens = words.translate(url, english)
        reply = words.forward(url, "english-french", text=english, decoder_tokens=tokens, outputs=[])
        right += words.text_of(reply["decoder_token_strings"][1:-1]) == french
    assert len(pairs) >= 20
    assert right >= 0.9 * len(pairs), f"{right} of {len(pairs)}"


def test_some_head_looks_from_ne_or_pas_at_dont(url):
    source, target, weights = words.cross_attention(url, words.ENGLISH)
    column = words.column_of(source, "don't")
    rows = [words.column_of(target, word) for word in ("ne", "pas")]
    peaks = [row for heads in weights for head in heads for row in rows if max(head[row]) == head[row][column]]
    assert peaks, weights


def test_the_pictures_name_words_and_can_be_read_without_colour(url):
    lines = [*words.heads_from_last_word(url, False), *words.negation(url, False)]
    assert sum(line.startswith("  layer ") for line in lines) == 16
    text = "\n".join(lines)
    for word in ("Alice", "beginning", "tired", "don't", "ne", "pas", "Je ne parle pas français"):
        assert word in text
    assert "\033" not in text
    assert "\033[48;5;" in "\n".join(words.negation(url, True))


def test_tokens_of_a_byte_level_vocabulary_spell_their_text():
    assert words.text_of(["Je", "Ġparle", "ĠfranÃ§ais"]) == "Je parle français"
    assert words.words_of(["<s>", "I", "Ġdon", "'t", "Ġspeak", "</s>"]) == [
        ("<s>", [0]), ("I", [1]), ("don't", [2, 3]), ("speak", [4]), ("</s>", [5])]


def example(name, *arguments):
    """What an example of the Python client prints."""
    environment = {"PYTHONPATH": str(ROOT / "clients/python/src"), "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1",
                   "PYTHONUTF8": "1"}
    done = subprocess.run([sys.executable, ROOT / "clients/python/examples" / name, *arguments], capture_output=True,
                          text=True, env=environment, timeout=60 * SLOW)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_region_example_names_each_places_word(tmp_path):
    example("unet_scene.py", tmp_path / "unet-scene")
    with Daemon("--models", tmp_path) as daemon:
        printed = example("regions.py", "--url", f"http://127.0.0.1:{daemon.port}")
    assert printed.startswith("sun ")
    assert int(re.search(r"(\d+) of 64 places", printed)[1]) >= 60, printed


def test_the_picture_of_every_head_is_drawn(url, tmp_path):
    picture = tmp_path / "heads.png"
    assert "4 layers of 4 heads over" in example("head_map.py", "--url", url, "--out", picture)
    header = picture.read_bytes()[:24]
    assert header[:8] == b"\x89PNG\r\n\x1a\n"
    assert min(int.from_bytes(header[16:20], "big"), int.from_bytes(header[20:24], "big")) > 500
