"""MiniLM's shape with random weights: a BERT of 6 post-norm blocks, width 384, 12 heads, feed-forward 1536."""
import numpy

WIDTH, HEADS, LAYERS, INNER, VOCABULARY, POSITIONS = 384, 12, 6, 1536, 30522, 512
HEAD = WIDTH // HEADS
EPSILON = 1e-12


def weights():
    """{name: array}; matrices are [in, out]."""
    generator = numpy.random.default_rng(1)

    def normal(*shape):
        return generator.normal(0, 0.05, shape).astype(numpy.float32)

    def norm(name):
        return {f"{name}.weight": 1 + normal(WIDTH), f"{name}.bias": normal(WIDTH)}

    found = {"words": normal(VOCABULARY, WIDTH), "positions": normal(POSITIONS, WIDTH), **norm("norm")}
    for layer in range(LAYERS):
        for name, shape in (("packed", (WIDTH, 3 * WIDTH)), ("out", (WIDTH, WIDTH)), ("up", (WIDTH, INNER)),
                            ("down", (INNER, WIDTH))):
            found |= {f"{layer}.{name}.weight": normal(*shape), f"{layer}.{name}.bias": normal(shape[1])}
        found |= norm(f"{layer}.norm1") | norm(f"{layer}.norm2")
    return found


def tokens(length, batch):
    """[batch, length]"""
    return numpy.tile(numpy.arange(length, dtype=numpy.int64) * 7919 % VOCABULARY, (batch, 1))
