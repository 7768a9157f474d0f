"""Latency against sequence length: raw attention of width 64 over lengths 16 to 4096, then GET /v1/latency."""
import argparse
import json
import math
import tempfile

import bench

WIDTH = 64
LENGTHS = [16, 32, 64, 128, 256, 512, 1024, 1536, 2048, 3072, 4096]
PLOT = 44  # columns


def slope(points):
    """Least-squares slope of log seconds over log length."""
    xs, ys = [math.log(length) for length, _ in points], [math.log(seconds) for _, seconds in points]
    x_mean, y_mean = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys)) / sum((x - x_mean) ** 2 for x in xs)


def print_curve(lengths):
    """One line a length, with a bar on a logarithmic scale."""
    low = math.log10(min(entry["compute"]["p50"] for entry in lengths))
    high = math.log10(max(entry["compute"]["p50"] for entry in lengths))
    print(f"  {'length':>6} {'count':>5} {'total p50':>11} {'compute p50':>12} {'p99':>11}   compute p50, logarithmic")
    for entry in lengths:
        compute = entry["compute"]
        bar = "#" * (1 + round((PLOT - 1) * (math.log10(compute["p50"]) - low) / max(high - low, 1e-9)))
        print(f"  {entry['length']:>6} {entry['count']:>5} {1e3 * entry['total']['p50']:>8.3f} ms "
              f"{1e3 * compute['p50']:>9.4f} ms {1e3 * compute['p99']:>8.3f} ms   {bar}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--rounds", type=int, default=4, help="over all lengths")
    parser.add_argument("--repeats", type=int, default=5, help="of a length in a round")
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    bodies = {length: bench.random_body(length, WIDTH, digits=3, weights=False, precision=4) for length in LENGTHS}
    with tempfile.TemporaryDirectory() as models, bench.Daemon(args.build, models, args.workers) as daemon:
        for _ in range(args.rounds):
            for length in (length for length in LENGTHS for _ in range(args.repeats)):
                daemon.request("POST", "/v1/attention", bodies[length])
        found = json.loads(daemon.get("/v1/latency"))
    entry = next(entry for entry in found["data"] if entry["operation"] == "attention" and entry["width"] == WIDTH)
    print(f"latency: raw attention, width {WIDTH}, one head, weights off, {args.workers} worker(s), from GET /v1/latency")
    print_curve(entry["lengths"])
    fit = entry["fit"]
    print(f"  fit over {fit['from']} to {fit['to']}: t = {fit['a']:.3g} + {fit['b']:.3g} L + {fit['c']:.3g} L^2 seconds, "
          f"exponent from 128 up {fit['exponent']:.3f}")
    points = [(item["length"], item["compute"]["p50"]) for item in entry["lengths"]]
    bench.target("steps of the curve that grow", sum(b[1] < a[1] for b, a in zip(points, points[1:])), "",
                 least=len(points) - 1)
    bench.target("log-log slope of compute a sequence, 1024 to 4096",
                 slope([point for point in points if 1024 <= point[0] <= 4096]), "", least=1.7, most=2.3)


if __name__ == "__main__":
    main()
