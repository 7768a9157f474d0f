"""One whole layer against ONNX Runtime, torch and OpenVINO: width 768, 12 heads, self-attention, float32, one thread.

Each peer runs in a process of its own. In every round our layer is timed right before each peer; a ratio is the median over
rounds of the ratio in each. `--pythons` lists the interpreters to look for peers in, in this order.
"""
import argparse
import statistics
import tempfile
from pathlib import Path

import bench
from timer import Timer

WIDTH, HEADS = 768, 12
PEERS = {"onnxruntime": ("onnxruntime", "onnx"), "torch": ("torch",), "openvino": ("openvino", "onnx")}  # and what they import
ROUNDS = {16: 7, 32: 7, 128: 7, 512: 7, 1024: 5, 2048: 3, 4096: 3}
LEAST = {True: {16: 1, 32: 1, 128: 1, 512: 1.1, 1024: 1.1, 2048: 1.25, 4096: 1.25}, False: {}}  # by weights, length; else 1
SLICE = 0.03  # processor seconds of one process in one round, at least


def work(length):
    """Floating point operations of one layer."""
    return 8 * length * WIDTH**2 + 4 * length**2 * WIDTH


def compare(ours, peers, length, weights):
    """Rounds of (our seconds, a peer's) by peer, and the way each peer took."""
    rounds, ways = {name: [] for name in peers}, {}
    for _ in range(ROUNDS[length]):
        for name, peer in peers.items():
            mine, _ = ours.seconds(length, weights, SLICE)
            its, ways[name] = peer.seconds(length, weights, SLICE)
            rounds[name].append((mine, its))
    return rounds, ways


def report(ours, peers, length, weights):
    rounds, ways = compare(ours, peers, length, weights)
    gflop = 1e-9 * work(length)
    mine = statistics.median(pair[0] for pairs in rounds.values() for pair in pairs)
    title = f"L {length:4}, {'per-head weights' if weights else 'context only'}"
    bench.row(f"{title}: attnd", gflop / mine, "GFLOP/s")
    speed = {name: gflop / statistics.median(its for _, its in pairs) for name, pairs in rounds.items()}
    best = max(speed, key=speed.get)
    for name, value in speed.items():
        bench.row(f"{title}: {name}, {ways[name]}", value, "GFLOP/s")
    ratio = statistics.median(its / mine for mine, its in rounds[best])
    bench.target(f"{title}: attnd / {best}", ratio, "times", least=LEAST[weights].get(length, 1))


def report_alone(ours, length, weights):
    seconds = statistics.median(ours.seconds(length, weights, SLICE)[0] for _ in range(ROUNDS[length]))
    bench.row(f"L {length:4}, {'per-head weights' if weights else 'context only'}: attnd",
              1e-9 * work(length) / seconds, "GFLOP/s")


def report_two_threads(ours):
    """Wall time of one call on one thread and on two."""
    for length in (128, 512, 2048):
        pairs = [tuple(ours.seconds(length, False, 3 * SLICE, threads)[0] for threads in (1, 2))
                 for _ in range(2 * ROUNDS[length] + 1)]
        bench.target(f"L {length:4}, context only: wall time on one thread / on two", statistics.median(a / b for a, b in pairs),
                     "times", least=1.8)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--pythons", nargs="*", default=["python3"])
    parser.add_argument("--lengths", nargs="*", type=int, default=list(ROUNDS))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench.write_mha_model(Path(folder) / "layer", WIDTH, HEADS)
        ours = Timer([Path(args.build) / "tests/bench/bench_ours", Path(folder) / "layer"])
        print(f"one layer: width {WIDTH}, {HEADS} heads, one sequence, flops = 8 L E^2 + 4 L^2 E, medians of rounds")
        print(f"  {ours.version}, one thread")
        peers = bench.start_peers(PEERS, args.pythons, "layer")
        for length in args.lengths:
            for weights in (True, False):
                if peers:
                    report(ours, peers, length, weights)
                else:
                    report_alone(ours, length, weights)
        if bench.cpus() > 1:
            report_two_threads(ours)
        for timer in (ours, *peers.values()):
            timer.stop()


if __name__ == "__main__":
    main()
