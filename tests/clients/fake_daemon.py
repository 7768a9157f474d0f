"""A server that answers as a test tells it, and remembers what it was asked."""
import json
import os
import socket
import threading
from dataclasses import dataclass

SHAPE = {"batch": 1, "heads": 1, "kv_heads": 1, "queries": 1, "keys": 1, "head_width": 1, "value_width": 1}
COMPUTED = {"context": [[7]], "weights": [[[1]]], "shape": SHAPE}
REASONS = {200: "OK", 413: "Content Too Large", 429: "Too Many Requests", 503: "Service Unavailable"}


@dataclass
class Asked:
    """A request as it came, and the number of the connection it came on."""

    method: str
    path: str
    headers: dict
    body: bytes
    connection: int


def reply(status=200, body=None, media="application/json", **headers):
    """An action: answers with a status, a body (an object becomes JSON) and more headers."""
    content = body if isinstance(body, bytes) else json.dumps(COMPUTED if body is None else body).encode()
    fields = {"Content-Type": media, "Content-Length": len(content),
              **{name.replace("_", "-"): value for name, value in headers.items()}}
    head = f"HTTP/1.1 {status} {REASONS.get(status, 'Reason')}\r\n" + "".join(f"{k}: {v}\r\n" for k, v in fields.items())

    def act(fake, sock):
        sock.sendall(head.encode() + b"\r\n" + content)
        return headers.get("Connection") != "close"

    return act


def problem(status, code="some-code", detail="some detail", pointer=None, **headers):
    """An action: refuses with a problem object."""
    body = {"type": "about:blank", "title": "Some title", "status": status, "code": code, "detail": detail}
    if pointer is not None:
        body["pointer"] = pointer
    return reply(status, body, "application/problem+json", **headers)


def close(fake, sock):
    """An action: closes without a byte."""
    return False


def raw(data):
    """An action: sends these bytes and closes."""
    def act(fake, sock):
        sock.sendall(data)
        return False
    return act


def silent(fake, sock):
    """An action: says nothing until the test is over."""
    fake.over.wait(30)
    return False


def drip(fake, sock):
    """An action: a reply that comes a byte at a time and would take a minute."""
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 3000\r\n\r\n")
    while not fake.over.wait(0.02):
        sock.sendall(b" ")
    return False


class FakeDaemon:
    """Takes one action for each request, in order; the last is repeated. On a unix socket when given a path."""

    def __init__(self, *actions, path=None, read_bodies=True):
        self.actions, self.asked, self.over = list(actions), [], threading.Event()
        self._read_bodies, self._lock, self._sockets = read_bodies, threading.Lock(), []
        if path:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(os.fspath(path))
            self.url = f"unix:{path}"
        else:
            self._listener = socket.socket()
            self._listener.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._listener.listen(32)
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self):
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            if self.over.is_set():
                sock.close()
                return
            with self._lock:
                self._sockets.append(sock)
                thread = threading.Thread(target=self._serve, args=(sock, len(self._sockets)))
                self._threads.append(thread)
            thread.start()

    def _serve(self, sock, number):
        try:
            with sock, sock.makefile("rb") as stream:
                while self._one(sock, stream, number):
                    pass
        except OSError:
            pass  # the client went, as some tests have it

    def _one(self, sock, stream, number):
        words = stream.readline().decode().split()
        if not words:
            return False
        headers = {}
        while line := stream.readline().decode().strip():
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        body = stream.read(int(headers.get("content-length", 0))) if self._read_bodies else b""
        with self._lock:
            self.asked.append(Asked(words[0], words[1], headers, body, number))
            action = self.actions.pop(0) if len(self.actions) > 1 else self.actions[0]
        return action(self, sock)

    def hang_up(self):
        """Closes every connection, as a daemon does with idle ones."""
        with self._lock:
            for sock in self._sockets:
                try:
                    sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # closed already

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over.set()
        self.hang_up()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(10)
