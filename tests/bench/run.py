"""Runs every benchmark in turn and prints one table: `make bench`. Exits 0 whatever the figures say."""
import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import bench

HERE = Path(__file__).parent


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--pythons", nargs="*", default=[sys.executable], help="where to look for peers")
    args = parser.parse_args()
    programs = Path(args.build) / "tests/bench"
    # BLAS picks the core and cache size it finds, whatever tests may have pinned
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "layer"
        bench.write_mha_model(model, 256, 8)
        failed = [command for command in (
            [programs / "bench_machine"],
            [programs / "bench_codec"],
            [programs / "bench_layer", model, "16"],
            [programs / "bench_attention"],
            [sys.executable, HERE / "bench_peers.py", "--build", args.build, "--pythons", *args.pythons],
            [sys.executable, HERE / "bench_minilm.py", "--build", args.build, "--pythons", *args.pythons],
            [sys.executable, HERE / "bench_serve.py", "--build", args.build],
            [sys.executable, HERE / "bench_service.py", "--build", args.build],
            [sys.executable, HERE / "bench_mlserver.py", "--build", args.build, "--pythons", *args.pythons],
            [sys.executable, HERE / "bench_latency.py", "--build", args.build],
        ) if subprocess.run(command, env=environment).returncode != 0]
    for command in failed:
        print(f"did not run to its end: {' '.join(str(part) for part in command)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
