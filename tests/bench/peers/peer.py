"""What the peers share: a layer's random weights, and the loop that times what it is asked for on standard input.

A line `LENGTH NUMBER SECONDS` (of a layer, 1 for per-head weights among the results, else 0; of a model, the batch) is
answered with the processor seconds of one run, over at least SECONDS of runs, and with the name of the way that was timed: a
peer that has several ways to compute the same keeps the one that took least when the shape was first asked for.
"""
import sys
import time

import numpy

WIDTH, HEADS = 768, 12
HEAD = WIDTH // HEADS


def layer_weights():
    """(in [E, 3E], its bias, out [E, E], its bias), as x W takes them."""
    generator = numpy.random.default_rng(1)
    bound = (3 / WIDTH) ** 0.5

    def uniform(*shape):
        return generator.uniform(-bound, bound, shape).astype(numpy.float32)

    return uniform(WIDTH, 3 * WIDTH), uniform(3 * WIDTH), uniform(WIDTH, WIDTH), uniform(WIDTH)


def sequence(length):
    """[1, length, E]"""
    return numpy.random.default_rng(length).uniform(-1, 1, (1, length, WIDTH)).astype(numpy.float32)


def timed(run, least):
    """Processor seconds of one run; at least `least` seconds of runs."""
    begun, runs = time.process_time(), 0
    while True:
        run()
        runs += 1
        passed = time.process_time() - begun
        if passed >= least:
            return passed / runs


def serve(version, ways):
    """ways(length, number) gives [(name, run)]. The first line of output is the version."""
    print(version, flush=True)
    current = None
    for line in sys.stdin:
        length, number, least = line.split()
        if current is None or current[:2] != (length, number):
            current = None  # frees what the last shape held
            current = (length, number, fastest(ways(int(length), int(number))))
        name, run = current[2]
        print(timed(run, float(least)), name, flush=True)


def fastest(ways):
    if len(ways) == 1:
        ways[0][1]()
        return ways[0]
    for _, run in ways:
        run()
    return min(ways, key=lambda way: min(timed(way[1], 0.02) for _ in range(3)))
