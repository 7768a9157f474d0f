#!/usr/bin/env python3
"""Soaks a daemon in mixed traffic, kills, garbage and overload, then looks at what is left of it.

    tests/soak/soak.py [--daemon build/attnd] [--minutes 10] [--clients 12]

Python's standard library only. Exit status 0 when every reply had a status that its request may have, and at the end
the queue is empty, no byte is charged, no descriptor is left, resident memory is near its baseline and the daemon
drains with status 0.
"""
import argparse
import http.client
import json
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODEL_WIDTH = 64
NEAR = 48 << 20  # bytes of resident memory over the baseline that count as near it


class Soak:
    """The daemon, what was asked of it, and what it answered."""

    def __init__(self, daemon, folder):
        self.folder, self.log = folder, Path(folder, "log")
        write_model(folder / "models" / "soaked", MODEL_WIDTH, 4)
        self.process = subprocess.Popen(
            [daemon, "--listen", "127.0.0.1:0", "--models", folder / "models", "--queue-limit", "16", "--max-body", "32M",
             "--max-inflight", "256M", "--request-timeout", "10000", "--body-timeout", "5000", "--header-timeout", "3000"],
            stderr=self.log.open("w"))
        self.port = self._port()
        self.outcomes, self.wrong, self.lock = Counter(), [], threading.Lock()
        self.end = 0

    def _port(self):
        end = time.monotonic() + 30
        while time.monotonic() < end and self.process.poll() is None:
            ready = re.search(r"event=ready listen=\S+:(\d+)", self.log.read_text())
            if ready:
                return int(ready[1])
            time.sleep(0.02)
        sys.exit("the daemon does not start:\n" + self.log.read_text())

    def count(self, kind, outcome, allowed=()):
        with self.lock:
            self.outcomes[kind, outcome] += 1
            if allowed and outcome not in allowed:
                self.wrong.append((kind, outcome))

    def ask(self, kind, path, body=None, headers=None, allowed=(200, 429)):
        """One request on a connection of its own; the reply's body, or None."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("POST" if body is not None else "GET", path, body=body, headers=headers or {})
            reply = connection.getresponse()
            data = reply.read()
            self.count(kind, reply.status, allowed)
            return data if reply.status == 200 else None
        except OSError as error:
            self.count(kind, type(error).__name__, allowed)
            return None
        finally:
            connection.close()

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    # ---- figures
    def metric(self, name):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", "/metrics")
            lines = connection.getresponse().read().decode().splitlines()
        finally:
            connection.close()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if re.match(re.escape(name) + r"[ {]", line))

    def resident(self):
        return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text())[1]) * 1024

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def settle(self):
        """Waits for requests and connections to be over; False when they are not within half a minute."""
        end = time.monotonic() + 30
        while time.monotonic() < end:
            if self.metric("attnd_queue_depth") == 0 and self.metric("attnd_inflight_bytes") == 0 and \
                    self.metric("attnd_workers_busy") == 0:
                return True
            time.sleep(0.1)
        return False


# ---- bodies

def write_model(folder, width, heads):
    """A torch-style attention layer with weights of no meaning."""
    shapes = {"in_proj_weight": [3 * width, width], "in_proj_bias": [3 * width], "out_proj.weight": [width, width],
              "out_proj.bias": [width]}
    rng, header, data = random.Random(1), {}, b""
    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        values = struct.pack(f"<{count}f", *(rng.uniform(-0.1, 0.1) for _ in range(count)))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (folder / "config.json").write_text(json.dumps({"model_type": "torch-mha", "num_heads": heads}))


def rows(rng, length, width):
    return [[round(rng.uniform(-1, 1), 4) for _ in range(width)] for _ in range(length)]


def safetensors(rng, length, width):
    data = struct.pack(f"<{length * width}f", *(rng.uniform(-1, 1) for _ in range(length * width)))
    header = json.dumps({"__metadata__": {"weights": "false"},
                         "query": {"dtype": "F32", "shape": [length, width], "data_offsets": [0, len(data)]}}).encode()
    return struct.pack("<Q", len(header)) + header + data


JSON = {"Content-Type": "application/json"}
LENGTHS = [1, 2, 7, 16, 16, 16, 32, 32, 64, 128]


# ---- what clients do: each takes the soak and a generator of its own

def raw(soak, rng):
    length = rng.choice(LENGTHS)
    fields = {"query": rows(rng, length, 16), "heads": rng.choice([1, 2, 4]), "weights": rng.choice([True, False, "mean"]),
              "causal": rng.random() < 0.5}
    soak.ask("raw", "/v1/attention", json.dumps(fields), JSON)


def masked(soak, rng):
    queries, keys = rng.choice(LENGTHS), rng.choice(LENGTHS)
    fields = {"query": rows(rng, queries, 8), "key": rows(rng, keys, 8), "value": rows(rng, keys, 4),
              "mask": [[rng.random() < 0.7 for _ in range(keys)] for _ in range(queries)]}
    soak.ask("masked", "/v1/attention", json.dumps(fields), JSON)


def model(soak, rng):
    fields = {"query": rows(rng, rng.choice(LENGTHS), MODEL_WIDTH), "weights": rng.choice([True, False])}
    soak.ask("model", "/v1/models/soaked/attention", json.dumps(fields), JSON)


def large(soak, rng):
    numbers = ",".join(["0.125"] * (1500 * 256))
    body = '{"query":{"shape":[1500,256],"data":[%s]},"heads":4,"weights":false}' % numbers
    soak.ask("large", "/v1/attention", body, JSON, (200, 429, 504))


def late(soak, rng):
    fields = {"query": rows(rng, 256, 32), "timeout_ms": rng.choice([1, 5, 20])}
    soak.ask("late", "/v1/attention", json.dumps(fields), JSON, (200, 429, 504))


def overload(soak, rng):
    """More at once than the queue takes."""
    body = json.dumps({"query": rows(rng, 64, 32)})
    burst = [threading.Thread(target=soak.ask, args=("overload", "/v1/attention", body, JSON)) for _ in range(40)]
    for thread in burst:
        thread.start()
    for thread in burst:
        thread.join()


def wrong(soak, rng):
    body, allowed = rng.choice([
        ('{"query":[[1,2],[3]]}', (400,)), ('{"query":[[1]],"heads":3}', (400,)), ('{"query":', (400,)),
        ('{"query":[[1]],"mask":[[1]]}', (400,)), ("[" * 5000, (400,)), ("", (400,)), ('{"query":[[1e99]]}', (400,)),
        ('{"quary":[[1]]}', (400,)), ('{"query":{"shape":[70000,1],"data":[]}}', (400, 413))])
    soak.ask("wrong", "/v1/attention", body, JSON, (*allowed, 429))


def garbage(soak, rng):
    with soak.connect() as sock:
        try:
            sock.sendall(rng.choice([rng.randbytes(rng.randrange(1, 3000)) + b"\r\n\r\n", b"GET\r\n\r\n", b"\x16\x03\x01\x02\x00",
                                     b"POST /v1/attention HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
                                     b"POST /v1/attention HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"]))
            sock.shutdown(socket.SHUT_WR)
            while sock.recv(65536):
                pass
            soak.count("garbage", "closed")
        except OSError as error:
            soak.count("garbage", type(error).__name__)


def killed(soak, rng):
    """Leaves in the middle: of the upload, while queued or computed, or of reading the reply."""
    body = json.dumps({"query": rows(rng, 512, 32)}).encode()
    head = f"POST /v1/attention HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with soak.connect() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", rng.choice([0, 1]), 0))
        moment = rng.choice(["uploading", "queued", "reading"])
        try:
            sock.sendall(head.encode() + (body[:rng.randrange(len(body))] if moment == "uploading" else body))
            if moment == "queued":
                time.sleep(rng.uniform(0, 0.02))
            if moment == "reading":
                sock.recv(4096)
            soak.count("killed", moment)
        except OSError as error:
            soak.count("killed", type(error).__name__)


def pages(soak, rng):
    soak.ask("pages", rng.choice(["/healthz", "/metrics", "/v1/models", "/v1/latency", "/"]), allowed=(200,))


def absent(soak, rng):
    soak.ask("absent", f"/{rng.randrange(10 ** 9)}", allowed=(404,))


def reload(soak, rng):
    soak.process.send_signal(signal.SIGHUP)
    soak.count("reload", "asked")


def compressed(soak, rng):
    coder = zlib.compressobj(wbits=31)
    body = coder.compress(json.dumps({"query": rows(rng, 64, 32)}).encode()) + coder.flush()
    soak.ask("compressed", "/v1/attention", body, {**JSON, "Content-Encoding": "gzip", "Accept-Encoding": "gzip"})


def binary(soak, rng):
    soak.ask("binary", "/v1/attention", safetensors(rng, rng.choice(LENGTHS), 32),
             {"Content-Type": "application/x-safetensors", "Accept": "application/x-safetensors"})


WEIGHTS = {raw: 30, masked: 15, model: 20, large: 1, late: 3, overload: 2, wrong: 8, garbage: 5, killed: 10, pages: 8, absent: 3,
           reload: 1}


def probe(soak):
    """The acts that this daemon knows, beyond those that every one does."""
    known, rng = dict(WEIGHTS), random.Random(0)
    for act in (compressed, binary):
        act(soak, rng)
        if soak.outcomes[act.__name__, 200] > 0:
            known[act] = 10
        else:
            print(f"not supported, left out: {act.__name__}")
    soak.outcomes.clear()
    soak.wrong.clear()
    return known


# ---- the run

def client(soak, acts, seed):
    rng = random.Random(seed)
    while time.monotonic() < soak.end and soak.process.poll() is None:
        act = rng.choices(list(acts), list(acts.values()))[0]
        try:
            act(soak, rng)
        except OSError as error:
            soak.count(act.__name__, type(error).__name__)


def run(soak, acts, clients, seconds):
    soak.end = time.monotonic() + seconds
    threads = [threading.Thread(target=client, args=(soak, acts, seed)) for seed in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def report(soak):
    kinds = sorted({kind for kind, _ in soak.outcomes})
    for kind in kinds:
        told = sorted((str(outcome), count) for (k, outcome), count in soak.outcomes.items() if k == kind)
        print(f"  {kind:12}" + "  ".join(f"{outcome}: {count}" for outcome, count in told))
    print(f"  {sum(soak.outcomes.values())} in all")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--daemon", default=str(ROOT / "build" / "attnd"))
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--clients", type=int, default=12)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(options.daemon, Path(folder))
        try:
            sys.exit(judge(soak, options))
        finally:
            if soak.process.poll() is None:
                soak.process.kill()
                soak.process.wait()


def judge(soak, options):
    acts = probe(soak)
    run(soak, acts, options.clients, min(5, options.minutes * 6))  # arenas and pools grow to their usual size
    soak.settle()
    soak.outcomes.clear()
    resident, descriptors = soak.resident(), soak.descriptors()
    run(soak, acts, options.clients, options.minutes * 60)
    report(soak)
    settled = soak.settle()
    end = time.monotonic() + 10
    while soak.descriptors() > descriptors and time.monotonic() < end:
        time.sleep(0.1)
    grown, left = soak.resident() - resident, soak.descriptors() - descriptors
    depth, bytes_held = soak.metric("attnd_queue_depth"), soak.metric("attnd_inflight_bytes")
    soak.process.terminate()
    code = soak.process.wait(60)
    print(f"resident {resident >> 20} MiB at first, {grown / (1 << 20):+.1f} MiB at the end; descriptors {left:+d}; "
          f"queue {depth:.0f}; in-flight bytes {bytes_held:.0f}; exit {code}; unexpected {Counter(soak.wrong)}")
    faults = {"requests are not over": not settled, "memory grew": grown > NEAR, "descriptors are left": left > 0,
              "the queue is not empty": depth != 0, "bytes are charged": bytes_held != 0, "it did not exit with 0": code != 0,
              "replies are not as they may be": bool(soak.wrong)}
    for fault in (name for name, true in faults.items() if true):
        print(f"FAILED: {fault}")
    if any(faults.values()):
        print("".join(soak.log.read_text().splitlines(True)[-20:]))
    return int(any(faults.values()))


if __name__ == "__main__":
    main()
