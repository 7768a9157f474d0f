"""Runs every benchmark in turn and prints one table: `make bench`. Exits 0 whatever the figures say."""
import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import bench

HERE = Path(__file__).parent


def commands(args, layer):
    """Each part's command, in the order they run. layer: a model directory of width 256."""
    programs, build, pythons = Path(args.build) / "tests/bench", ["--build", args.build], ["--pythons", *args.pythons]

    def script(name, *arguments):
        return [sys.executable, HERE / name, *build, *arguments]

    return {
        "machine": [programs / "bench_machine"],
        "codec": [programs / "bench_codec"],
        "layer": [programs / "bench_layer", layer, "16"],
        "products": [programs / "bench_product"],
        "attention": [programs / "bench_attention"],
        "one-layer": script("bench_peers.py", *pythons),
        "model": script("bench_minilm.py", *pythons),
        "serving": script("bench_serve.py"),
        "service": script("bench_service.py"),
        "mlserver": script("bench_mlserver.py", *pythons),
        "latency": script("bench_latency.py"),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--pythons", nargs="*", default=[sys.executable], help="where to look for peers")
    parser.add_argument("--parts", nargs="*", default=["all"])
    args = parser.parse_args()
    # BLAS picks the core and cache size it finds, whatever tests may have pinned
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
    begun, failed = time.monotonic(), []
    with tempfile.TemporaryDirectory() as folder:
        layer = Path(folder) / "layer"
        bench.write_mha_model(layer, 256, 8)
        parts = commands(args, layer)
        unknown = set(args.parts) - set(parts) - {"all"}
        if unknown:
            parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(parts)}")
        for name, command in parts.items():
            if {name, "all"} & set(args.parts) and subprocess.run(command, env=environment).returncode != 0:
                failed.append(name)
    for name in failed:
        print(f"did not run to its end: {name}")
    print(f"{time.monotonic() - begun:.0f} seconds")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
