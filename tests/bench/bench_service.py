"""The whole service: replies over loopback against bare compute, load at a constant rate, memory, health under full load.

The model is one layer of width 768 with 12 heads. Bare compute is the wall time of the library's call for the same request,
measured in turn with the replies.
"""
import argparse
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import bench
from timer import Timer

WIDTH, HEADS = 768, 12
PATH = "/v1/models/layer/attention"
MEDIA = {"JSON": bench.JSON, "safetensors": bench.SAFETENSORS}
WEIGHTS = {"no weights": False, "per-head weights": True, "top 4 of each row": {"top_k": 4}}
MOST = {("JSON", 512, 1): 2.5, ("JSON", 512, 2): 2, ("safetensors", 512, 1): 1.15}  # of bare compute, without weights


def body_of(folder, media, length, weights):
    path = Path(folder) / f"{media}-{length}-{'-'.join(weights.split())}"
    if not path.exists():
        bench.write_body(path, MEDIA[media], length, WIDTH, weights=WEIGHTS[weights])
    return path


def reply_rounds(args, daemon, bare, body, media, length, weights, workers):
    """Rounds of (seconds of a reply, of bare compute), one closed-loop client."""
    begun = time.monotonic()
    daemon.request("POST", PATH, body.read_bytes(), MEDIA[media])
    seconds = max(args.seconds, 2.5 * (time.monotonic() - begun))
    pairs = []
    for _ in range(args.rounds):
        alone, _ = bare.seconds(length, WEIGHTS[weights] is True, args.seconds / 3, workers)
        pairs.append((bench.load(args.build, daemon, PATH, body, 1, seconds, media=MEDIA[media])["p50"], alone))
    return pairs


def report_replies(args, daemon, bare, folder, lengths, kinds, workers):
    """One client's replies against bare compute on as many threads as there are workers."""
    for media in MEDIA:
        for length in lengths:
            for weights in kinds:
                body = body_of(folder, media, length, weights)
                pairs = reply_rounds(args, daemon, bare, body, media, length, weights, workers)
                name = f"L {length:4}, {media}, {weights}"
                reply, alone = (1e3 * statistics.median(column) for column in zip(*pairs))
                ratio = statistics.median(reply / alone for reply, alone in pairs)
                most = MOST.get((media, length, workers)) if weights == "no weights" else None
                bench.target(f"{name}: {reply:.3g} ms / {alone:.3g} ms", ratio, "times", most=most)


def report_rates(args, daemon, folder, media, length):
    """What a closed loop reaches, and times of replies when 30, 60 and 90% of that comes at a constant rate."""
    body = body_of(folder, media, length, "no weights")
    full = bench.load(args.build, daemon, PATH, body, 8, args.seconds * 8, media=MEDIA[media])
    name = f"L {length:4}, {media}, no weights"
    bench.row(f"{name}: 8 closed-loop clients", full["per_second"], "1/s")
    bench.row(f"{name}: processor share of the load generator", full["cpu_share"], "of a CPU")
    for share in (30, 60, 90):
        rate = full["per_second"] * share / 100
        seconds = max(args.seconds * 4, min(60 / rate, 20 * args.seconds))
        found = bench.load(args.build, daemon, PATH, body, 64, seconds, rate=rate, media=MEDIA[media])
        bench.target(f"{name}: {share}% of that: p99 {1e3 * found['p99']:.3g} ms / p50 {1e3 * found['p50']:.3g} ms",
                     found["p99"] / found["p50"], "times", most=3 if share == 60 and length == 512 else None)


def report_health(args, daemon, folder):
    """A paced health client beside load that keeps every worker busy."""
    body = body_of(folder, "JSON", 512, "no weights")
    beside = subprocess.Popen(bench.load_command(args.build, daemon, PATH, body, 8, 6 * args.seconds + 1),
                              stdout=subprocess.DEVNULL)
    found = bench.load(args.build, daemon, "/healthz", "-", 1, 6 * args.seconds, pause_ms=5)
    beside.wait()
    print(f"health beside 8 closed-loop clients (L 512, JSON), asked every 5 ms: {found['replies']} replies")
    bench.row("/healthz p50", 1e3 * found["p50"], "ms")
    bench.target("/healthz p99", 1e3 * found["p99"], "ms", most=10)
    bench.row("/healthz slowest", 1e3 * found["max"], "ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.3, help="of one round, at least")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        models = Path(folder) / "models"
        bench.write_mha_model(models / "layer", WIDTH, HEADS)
        bare = Timer([Path(args.build) / "tests/bench/bench_ours", models / "layer"])
        print(f"the service: width {WIDTH}, {HEADS} heads, one layer; one closed-loop client")
        print("a reply / bare compute, one worker, one thread")
        with bench.Daemon(args.build, models, 1) as daemon:
            report_replies(args, daemon, bare, folder, (16, 64, 256, 512, 1024), WEIGHTS, 1)
            bench.row("memory of the daemon after them, the most", daemon.memory("VmHWM"), "MiB")
            bench.row("memory of the daemon after them, now", daemon.memory("VmRSS"), "MiB")
        workers = bench.cpus()
        print("a reply / bare compute, two workers, two threads")
        with bench.Daemon(args.build, models, 2) as daemon:
            report_replies(args, daemon, bare, folder, (512,), ["no weights"], 2)
        bare.stop()
        print(f"load at a constant rate: {workers} worker(s), up to 64 connections, times from when a request was due")
        with bench.Daemon(args.build, models, workers) as daemon:
            for media, length in (("JSON", 16), ("JSON", 512), ("safetensors", 512)):
                report_rates(args, daemon, folder, media, length)
            report_health(args, daemon, folder)
            bench.row("memory of the daemon under load, the most", daemon.memory("VmHWM"), "MiB")


if __name__ == "__main__":
    main()
