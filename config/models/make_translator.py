#!/usr/bin/env python3
"""Trains the default translator: BART's layout, English to French, on sentences of the grammar below.

    make_translator.py [DIRECTORY]      (default: english-french beside this script)

Writes config.json, tokenizer.json, model.safetensors in bfloat16 and held-out.tsv: sentences that were not
trained on, with their translations. Prints how many of them it translates rightly, word for word, by taking
the likeliest next token again and again. Minutes on two cores.

One cross-attention head of the last layer is guided: from each French token it learns to look at the English words
that mean it, which the grammar knows (guided alignment: Chen, Matusov, Khadivi, Peter 2016). The other heads look
where they like.
"""
import random
import sys
from pathlib import Path

import torch
from tokenizers import processors
from transformers import BartConfig, BartForConditionalGeneration

import training

SEED = 1791
VOCABULARY, POSITIONS, WIDTH, INNER, LAYERS, HEADS = 704, 40, 96, 192, 2, 4
STEPS, BATCH, RATE, DROPOUT = 1500, 96, 3e-3, 0.1
ALIGNMENT_HEAD, GUIDANCE = 0, 0.05  # of the last layer; weight of its loss beside the translation's
SENTENCES, HELD_OUT, HELD_OUT_KEPT = 40000, 1000, 200
START, PAD, END = "<s>", "<pad>", "</s>"
SPECIAL = [START, PAD, END]

# English, French, person (index of the verb's form), third person singular in English.
SUBJECTS = [
    ("I", "je", 0, False), ("you", "vous", 1, False), ("he", "il", 2, True), ("she", "elle", 2, True),
    ("we", "nous", 3, False), ("they", "ils", 4, False), ("Alice", "Alice", 2, True),
    ("Paul", "Paul", 2, True), ("Marie", "Marie", 2, True),
]
# English, English third person, French by person, what it takes.
VERBS = [
    ("speak", "speaks", "parle parlez parle parlons parlent", "language"),
    ("understand", "understands", "comprends comprenez comprend comprenons comprennent", "the language"),
    ("study", "studies", "étudie étudiez étudie étudions étudient", "the language"),
    ("like", "likes", "aime aimez aime aimons aiment", "the language, thing"),
    ("see", "sees", "vois voyez voit voyons voient", "thing"),
    ("want", "wants", "veux voulez veut voulons veulent", "thing"),
    ("buy", "buys", "achète achetez achète achetons achètent", "thing"),
    ("sell", "sells", "vends vendez vend vendons vendent", "thing"),
    ("find", "finds", "trouve trouvez trouve trouvons trouvent", "thing"),
    ("look for", "looks for", "cherche cherchez cherche cherchons cherchent", "thing"),
    ("draw", "draws", "dessine dessinez dessine dessinons dessinent", "thing"),
    ("hide", "hides", "cache cachez cache cachons cachent", "thing"),
]
LANGUAGES = [
    ("French", "français"), ("English", "anglais"), ("German", "allemand"), ("Spanish", "espagnol"),
    ("Italian", "italien"), ("Russian", "russe"), ("Greek", "grec"), ("Chinese", "chinois"),
]
# English, French, feminine.
NOUNS = [
    ("book", "livre", False), ("letter", "lettre", True), ("flower", "fleur", True),
    ("house", "maison", True), ("garden", "jardin", False), ("dog", "chien", False),
    ("cat", "chat", False), ("rabbit", "lapin", False), ("apple", "pomme", True),
    ("cake", "gâteau", False), ("key", "clef", True), ("watch", "montre", True), ("door", "porte", True),
    ("table", "table", True), ("car", "voiture", True), ("hat", "chapeau", False),
]
# English, French masculine, feminine, whether it stands before the noun.
ADJECTIVES = [
    ("small", "petit", "petite", True), ("big", "grand", "grande", True), ("pretty", "joli", "jolie", True),
    ("red", "rouge", "rouge", False), ("black", "noir", "noire", False), ("green", "vert", "verte", False),
    ("white", "blanc", "blanche", False),
]
DETERMINERS = [
    ("the", "le", "la"), ("a", "un", "une"), ("my", "mon", "ma"), ("your", "votre", "votre"),
    ("this", "ce", "cette"),
]
ENDINGS = [
    ("", ""), ("", ""), ("", ""), ("today", "aujourd'hui"), ("every day", "tous les jours"),
    ("here", "ici"), ("in the evening", "le soir"), ("with Paul", "avec Paul"),
]
VOWELS = "aeiouéèêh"

# A text under construction is a list of pieces (text, link): pieces of both languages that mean each other have
# the same link, which is what guides the alignment head.
SUBJECT, VERB, NEGATION, ARTICLE, ADJECTIVE, NOUN, ENDING, STOP = range(8)


def elided(word, following):
    """"je", "ne", "le", "de" lose their vowel before another."""
    return word[:-1] + "'" if following[0].lower() in VOWELS else word + " "


def language(draw, article):
    english, french = draw.choice(LANGUAGES)
    before = [(elided("le", french), NOUN)] if article else []
    return [(english, NOUN)], [*before, (french, NOUN)]


def thing(draw, negative):
    english, french, feminine = draw.choice(NOUNS)
    determiner, masculine_form, feminine_form = draw.choice(DETERMINERS)
    left, right = [(english, NOUN)], [(french, NOUN)]
    if draw.random() < 0.4:
        adjective, masculine, feminine_adjective, before = draw.choice(ADJECTIVES)
        left.insert(0, (adjective + " ", ADJECTIVE))
        agreed = feminine_adjective if feminine else masculine
        right = [(agreed + " ", ADJECTIVE), *right] if before else [*right, (" " + agreed, ADJECTIVE)]
    article = feminine_form if feminine else masculine_form
    if determiner == "a" and negative:
        article = "de"
    return [(determiner + " ", ARTICLE), *left], [(article + " ", ARTICLE), *right]


def french_clause(subject, verb, negative):
    if negative:
        return [(subject + " ", SUBJECT), (elided("ne", verb), NEGATION), (verb + " ", VERB), ("pas", NEGATION)]
    return [(elided("je", verb) if subject == "je" else subject + " ", SUBJECT), (verb, VERB)]


def capitalised(pieces):
    (first, link), *rest = pieces
    return [(first[0].upper() + first[1:], link), *rest]


def sentence(draw):
    """An English sentence and its French translation, in pieces."""
    subject, sujet, person, third = draw.choice(SUBJECTS)
    plain, with_s, forms, takes = draw.choice(VERBS)
    negative = draw.random() < 0.5
    kind = draw.choice(takes.split(", "))
    left_object, right_object = thing(draw, negative) if kind == "thing" else language(draw, kind == "the language")
    ending, fin = draw.choice(ENDINGS)
    tail = [("." if draw.random() < 0.5 else "", STOP)]
    refusal = [("doesn't " if third else "don't ", NEGATION)] if negative else []
    verb = with_s if third and not negative else plain
    left = [(subject + " ", SUBJECT), *refusal, (verb + " ", VERB), *left_object, (ending and " " + ending, ENDING), *tail]
    clause = french_clause(sujet, forms.split()[person], negative)
    right = [*clause, (" ", VERB), *right_object, (fin and " " + fin, ENDING), *tail]
    return capitalised(left), capitalised(right)


def text_of(pieces):
    return "".join(text for text, _ in pieces)


def draw_sentences():
    """Sentences to train on, and others, none of which is among the first, with or without a full stop."""
    draw = random.Random(SEED)
    shown = ([("I ", SUBJECT), ("don't ", NEGATION), ("speak ", VERB), ("French", NOUN)],
             [*capitalised(french_clause("je", "parle", True)), (" ", VERB), ("français", NOUN)])
    pairs = {text_of(shown[0]): shown}
    while len(pairs) < SENTENCES + HELD_OUT:
        english, french = sentence(draw)
        pairs.setdefault(text_of(english).rstrip("."), (english, french))
    pairs = list(pairs.values())
    return pairs[HELD_OUT:], pairs[:HELD_OUT]


def encoded(tokenizer, pieces):
    """(tokens, the link of each: that of its last character; -1 for special tokens)."""
    links = [link for text, link in pieces for _ in text]
    encoding = tokenizer.encode(text_of(pieces))
    return encoding.ids, [links[end - 1] if end > 0 else -1 for _, end in encoding.offsets]


def guidance(weights, source_links, target_links):
    """How far a head [batch, targets, sources] is from looking, from each token, at those that mean it."""
    means = (target_links[:, :, None] == source_links[:, None, :]) & (target_links[:, :, None] >= 0)
    shares = (weights * means).sum(-1)[means.any(-1)]
    return -torch.log(shares + 1e-6).mean()


def padded(rows, pad):
    length = max(len(row) for row in rows)
    return torch.tensor([row + [pad] * (length - len(row)) for row in rows])


def translate(model, source, start, end):
    """The likeliest next token, again and again, for one sentence."""
    target = [start]
    with torch.no_grad():
        encoded = model.get_encoder()(input_ids=torch.tensor([source]))
        while target[-1] != end and len(target) < POSITIONS:
            logits = model(encoder_outputs=encoded, decoder_input_ids=torch.tensor([target])).logits
            target.append(int(logits[0, -1].argmax()))
    return target[1:-1] if target[-1] == end else target[1:]


def main():
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent / "english-french"
    torch.manual_seed(SEED)
    trained, held_out = draw_sentences()
    tokenizer = training.train_tokenizer((text_of(part) for pair in trained for part in pair), VOCABULARY, SPECIAL)
    start, pad, end = (tokenizer.token_to_id(token) for token in SPECIAL)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{START} $A {END}", special_tokens=[(START, start), (END, end)])
    pairs = [(encoded(tokenizer, english), encoded(tokenizer, french)) for english, french in trained]
    config = BartConfig(
        vocab_size=VOCABULARY, max_position_embeddings=POSITIONS, d_model=WIDTH, encoder_layers=LAYERS,
        decoder_layers=LAYERS, encoder_attention_heads=HEADS, decoder_attention_heads=HEADS,
        encoder_ffn_dim=INNER, decoder_ffn_dim=INNER, dropout=DROPOUT, attention_dropout=DROPOUT,
        bos_token_id=start, pad_token_id=pad, eos_token_id=end, decoder_start_token_id=start,
        forced_eos_token_id=None, attn_implementation="eager",
    )
    model = BartForConditionalGeneration(config)
    draw = random.Random(SEED + 1)

    def loss_of(step):
        chosen = [draw.choice(pairs) for _ in range(BATCH)]
        source = padded([tokens for (tokens, _), _ in chosen], pad)
        done = model(
            input_ids=source, attention_mask=(source != pad).long(),
            decoder_input_ids=padded([tokens[:-1] for _, (tokens, _) in chosen], pad),
            labels=padded([tokens[1:] for _, (tokens, _) in chosen], -100), output_attentions=True,
        )
        guided = guidance(done.cross_attentions[-1][:, ALIGNMENT_HEAD],
                          padded([links for (_, links), _ in chosen], -1),
                          padded([links[:-1] for _, (_, links) in chosen], -1))
        return done.loss + GUIDANCE * guided

    training.train(model, loss_of, STEPS, RATE, decay=0.01)
    training.round_to_bfloat16(model)
    right = 0
    texts = [(text_of(english), text_of(french)) for english, french in held_out]
    for english, french in texts:
        said = tokenizer.decode(translate(model, tokenizer.encode(english).ids, start, end))
        right += said == french
        if said != french:
            print(f"{english} -> {said} (should be {french})")
    print(f"{right} of {len(held_out)} held-out sentences translated rightly")
    kept = {
        "architectures": ["BartForConditionalGeneration"], "model_type": "bart", "vocab_size": VOCABULARY,
        "max_position_embeddings": POSITIONS, "d_model": WIDTH, "encoder_layers": LAYERS,
        "decoder_layers": LAYERS, "encoder_attention_heads": HEADS, "decoder_attention_heads": HEADS,
        "encoder_ffn_dim": INNER, "decoder_ffn_dim": INNER,
        "activation_function": config.activation_function, "scale_embedding": False,
        "tie_word_embeddings": True, "bos_token_id": start, "pad_token_id": pad, "eos_token_id": end,
        "decoder_start_token_id": start, "torch_dtype": "bfloat16",
    }
    tied = {"lm_head.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"}
    training.save(model, tokenizer, kept, directory, tied)
    lines = [f"{english}\t{french}\n" for english, french in texts[:HELD_OUT_KEPT]]
    (directory / "held-out.tsv").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
