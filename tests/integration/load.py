"""Requests in parallel, and requests that keep a worker busy for a while."""
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from daemon import SLOW


def body_of(length, width=16, seed=0, **fields):
    x = np.random.default_rng(seed).uniform(-1, 1, (length, width)).astype(np.float32)
    return json.dumps(dict(query=[[round(float(v), 6) for v in row] for row in x], **fields))


def heavy(length=3000, heads=16):
    """A body small to read whose computation takes a good part of a second: flat zeros, no weights."""
    length = round(length / SLOW ** 0.5)  # the work grows with the square
    return json.dumps({"query": {"shape": [length, 64], "data": [0] * (length * 64)},
                       "value": {"shape": [length, 64], "data": [0] * (length * 64)},
                       "heads": heads, "weights": False})


def together(daemon, bodies, path="/v1/attention", headers=None):
    """POSTs all bodies at once, each on a connection of its own; replies in the order of bodies."""
    with ThreadPoolExecutor(len(bodies)) as pool:
        return list(pool.map(lambda b: daemon.post(path, b, headers), bodies))


class Busy:
    """Keeps the (single) worker computing while a `with` block queues requests behind it."""

    def __init__(self, daemon, **kwargs):
        self.daemon, self.kwargs, self.reply = daemon, kwargs, None

    def __enter__(self):
        self.thread = threading.Thread(target=self._run)
        self.thread.start()
        self.daemon.wait_until(lambda: self.daemon.metric("attnd_workers_busy") >= 1
                               and self.daemon.metric("attnd_queue_depth") == 0
                               and time.monotonic() > self.begun + 0.02, 20, "a busy worker")
        return self

    def _run(self):
        self.reply = self.daemon.post("/v1/attention", heavy(**self.kwargs), timeout=120)

    @property
    def begun(self):
        self._begun = getattr(self, "_begun", time.monotonic())
        return self._begun

    def __exit__(self, *_):
        self.thread.join()
