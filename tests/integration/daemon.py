"""The real daemon under test: started on a free port, watched through its log, stopped by SIGTERM."""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("ATTND_BINARY", str(ROOT / "build" / "attnd"))
WRAPPER = os.environ.get("ATTND_WRAPPER", "").split()
# Sanitizers and valgrind slow the daemon down; waits are stretched by this factor.
SLOW = float(os.environ.get("ATTND_SLOW", "1"))
FAULTS = re.compile(r"AddressSanitizer|ThreadSanitizer|LeakSanitizer|runtime error:|ERROR SUMMARY: [1-9]|Assertion")


def runnable(kernels):
    """The name of a set of kernels; the test that asks is skipped where this CPU cannot run it."""
    text = subprocess.run([BINARY, "--help"], capture_output=True, text=True, check=True).stdout
    if kernels not in re.search(r"--kernels NAME.*\((.*?);", text).group(1).split(", "):
        pytest.skip(f"this CPU cannot run {kernels} kernels")
    return kernels


class Reply:
    """A whole HTTP reply: status, headers with lower-case names, body, and the body as JSON."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"<{self.status} {self.headers} {self.body[:300]!r}>"


class Daemon:
    """One running attnd. `log` holds the lines of its standard error so far."""

    def __init__(self, *args, env=None, wrapper=None, preexec=None):
        self.log, self._lock = [], threading.Condition()
        full = {k: v for k, v in os.environ.items() if not k.startswith("ATTND_")}
        full.update(env or {})
        command = (WRAPPER if wrapper is None else wrapper) + [BINARY, "--listen", "127.0.0.1:0", *map(str, args)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                        env=full, text=True, errors="replace", preexec_fn=preexec)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        ready = self.wait_log(r"event\W+ready\W.*listen\W+(?:[\d.]+:(\d+)|unix:)", 30)
        self.port = ready.group(1) and int(ready.group(1))  # None at a unix socket

    def _read(self):
        for line in self.process.stderr:
            with self._lock:
                self.log.append(line.rstrip("\n"))
                self._lock.notify_all()
        with self._lock:
            self.log.append("event=end-of-log")
            self._lock.notify_all()

    def wait_log(self, pattern, seconds=10):
        """The first match of a pattern in the log, waiting for it."""
        wanted, end = re.compile(pattern), time.monotonic() + seconds * SLOW
        with self._lock:
            while True:
                for line in self.log:
                    found = wanted.search(line)
                    if found:
                        return found
                left = end - time.monotonic()
                if left <= 0 or (self.log and self.log[-1] == "event=end-of-log"):
                    raise AssertionError(f"no {pattern!r} in the log:\n" + "\n".join(self.log[-40:]))
                self._lock.wait(left)

    # ---- requests
    def request(self, method, path, body=None, headers=None, timeout=60):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout * SLOW)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            answer = connection.getresponse()
            return Reply(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, path, **headers):
        return self.request("GET", path, headers=headers)

    def post(self, path, fields, headers=None, timeout=60):
        """POSTs JSON: a value to be encoded, or the text itself."""
        body = fields if isinstance(fields, (str, bytes)) else json.dumps(fields)
        return self.request("POST", path, body=body, headers={"Content-Type": "application/json", **(headers or {})},
                            timeout=timeout)

    def attend(self, headers=None, **fields):
        return self.post("/v1/attention", fields, headers)

    def connect(self, timeout=30):
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout * SLOW)

    # ---- figures
    def metric(self, name):
        """The sum of all samples of one series name; 0 where nothing was counted yet."""
        lines = self.get("/metrics").body.decode().splitlines()
        return sum(float(x.rsplit(" ", 1)[1]) for x in lines if x.startswith(name) and x[len(name)] in " {")

    def wait_until(self, true, seconds=10, what="condition"):
        end = time.monotonic() + seconds * SLOW
        while not true():
            assert time.monotonic() < end, f"{what} did not come true"
            assert self.process.poll() is None, "the daemon ended:\n" + "\n".join(self.log[-40:])
            time.sleep(0.005)

    def resident_bytes(self):
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no VmRSS")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    # ---- signals and the end
    def signal(self, number):
        """Sends a signal. The thread sanitizer hands one that comes between two system calls on at the next call it
        knows, and the wait of an idle loop is none: on a slow build a connection follows, which ends that wait."""
        self.process.send_signal(number)
        if SLOW > 1 and self.port is not None:
            try:
                self.connect().close()
            except OSError:
                pass  # it drains, or is gone already

    def terminate(self):
        self.signal(signal.SIGTERM)

    def wait(self, seconds=60):
        code = self.process.wait(timeout=seconds * SLOW)
        self._reader.join(timeout=10)
        return code

    def stop(self):
        """SIGTERM, then: it left with 0 and no sanitizer said a word."""
        if self.process.poll() is None:
            self.terminate()
        try:
            code = self.wait()
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.wait()
            raise AssertionError("the daemon did not stop:\n" + "\n".join(self.log[-40:])) from None
        text = "\n".join(self.log)
        assert not FAULTS.search(text), text[-6000:]
        assert code == 0, f"exit {code}:\n" + text[-3000:]

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None and self.process.poll() is None:
            self.process.kill()
            self.wait()
            print("\n".join(self.log[-40:]))
            return
        self.stop()
