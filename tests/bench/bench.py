"""What the benchmarks of the daemon share: a model to serve, the daemon itself, load, rows of one table."""
import http.client
import json
import os
import random
import re
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from array import array
from pathlib import Path


def row(name, value, unit):
    print(f"  {name:<62} {value:9.4g} {unit}", flush=True)


def target(name, value, unit, least=None, most=None):
    """A row with its target: at least, at most, or between."""
    limits = [(">=", least), ("<=", most)]
    wanted = " and ".join(f"{sign} {limit:g}" for sign, limit in limits if limit is not None)
    met = (least is None or value >= least) and (most is None or value <= most)
    print(f"  {name:<62} {value:9.4g} {unit:<8} target {wanted}: {'met' if met else 'MISSED'}", flush=True)


def skipped(what, command):
    """A row for what cannot be measured here, with the command that would change that."""
    print(f"  {what:<62}  skipped: not installed; {command}", flush=True)


def cpus():
    return len(os.sched_getaffinity(0))


def spare_cpu_workers():
    """Workers that leave a processor to the loop and the load."""
    return max(1, cpus() - 1)


def write_mha_model(directory, width, heads, seed=1):
    """A torch-style multi-head layer with seeded weights, as a model directory."""
    generator = random.Random(seed)
    bound = (6 / (2 * width)) ** 0.5
    shapes = {"in_proj_weight": [3 * width, width], "in_proj_bias": [3 * width],
              "out_proj.weight": [width, width], "out_proj.bias": [width]}
    header, data = {}, array("f")
    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [4 * len(data), 4 * (len(data) + count)]}
        data.extend(generator.uniform(-bound, bound) for _ in range(count))
    text = json.dumps(header).encode()
    directory.mkdir(parents=True)
    (directory / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data.tobytes())
    (directory / "config.json").write_text(json.dumps({"model_type": "torch-mha", "embed_dim": width, "num_heads": heads}))


def random_body(length, width, digits=9, seed=1, **fields):
    """A JSON request with one random sequence [length, width]."""
    generator = random.Random(seed)
    query = [[round(generator.uniform(-1, 1), digits) for _ in range(width)] for _ in range(length)]
    return json.dumps({"query": query, **fields}, separators=(",", ":"))


class Daemon:
    """build/attnd on a free port until the `with` block ends."""

    def __init__(self, build, models, workers, *flags):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [Path(build) / "attnd", "--listen", f"127.0.0.1:{self.port}", "--models", models, "--workers", str(workers),
             "--log-level", "warning", *flags], stdout=subprocess.DEVNULL, stderr=self.log)

    def __enter__(self):
        deadline = time.monotonic() + 20
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                self.get("/healthz")
                return self
            except OSError:
                time.sleep(0.02)
        self.__exit__()
        self.fail("does not answer")

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            self.fail("does not stop")

    def fail(self, how):
        self.log.seek(0)
        sys.exit(f"the daemon {how}:\n{self.log.read()}")

    def request(self, method, path, body=None):
        """The reply's text; exits with it when it is not a 200."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        reply = connection.getresponse()
        text = reply.read().decode()
        connection.close()
        if reply.status != 200:
            sys.exit(f"{method} {path}: {reply.status}: {text[:500]}")
        return text

    def get(self, path):
        return self.request("GET", path)

    def batches(self):
        """(calls, sequences) computed so far."""
        text = self.get("/metrics")
        return tuple(float((re.search(rf"^attnd_batch_sequences_{name} (\S+)$", text, re.M) or [0, 0])[1])
                     for name in ("count", "sum"))


def load_command(build, daemon, path, body_file, clients, seconds, pause_ms=0):
    return [str(value) for value in
            (Path(build) / "tests/bench/load", daemon.port, path, body_file, clients, seconds, pause_ms)]


def load(*arguments, **keywords):
    """Runs the load generator; what it reports."""
    done = subprocess.run(load_command(*arguments, **keywords), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"load: {done.stderr}")
    found = json.loads(done.stdout)
    if found["errors"]:
        sys.exit(f"load: {found['errors']} of {found['replies']} replies were not 200")
    return found


def median(rounds, key):
    return statistics.median(found[key] for found in rounds)


def median_ratio(above, below, key):
    """Median over rounds of the ratio in each round."""
    return statistics.median(a[key] / b[key] for a, b in zip(above, below, strict=True))
