"""A whole model: MiniLM's forward pass beside ONNX Runtime and torch, what batching gains, and what loading it takes.

The model is a BERT of 6 blocks, width 384, 12 heads, as all-MiniLM-L6-v2 is; its weights are random unless --model names a
directory with those of the real one.
"""
import argparse
import json
import math
import random
import statistics
import tempfile
import time
from array import array
from pathlib import Path

import bench
from timer import Timer

LAYERS, WIDTH, HEADS, INNER, VOCABULARY, POSITIONS = 6, 384, 12, 1536, 30522, 512
PEERS = {"onnxruntime": ("onnxruntime", "onnx"), "torch": ("torch",)}
CONFIG = {"model_type": "bert", "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
          "intermediate_size": INNER, "vocab_size": VOCABULARY, "max_position_embeddings": POSITIONS, "type_vocab_size": 2,
          "layer_norm_eps": 1e-12, "hidden_act": "gelu"}


def shapes():
    """Of the tensors, by name."""
    found = {"embeddings.word_embeddings.weight": [VOCABULARY, WIDTH], "embeddings.token_type_embeddings.weight": [2, WIDTH],
             "embeddings.position_embeddings.weight": [POSITIONS, WIDTH]}
    linears = {f"attention.self.{name}": (WIDTH, WIDTH) for name in ("query", "key", "value")} | {
        "attention.output.dense": (WIDTH, WIDTH), "intermediate.dense": (INNER, WIDTH), "output.dense": (WIDTH, INNER)}
    norms = ["embeddings.LayerNorm"]
    for layer in range(LAYERS):
        root = f"encoder.layer.{layer}"
        for name, (rows, columns) in linears.items():
            found |= {f"{root}.{name}.weight": [rows, columns], f"{root}.{name}.bias": [rows]}
        norms += [f"{root}.attention.output.LayerNorm", f"{root}.output.LayerNorm"]
    return found | {f"{norm}.{part}": [WIDTH] for norm in norms for part in ("weight", "bias")}


def write_model(directory):
    generator = random.Random(1)
    numbers = array("f", (generator.uniform(-0.1, 0.1) for _ in range(65521)))  # repeated: only their speed counts
    directory.mkdir(parents=True)
    tensors = {name: (shape, (numbers * (1 + math.prod(shape) // len(numbers)))[: math.prod(shape)])
               for name, shape in shapes().items()}
    bench.write_safetensors(directory / "model.safetensors", tensors)
    (directory / "config.json").write_text(json.dumps(CONFIG))


def work(length):
    """Floating point operations of one sequence's blocks."""
    return LAYERS * (8 * length * WIDTH**2 + 4 * length**2 * WIDTH + 4 * length * WIDTH * INNER)


def report_peers(args, ours, peers):
    for batch in (1, 8):
        rounds, ways = {name: [] for name in peers}, {}
        alone = []
        for _ in range(args.rounds):
            for name, peer in peers.items():
                mine, _ = ours.seconds(128, batch, args.seconds)
                its, ways[name] = peer.seconds(128, batch, args.seconds)
                rounds[name].append((mine, its))
            alone.append(ours.seconds(128, batch, args.seconds)[0])
        name = f"forward, L 128, batch {batch}"
        bench.row(f"{name}: attnd", 1e3 * statistics.median(alone), "ms")
        bench.row(f"{name}: attnd", 1e-9 * batch * work(128) / statistics.median(alone), "GFLOP/s")
        for peer in peers:
            bench.row(f"{name}: {peer}, {ways[peer]}", 1e3 * statistics.median(its for _, its in rounds[peer]), "ms")
        if peers:
            best = min(peers, key=lambda peer: statistics.median(its for _, its in rounds[peer]))
            ratio = statistics.median(its / mine for mine, its in rounds[best])
            bench.target(f"{name}: attnd / {best}", ratio, "times", least=1)


def report_batch(args, ours):
    """Eight sequences in one call against eight calls."""
    pairs = [(8 * ours.seconds(16, 1, args.seconds)[0], ours.seconds(16, 8, args.seconds)[0]) for _ in range(args.rounds)]
    bench.row("forward, L 16, eight sequences in one call", 1e3 * statistics.median(one for _, one in pairs), "ms")
    bench.row("forward, L 16, eight calls", 1e3 * statistics.median(eight for eight, _ in pairs), "ms")
    bench.target("forward, L 16: eight calls / one call of eight", statistics.median(a / b for a, b in pairs), "times", least=1.25)


def report_clients(args, models, folder):
    """Eight closed-loop clients on a daemon that batches and on one that computes their calls one by one."""
    body = Path(folder) / "tokens"
    body.write_text(json.dumps({"tokens": [7 * i for i in range(16)], "outputs": ["pooled"]}))
    workers = bench.spare_cpu_workers()
    with bench.Daemon(args.build, models, workers) as many, bench.Daemon(args.build, models, workers, "--max-batch", "1") as one:
        rounds = [[bench.load(args.build, daemon, "/v1/models/minilm/forward", body, 8, 8 * args.seconds)
                   for daemon in (many, one)] for _ in range(args.rounds)]
    batched, single = zip(*rounds)
    name = f"forward over HTTP, L 16, 8 clients, {workers} worker(s)"
    bench.row(f"{name}, batched", bench.median(batched, "per_second"), "1/s")
    bench.row(f"{name}, one by one", bench.median(single, "per_second"), "1/s")
    bench.row(f"{name}: mean batch", bench.median(batched, "batch"), "")
    bench.target(f"{name}: batched / one by one", bench.median_ratio(batched, single, "per_second"), "times", least=1.25)


def report_load(args, models, file_bytes):
    """From the start of the daemon to its first reply, and its memory then, with few workers and with many."""
    figures = {}
    for workers in (1, 8):
        begun = time.monotonic()
        with bench.Daemon(args.build, models, workers) as daemon:
            figures[workers] = (time.monotonic() - begun, daemon.memory("VmRSS"), daemon.memory("VmHWM"))
    bench.row("size of the model's file", file_bytes / 2**20, "MiB")
    bench.row("start of the daemon with the model, to the first reply", 1e3 * figures[1][0], "ms")
    bench.row("memory of the daemon with the model, one worker", figures[1][1], "MiB")
    bench.row("memory of the daemon with the model, eight workers", figures[8][1], "MiB")
    bench.row("memory while loading, the most", figures[1][2], "MiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--pythons", nargs="*", default=["python3"])
    parser.add_argument("--model", type=Path, help="directory of the real model")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.1, help="of one round, at least")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        models = Path(folder) / "models"
        if args.model:
            models.mkdir()
            (models / "minilm").symlink_to(args.model.resolve())
        else:
            write_model(models / "minilm")
        ours = Timer([Path(args.build) / "tests/bench/bench_forward", models / "minilm"])
        print(f"a whole model: MiniLM's shape, {'its own' if args.model else 'random'} weights, one thread, tokens to hidden states")
        print(f"  {ours.version}")
        peers = bench.start_peers(PEERS, args.pythons, "encoder")
        report_peers(args, ours, peers)
        report_batch(args, ours)
        for timer in (ours, *peers.values()):
            timer.stop()
        report_clients(args, models, folder)
        report_load(args, models, (models / "minilm/model.safetensors").stat().st_size)


if __name__ == "__main__":
    main()
