"""What batching does for a loaded daemon, what it costs a single client, and whether health answers meanwhile.

Two daemons serve the same layer, one with --max-batch 32 and one with --max-batch 1; rounds of load alternate
between them, and every comparison is a median over rounds.
"""
import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

import bench

WIDTH, HEADS, LENGTH, CLIENTS = 256, 8, 16, 64
PATH = "/v1/models/layer/attention"


def loaded_round(args, daemon, body_file, media):
    """64 clients, with the mean batch by the daemon's own count, and shares of a processor that its threads took."""
    calls, sequences = daemon.batches()
    before, begun = daemon.processor_seconds(), time.monotonic()
    found = bench.load(args.build, daemon, PATH, body_file, CLIENTS, args.seconds, media=media)
    passed = time.monotonic() - begun
    calls_after, sequences_after = daemon.batches()
    found["mean_batch"] = (sequences_after - sequences) / (calls_after - calls)
    found["loop"], found["workers"] = ((b - a) / passed for a, b in zip(before, daemon.processor_seconds()))
    return found


def loaded_rounds(args, daemons, body_file, media):
    rounds = {limit: [] for limit in daemons}
    for number in range(args.rounds):
        for limit, daemon in sorted(daemons.items(), reverse=number % 2 == 0):
            rounds[limit].append(loaded_round(args, daemon, body_file, media))
    return rounds


def report_loaded(args, daemons, body_file, name, media=bench.JSON):
    rounds = loaded_rounds(args, daemons, body_file, media)
    many, one = rounds[32], rounds[1]
    print(f"{CLIENTS} closed-loop clients, {name}: {args.rounds} rounds of {args.seconds:g} s each")
    bench.target("mean batch, --max-batch 32", bench.median(many, "mean_batch"), "", least=8)
    bench.row("compute a sequence, --max-batch 32", 1e6 * bench.median(many, "compute"), "us")
    bench.row("compute a sequence, --max-batch 1", 1e6 * bench.median(one, "compute"), "us")
    bench.row("compute a sequence, --max-batch 1 / 32", bench.median_ratio(one, many, "compute"), "times")
    bench.row("replies, --max-batch 32", bench.median(many, "per_second"), "1/s")
    bench.row("replies, --max-batch 1", bench.median(one, "per_second"), "1/s")
    bench.target("end-to-end throughput, --max-batch 32 / 1", bench.median_ratio(many, one, "per_second"), "times", least=1)
    bench.row("p50, --max-batch 32", 1e3 * bench.median(many, "p50"), "ms")
    bench.row("p99, --max-batch 32", 1e3 * bench.median(many, "p99"), "ms")
    for limit, found in rounds.items():
        bench.row(f"share of the loop's thread, --max-batch {limit}", bench.median(found, "loop"), "of a CPU")
        bench.row(f"share of {args.workers} worker(s), --max-batch {limit}", bench.median(found, "workers"), "of a CPU")
        bench.row(f"share of the load generator, --max-batch {limit}", bench.median(found, "cpu_share"), "of a CPU")


def report_single(args, daemons, body_file):
    rounds = {limit: [] for limit in daemons}
    for number in range(2 * args.rounds + 1):
        for limit, daemon in sorted(daemons.items(), reverse=number % 2 == 0):
            rounds[limit].append(bench.load(args.build, daemon, PATH, body_file, 1, args.seconds / 2))
    print(f"one closed-loop client, weights off: {2 * args.rounds + 1} rounds of {args.seconds / 2:g} s each")
    bench.row("p50, --max-batch 32", 1e3 * bench.median(rounds[32], "p50"), "ms")
    bench.row("p50, --max-batch 1", 1e3 * bench.median(rounds[1], "p50"), "ms")
    bench.target("p50, --max-batch 32 / 1", bench.median_ratio(rounds[32], rounds[1], "p50"), "times", most=1.05)


def report_health(args, daemon, body_file):
    """A paced health client beside load that keeps every worker busy."""
    beside = subprocess.Popen(bench.load_command(args.build, daemon, PATH, body_file, CLIENTS, 2 * args.seconds + 1),
                              stdout=subprocess.PIPE, text=True)
    found = bench.load(args.build, daemon, "/healthz", "-", 1, 2 * args.seconds, pause_ms=5)
    loaded = json.loads(beside.communicate()[0])
    print(f"health while {CLIENTS} clients saturate {args.workers} worker(s), asked every 5 ms: {found['replies']} replies")
    bench.row("replies to the load meanwhile", loaded["per_second"], "1/s")
    bench.row("/healthz p50", 1e3 * found["p50"], "ms")
    bench.target("/healthz p99", 1e3 * found["p99"], "ms", most=10)
    bench.target("/healthz slowest", 1e3 * found["max"], "ms", most=10)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0, help="of one round")
    parser.add_argument("--workers", type=int, default=bench.spare_cpu_workers())
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        models = Path(folder) / "models"
        bench.write_mha_model(models / "layer", WIDTH, HEADS)
        bodies = {}
        for name, media, weights in (("JSON, weights off", bench.JSON, False), ("JSON, weights on", bench.JSON, True),
                                     ("safetensors, weights off", bench.SAFETENSORS, False)):
            bodies[name] = (Path(folder) / name.replace(" ", "-"), media)
            bench.write_body(bodies[name][0], media, LENGTH, WIDTH, weights=weights)
        with bench.Daemon(args.build, models, args.workers, "--max-batch", "32") as many, \
                bench.Daemon(args.build, models, args.workers, "--max-batch", "1") as one:
            daemons = {32: many, 1: one}
            print(f"serving: width {WIDTH}, {HEADS} heads, length {LENGTH}, {args.workers} worker(s)")
            for name, (body, media) in bodies.items():
                report_loaded(args, daemons, body, name, media)
            report_single(args, daemons, bodies["JSON, weights off"][0])
            report_health(args, many, bodies["JSON, weights off"][0])


if __name__ == "__main__":
    main()
