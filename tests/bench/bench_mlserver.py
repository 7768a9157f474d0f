"""The daemon against MLServer with torch: the same layer, the same numbers in JSON, the same clients, in turn.

MLServer runs the model in its own process (parallel_workers 0), torch with as many threads as it chooses.
"""
import argparse
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import bench

WIDTH, HEADS, CLIENTS = 768, 12, 8
RUNTIME = Path(__file__).resolve().parent / "mlserver"
INSTALL = "python3 -m pip install mlserver torch"
START = "from mlserver.cli import main; main()"


def free_ports(count):
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


class MLServer:
    """MLServer with the layer on a free port until the `with` block ends."""

    def __init__(self, python, folder):
        self.port, grpc, metrics = free_ports(3)
        settings = {"host": "127.0.0.1", "http_port": self.port, "grpc_port": grpc, "metrics_port": metrics,
                    "parallel_workers": 0, "debug": False}
        model = {"name": "layer", "implementation": "layer_runtime.LayerRuntime",
                 "parameters": {"extra": {"width": WIDTH, "heads": HEADS}}}
        folder.mkdir()
        (folder / "settings.json").write_text(json.dumps(settings))
        (folder / "model-settings.json").write_text(json.dumps(model))
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([python, "-c", START, "start", str(folder)], stdout=self.log, stderr=self.log,
                                        env=os.environ | {"PYTHONPATH": str(RUNTIME), "PYTHONDONTWRITEBYTECODE": "1"})

    def __enter__(self):
        deadline = time.monotonic() + 60
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
                connection.request("GET", "/v2/models/layer/ready")
                if connection.getresponse().status == 200:
                    return self
            except OSError:
                pass
            time.sleep(0.1)
        self.__exit__()
        self.log.seek(0)
        sys.exit(f"MLServer does not answer:\n{self.log.read()}")

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def write_bodies(folder, length):
    """(ours, MLServer's) with the same numbers; weights up to length 128."""
    weights = length <= 128
    ours, theirs = Path(folder) / f"ours-{length}", Path(folder) / f"theirs-{length}"
    ours.write_text(bench.random_body(length, WIDTH, weights=weights))
    query = json.loads(ours.read_text())["query"]
    theirs.write_text(json.dumps({"parameters": {"weights": weights}, "inputs": [
        {"name": "query", "shape": [length, WIDTH], "datatype": "FP32", "data": [number for row in query for number in row]}]}))
    return ours, theirs


def report(args, daemon, peer, folder, length):
    ours, theirs = write_bodies(folder, length)
    mine, its = [], []
    seconds = args.seconds * (3 if length > 128 else 1)  # so that a round has replies enough to count
    for _ in range(args.rounds):
        mine.append(bench.load(args.build, daemon, "/v1/models/layer/attention", ours, CLIENTS, seconds))
        its.append(bench.load(args.build, peer, "/v2/models/layer/infer", theirs, CLIENTS, seconds))
    name = f"L {length:3}, {'per-head weights' if length <= 128 else 'no weights'}"
    for who, rounds in (("attnd", mine), ("MLServer", its)):
        bench.row(f"{name}: {who}", bench.median(rounds, "per_second"), "1/s")
        bench.row(f"{name}: {who}, p50", 1e3 * bench.median(rounds, "p50"), "ms")
        bench.row(f"{name}: {who}, share of the load generator", bench.median(rounds, "cpu_share"), "of a CPU")
    bench.target(f"{name}: replies a second, attnd / MLServer", bench.median_ratio(mine, its, "per_second"), "times", least=4)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--pythons", nargs="*", default=["python3"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="of one round")
    args = parser.parse_args()
    print(f"{CLIENTS} closed-loop clients, JSON, width {WIDTH}, {HEADS} heads, {bench.cpus()} CPUs")
    python = bench.find_python(("mlserver", "torch"), args.pythons)
    if python is None:
        bench.skipped("MLServer with torch", INSTALL)
        return
    with tempfile.TemporaryDirectory() as folder:
        bench.write_mha_model(Path(folder) / "models/layer", WIDTH, HEADS)
        with bench.Daemon(args.build, Path(folder) / "models", bench.cpus()) as daemon, \
                MLServer(python, Path(folder) / "mlserver") as peer:
            print(f"  {bench.versions(python, 'mlserver', 'torch')}")
            for length in (16, 128, 512):
                report(args, daemon, peer, folder, length)


if __name__ == "__main__":
    main()
