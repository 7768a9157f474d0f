"""Attention between words: two pictures in the terminal, from the two small models that come with attnd.

The weights of a word are those of its tokens added up; rows and columns are named by words. Python's standard
library only.
"""
import json
import urllib.request

SHADES = " ░▒▓█"
SENTENCE = "Alice was beginning to get very tired"
ENGLISH = "I don't speak French"
LONGEST_TRANSLATION = 32


def forward(url, model, **body):
    """The reply to POST /v1/models/{model}/forward."""
    request = urllib.request.Request(f"{url}/v1/models/{model}/forward", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as reply:
        return json.load(reply)


def byte_alphabet():
    """The character that stands for each byte in the tokens of a byte-level vocabulary (GPT-2's)."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = (byte for byte in range(256) if byte not in printable)
    return {chr(256 + index): byte for index, byte in enumerate(others)} | {chr(byte): byte for byte in printable}


def text_of(token_strings):
    """The text that tokens of a byte-level vocabulary spell."""
    alphabet = byte_alphabet()
    return bytes(alphabet[character] for token in token_strings for character in token).decode("utf-8", "replace")


def words_of(token_strings, special=("<s>", "</s>")):
    """[(word, its tokens' numbers)]: a token that begins with a space begins a word; special ones stand alone."""
    words = []
    for number, token in enumerate(token_strings):
        text = token if token in special else text_of([token])
        begins = not words or token in special or words[-1][0] in special or text[:1].isspace()
        if begins:
            words.append((text.strip(), [number]))
        else:
            words[-1] = (words[-1][0] + text, [*words[-1][1], number])
    return words


def word_weights(row, words):
    """One row of weights over tokens, added up by word."""
    return [sum(row[number] for number in numbers) for _, numbers in words]


def cell(weight, width, colour):
    """One weight, between 0 and 1, as a cell of that many columns; the larger, the darker or the brighter."""
    text = f"{weight:.2f}".center(width - 1)
    if not colour:
        return SHADES[min(len(SHADES) - 1, int(weight * len(SHADES)))] + text
    level = min(5, int(weight * 6))  # along the 6x6x6 colour cube from black through red to yellow
    background = 16 + 36 * min(5, level + (level > 0)) + 6 * max(0, level - 2)
    return f"\033[48;5;{background}m\033[38;5;{16 if level >= 4 else 231}m {text}\033[0m"


def table(names, words, rows, colour):
    """Lines: a row of cells for each name, under the words."""
    widths = [max(len(word) + 2, 7) for word, _ in words]
    left = max(len(name) for name in names)
    yield " " * (left + 4) + "".join(word.center(width) for (word, _), width in zip(words, widths))
    for name, row in zip(names, rows):
        yield f"  {name.rjust(left)}  " + "".join(cell(weight, width, colour) for weight, width in zip(row, widths))


def heads_from_last_word(url, colour):
    """Lines: for every head of the language model, where the last word of SENTENCE looks."""
    reply = forward(url, "alice", text=SENTENCE, outputs=["weights"], queries=[-1])
    words = words_of(reply["token_strings"])
    names, rows = [], []
    for layer, heads in enumerate(reply["weights"]):
        for head, queries in enumerate(heads):
            names.append(f"layer {layer} head {head}")
            rows.append(word_weights(queries[0], words))
    yield f'Where each head of the model "alice" looks from "{words[-1][0]}" in "{SENTENCE}"'
    yield from table(names, words, rows, colour)


def translate(url, text):
    """(tokens, their strings) of the translation: the likeliest next token again and again."""
    model = {"model": "english-french", "text": text, "top_logits": 1, "outputs": []}
    tokens, end = [0], 2  # <s>, </s>
    while tokens[-1] != end and len(tokens) < LONGEST_TRANSLATION:
        reply = forward(url, decoder_tokens=tokens, **model)
        tokens.append(reply["top_logits"]["indices"][0])
    return tokens


def cross_attention(url, text):
    """(words of the text, words of its translation, weights [layer][head][target words][source words])."""
    reply = forward(url, "english-french", text=text, decoder_tokens=translate(url, text), outputs=["weights"])
    source, target = words_of(reply["token_strings"]), words_of(reply["decoder_token_strings"])
    weights = [[[word_weights(head[numbers[0]], source) for _, numbers in target] for head in heads]
               for heads in reply["weights"]["cross"]]
    return source, target, weights


def column_of(words, wanted):
    return next(index for index, (word, _) in enumerate(words) if word == wanted)


def best_head(source, target, weights):
    """(layer, head) whose rows of "ne" and "pas" take most from "don't"."""
    column = column_of(source, "don't")
    rows = [column_of(target, word) for word in ("ne", "pas")]
    places = [(layer, head) for layer, heads in enumerate(weights) for head in range(len(heads))]
    return max(places, key=lambda place: sum(weights[place[0]][place[1]][row][column] for row in rows))


def negation(url, colour):
    """Lines: the cross-attention that carries "don't" into "ne … pas"."""
    source, target, weights = cross_attention(url, ENGLISH)
    layer, head = best_head(source, target, weights)
    translation = " ".join(word for word, _ in target[1:-1])
    yield f'How "don\'t" shapes "ne … pas": "{ENGLISH}" becomes "{translation}"'
    yield f"Cross-attention of layer {layer}, head {head}: a row for each French word, a column for each English one"
    yield from table([word for word, _ in target], source, weights[layer][head], colour)
