"""A multilingual sample of lines to try tokenizers on, always the same: one JSON string a line.

    make_sample.py [LINES] > sample.jsonl
"""
import json
import random
import sys

SEED, LINES = 20, 2000
SCRIPTS = {  # inclusive ranges of letters, and marks among them where a script has any
    "latin": [(0x61, 0x7A), (0x41, 0x5A)],
    "latin_accents": [(0xC0, 0xD6), (0xD8, 0xF6), (0xF8, 0x17F), (0x1E00, 0x1EF9)],
    "greek": [(0x391, 0x3A1), (0x3A3, 0x3CE), (0x1F00, 0x1F15)],
    "cyrillic": [(0x400, 0x481), (0x48A, 0x4FF)],
    "armenian": [(0x531, 0x556), (0x561, 0x587)],
    "hebrew": [(0x5D0, 0x5EA), (0x5B0, 0x5BD)],
    "arabic": [(0x620, 0x64A), (0x64B, 0x652), (0x671, 0x6D3)],
    "devanagari": [(0x904, 0x939), (0x93A, 0x94F), (0x958, 0x963)],
    "bengali": [(0x985, 0x98C), (0x993, 0x9A8), (0x9BE, 0x9C4)],
    "tamil": [(0xB8E, 0xB90), (0xBAE, 0xBB9), (0xBBE, 0xBC2)],
    "thai": [(0xE01, 0xE3A), (0xE40, 0xE4E)],
    "tibetan": [(0xF40, 0xF47), (0xF49, 0xF6C), (0xF71, 0xF7D)],
    "georgian": [(0x10D0, 0x10FA)],
    "ethiopic": [(0x1200, 0x1248)],
    "hiragana": [(0x3041, 0x3096), (0x3099, 0x309E)],
    "katakana": [(0x30A1, 0x30FE), (0xFF66, 0xFF9D)],
    "han": [(0x4E00, 0x9FA5), (0x3400, 0x4DB5), (0x20000, 0x20100), (0xF900, 0xFA2D)],
    "hangul": [(0xAC00, 0xD7A3), (0x1100, 0x1112), (0x1161, 0x1175), (0x11A8, 0x11C2)],
    "gothic": [(0x10330, 0x1034A)],
    "mathematical": [(0x1D400, 0x1D454), (0x1D7CE, 0x1D7FF)],
}
SPACES = [" ", "  ", "   ", "\t", "\n", "\r\n", "\n\n", "\u00a0", "\u2003", "\u3000", "\u200b", "\u2028", "\u0085", "\u1680",
          "\u180e", "\ufeff", " \n ", "\v", "\f"]
MARKS = [(0x300, 0x34E), (0x350, 0x362), (0x591, 0x5AF), (0x1AB0, 0x1ABD), (0x20D0, 0x20DC), (0xFE20, 0xFE2D)]
EMOJI = ["😀", "👍🏽", "👩‍💻", "👨‍👩‍👧‍👦", "🇫🇷", "🇯🇵🇰🇷", "❤️", "❤", "🏳️‍🌈", "✈️", "☎", "🤷🏿‍♀️", "1️⃣", "🧑🏻‍🚀", "🫠", "⌚", "🀄", "🎉🎊"]
CONTROLS = [*range(1, 9), 0xB, *range(0xE, 0x20), 0x7F, *range(0x80, 0xA0), 0xAD, 0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x202A,
            0x202E, 0x2060, 0x2066, 0xFEFF, 0xFFF9, 0xFFFD, 0xE000, 0xF8FF, 0xE0001, 0xE0041, 0xF0000, 0x10FFFD]
COMPATIBLE = list("ﬁﬂﬀﬃ①②⑳㎏㎞㏒½¼ⅨⅸＡｂｃ１２３ÅΩKıİſßẞŉǆǅªº™℠℡㍿㍑﷼﷽ﷺ…‥″‴‼⁉⁷₈ⁿ㆒ｶﾞﾊﾟ각힣 ｡､「」ﬅﬆ")
PUNCTUATION = list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~¡§«¶·»¿‐‑–—―‘’“”†‡•…‰′″‹›※、。〈〉《》「」【】〜・！，．：；？｡؟،؛।॥՚־፡᠁⸮⁂€£¥₹±×÷≠≤∞√∑")
DIGITS = ["0123456789", "٠١٢٣٤٥٦٧٨٩", "०१२३४५६७८९", "０１２３４５６７８９", "²³¹⁰", "ⅠⅡⅢⅣ", "①②③", "一二三", "𝟎𝟏𝟐", "൦൧൨"]
CONTRACTIONS = ["don't", "I'm", "we'll", "they've", "you're", "he'd", "it's", "DON'T", "I'M", "WE'LL", "IT'S", "don’t", "l'été",
                "aujourd'hui", "'s", "'S", "'ſ", "rock'n'roll", "''s", "o'clock", "'tis", "y'all'd've", " 're", "'Ll", "K'm"]
SPECIAL = ["<s>", "</s>", "<pad>", "<unk>", "<mask>", "[CLS]", "[SEP]", "[MASK]", "[UNK]", "<|endoftext|>", "<|im_start|>", "<|im_end|>",
           "<|startoftext|>", "<|begin_of_text|>", "[mask]", "<S>", "< s >", "a<mask>b", " <mask> ", "[MASK].", "<extra word>"]
CODE = ["for (int i = 0; i < n; i++) {\n\tx[i] += 2.5e-3;\n}", "def f(x):\n    return x ** 2  # square", "https://a.example/b?c=d&e=%20#f",
        "SELECT * FROM t WHERE a >= 10;", "printf(\"%d\\n\", x);", "<div class=\"a\">\n  <p>b</p>\n</div>", "a_b_c = camelCaseName",
        "user@host.example", "C:\\temp\\x.txt", "$x = @{a=1};", "x->y::z<T>&&", "1,234.56", "3.14159", "0xFF", "v1.2.3-rc4", "\\alpha^{2}_{i}"]
ENGLISH = ("Alice was beginning to get very tired of sitting by her sister on the bank and of having nothing to do once or twice she had "
           "peeped into the book her sister was reading but it had no pictures or conversations in it unaffable transformers").split()
FRENCH = "Ça était déjà très naïf à Noël où l'œuvre coûte cœur garçon élève août maïs".split()


class Maker:
    def __init__(self):
        self.random = random.Random(SEED)

    def pick(self, values):
        return values[self.random.randrange(len(values))]

    def number(self, low, high):
        return low + self.random.randrange(high - low + 1)

    def point(self, ranges):
        return chr(self.number(*self.pick(ranges)))

    def word(self, script=None, most=9):
        ranges = SCRIPTS[script or self.pick(list(SCRIPTS))]
        return "".join(self.point(ranges) for _ in range(self.number(1, most)))

    def words(self, make, most=9, gap=None):
        text = ""
        for i in range(self.number(1, most)):
            text += ("" if i == 0 else gap or self.pick(SPACES)) + make()
        return text

    def line(self):
        script = self.pick(list(SCRIPTS))
        kinds = [
            lambda: self.words(lambda: self.pick(ENGLISH), 14, " "),
            lambda: self.words(lambda: self.pick(FRENCH), 12, " "),
            lambda: self.words(lambda: self.word(script), 8, " "),
            lambda: self.words(lambda: self.word("han", 12), 3),
            lambda: self.words(lambda: self.word("latin_accents"), 8, " "),
            lambda: self.words(self.word),
            lambda: self.words(lambda: self.pick(EMOJI), 7, self.pick(["", " "]) or None),
            lambda: self.words(self.stacked, 5, " "),
            lambda: self.words(self.controlled, 6, " "),
            lambda: self.words(lambda: self.pick(CONTRACTIONS), 8, " "),
            lambda: self.words(lambda: self.pick(SPECIAL), 5, self.pick(["", " ", "  "]) or None),
            lambda: self.words(lambda: self.pick(COMPATIBLE) + self.word("latin", 3), 9, " "),
            lambda: self.words(self.digits, 7, " "),
            lambda: self.pick(CODE) + self.pick(SPACES) + self.pick(CODE),
            lambda: "".join(self.pick(SPACES) for _ in range(self.number(1, 30))) + self.pick(["", "x", "."]),
            lambda: "".join(self.pick(PUNCTUATION) for _ in range(self.number(1, 25))),
            lambda: self.long(script),
            lambda: self.mixed(),
            lambda: self.mixed(),
            lambda: self.pick(SPACES) + self.words(lambda: self.pick(ENGLISH), 6) + self.pick(SPACES),
        ]
        return self.pick(kinds)()

    def stacked(self):
        return "".join(self.point(SCRIPTS["latin"]) + "".join(self.point(MARKS) for _ in range(self.number(0, 6)))
                       for _ in range(self.number(1, 4)))

    def controlled(self):
        return self.word("latin", 4) + chr(self.pick(CONTROLS)) + self.word("latin", 4)

    def digits(self):
        return "".join(self.pick(self.pick(DIGITS)) if self.number(0, 9) == 0 else self.pick(DIGITS[0])
                       for _ in range(self.number(1, 9)))

    def long(self, script):
        kind = self.number(0, 5)
        length = self.pick([90, 99, 100, 101, 150, 400, 1500])
        if kind == 0:
            return self.pick(ENGLISH)[0] * length
        if kind == 1:
            return "".join(self.pick(ENGLISH) for _ in range(length // 5))
        if kind == 2:
            return self.pick(["=", "-", ".", " ", "\n", "!?", "😀", "\u0301"]) * length
        return "".join(self.point(SCRIPTS[script]) for _ in range(length))

    def mixed(self):
        parts = [lambda: self.word(), lambda: self.pick(EMOJI), lambda: self.pick(PUNCTUATION), lambda: self.pick(SPACES),
                 lambda: self.pick(COMPATIBLE), self.digits, lambda: self.pick(CONTRACTIONS), self.stacked, self.controlled,
                 lambda: self.pick(SPECIAL), lambda: self.pick(ENGLISH), lambda: self.pick(FRENCH), lambda: " "]
        return "".join(self.pick(parts)() for _ in range(self.number(1, 18)))


def sample(lines=LINES):
    maker = Maker()
    return ["", " ", "\n", "a", "\u0301", "\u3000", *(maker.line() for _ in range(lines - 6))]


if __name__ == "__main__":
    for text in sample(int(sys.argv[1]) if len(sys.argv) > 1 else LINES):
        print(json.dumps(text, ensure_ascii=False))
