"""What the benchmarks of the daemon share: a model to serve, the daemon itself, load, rows of one table."""
import http.client
import json
import math
import os
import random
import re
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from array import array
from pathlib import Path

from timer import Timer


JSON, SAFETENSORS = "application/json", "application/x-safetensors"


def row(name, value, unit):
    print(f"  {name:<62} {value:9.4g} {unit}", flush=True)


def target(name, value, unit, least=None, most=None):
    """A row with its target: at least, at most, or between; without one, a row."""
    if least is None and most is None:
        row(name, value, unit)
        return
    limits = [(">=", least), ("<=", most)]
    wanted = " and ".join(f"{sign} {limit:g}" for sign, limit in limits if limit is not None)
    met = (least is None or value >= least) and (most is None or value <= most)
    print(f"  {name:<62} {value:9.4g} {unit:<8} target {wanted}: {'met' if met else 'MISSED'}", flush=True)


def skipped(what, command):
    """A row for what cannot be measured here, with the command that would change that."""
    print(f"  {what:<62}  skipped: not installed; {command}", flush=True)


def find_python(modules, pythons):
    """The first interpreter that has all of the modules, or None."""
    script = f"import importlib.util as u, sys; sys.exit(not all(u.find_spec(name) for name in {modules!r}))"
    for python in pythons:
        path = shutil.which(python)
        if path and subprocess.run([path, "-c", script], capture_output=True).returncode == 0:
            return path
    return None


def start_peers(peers, pythons, what):
    """Peers by name: timers of peers/NAME_WHAT.py. `peers` gives what each imports; those that cannot are skipped."""
    found = {}
    for name, modules in peers.items():
        python = find_python(modules, pythons)
        if python is None:
            skipped(name, f"python3 -m pip install numpy {' '.join(modules)}")
            continue
        found[name] = Timer([python, Path(__file__).parent / "peers" / f"{name}_{what}.py"])
        print(f"  {found[name].version}, one thread, {python}", flush=True)
    return found


def versions(python, *modules):
    """What an interpreter has of them, in words."""
    script = "import importlib.metadata as m, sys; print(', '.join(f'{n} {m.version(n)}' for n in sys.argv[1:]))"
    return subprocess.run([python, "-c", script, *modules], capture_output=True, text=True, check=True).stdout.strip()


def cpus():
    return len(os.sched_getaffinity(0))


def spare_cpu_workers():
    """Workers that leave a processor to the loop and the load."""
    return max(1, cpus() - 1)


def write_safetensors(path, tensors, metadata=None):
    """tensors: {name: (shape, array of floats)}"""
    header, offset = {"__metadata__": metadata} if metadata else {}, 0
    for name, (shape, numbers) in tensors.items():
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + 4 * len(numbers)]}
        offset += 4 * len(numbers)
    text = json.dumps(header).encode()
    data = b"".join(numbers.tobytes() for _, numbers in tensors.values())
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_mha_model(directory, width, heads, seed=1):
    """A torch-style multi-head layer with seeded weights, as a model directory."""
    generator = random.Random(seed)
    bound = (6 / (2 * width)) ** 0.5
    shapes = {"in_proj_weight": [3 * width, width], "in_proj_bias": [3 * width],
              "out_proj.weight": [width, width], "out_proj.bias": [width]}
    directory.mkdir(parents=True)
    write_safetensors(directory / "model.safetensors", {
        name: (shape, array("f", (generator.uniform(-bound, bound) for _ in range(math.prod(shape)))))
        for name, shape in shapes.items()})
    (directory / "config.json").write_text(json.dumps({"model_type": "torch-mha", "embed_dim": width, "num_heads": heads}))


def random_body(length, width, digits=9, seed=1, **fields):
    """A JSON request with one random sequence [length, width]."""
    generator = random.Random(seed)
    query = [[round(generator.uniform(-1, 1), digits) for _ in range(width)] for _ in range(length)]
    return json.dumps({"query": query, **fields}, separators=(",", ":"))


def write_body(path, media, length, width, **fields):
    """A request of either kind with one random sequence [length, width]."""
    if media == JSON:
        path.write_text(random_body(length, width, **fields))
        return
    generator = random.Random(1)
    query = array("f", (generator.uniform(-1, 1) for _ in range(length * width)))
    write_safetensors(path, {"query": ([length, width], query)}, {name: json.dumps(value) for name, value in fields.items()})


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

    def request(self, method, path, body=None, media=JSON):
        """The reply's bytes; exits with them when it is not a 200."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body, {"Content-Type": media, "Accept": media} if body else {})
        reply = connection.getresponse()
        content = reply.read()
        connection.close()
        if reply.status != 200:
            sys.exit(f"{method} {path}: {reply.status}: {content[:500]}")
        return content

    def get(self, path):
        return self.request("GET", path).decode()

    def processor_seconds(self):
        """(of the loop's thread, of all others)"""
        ticks = {task.name: sum(map(int, (task / "stat").read_text().rpartition(")")[2].split()[11:13]))
                 for task in Path(f"/proc/{self.process.pid}/task").iterdir()}
        loop = ticks.pop(str(self.process.pid))
        return loop / os.sysconf("SC_CLK_TCK"), sum(ticks.values()) / os.sysconf("SC_CLK_TCK")

    def memory(self, key):
        """MiB; key VmRSS or VmHWM, the most so far."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"^{key}:\s+(\d+) kB", text, re.M)[1]) / 1024

    def batches(self):
        """(calls, sequences) computed so far."""
        text = self.get("/metrics")
        return tuple(float((re.search(rf"^attnd_batch_sequences_{name} (\S+)$", text, re.M) or [0, 0])[1])
                     for name in ("count", "sum"))


def load_command(build, daemon, path, body_file, clients, seconds, pause_ms=0, rate=0, media=JSON):
    """rate 0: closed loop."""
    options = {"-p": pause_ms, "-r": rate, "-t": media, "-a": media}
    flags = [text for flag, value in options.items() if value for text in (flag, str(value))]
    return [str(value) for value in
            (Path(build) / "tests/bench/load", *flags, daemon.port, path, body_file, clients, seconds)]


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
