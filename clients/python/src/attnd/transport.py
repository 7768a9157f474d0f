"""HTTP under the client: connections kept for reuse, timeouts, and what is sent again.

A :class:`Transport` may be used by any number of threads at once: a call takes an idle connection or opens one, has
it alone, and puts it back when the whole reply has been read. Every request of this daemon's API may be sent twice
without harm, since none changes anything; still, only two kinds are: one that the daemon turned away (429, 503), and
one whose connection closed before a byte of the reply, as an idle connection may at any time.
"""

from __future__ import annotations

import builtins
import contextlib
import http.client
import random
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from attnd.bodies import Body
from attnd.errors import ConnectionError, ProtocolError, TimeoutError

_READ_AT_ONCE = 1 << 20
_TOGETHER = 1 << 16


@dataclass(frozen=True)
class Retries:
    """How often and how long a request that the daemon turned away (429, 503) is tried.

    Attributes:
        attempts: times a request is sent at most; 1 never sends again.
        seconds: total of the waits at most. A Retry-After that would go beyond it is not waited for.
    """

    attempts: int = 4
    seconds: float = 30.0


@dataclass(frozen=True)
class Reply:
    """A whole HTTP reply; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytearray

    @property
    def media_type(self) -> str:
        """The Content-Type without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def retry_after(self) -> float | None:
        """Seconds of Retry-After, 0 or more, from either of its two forms; None without one."""
        text = self.headers.get("retry-after", "").strip()
        if text.isascii() and text.isdigit():
            return float(text)
        try:
            date = parsedate_to_datetime(text)
        except (TypeError, ValueError):
            return None
        if date.tzinfo is None:
            date = date.replace(tzinfo=timezone.utc)
        return max(0.0, (date - datetime.now(timezone.utc)).total_seconds())


@dataclass(frozen=True)
class Request:
    """What is sent; the body may be sent more than once."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Body | None = None


class _UnansweredError(Exception):
    """The connection closed before any byte of the reply."""


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class _Deadline:
    """A moment after which nothing more is waited for; None: never."""

    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds

    def left(self) -> float | None:
        """Seconds that are left, more than 0.

        Raises:
            TimeoutError: none are.
        """
        if self._end is None:
            return None
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError("the client's timeout passed before a whole reply had come")
        return left


class Transport:
    """Connections to one daemon. Thread-safe; make a new one after a fork.

    Args:
        url: ``http://host:port``, ``https://host:port``, either with a path that goes before each request's, or
            ``unix:/path/of/socket``.
        retries: what is done about 429 and 503.
        idle_connections: connections kept open for reuse at most; how many are open at once is the callers' matter.
    """

    def __init__(self, url: str, *, retries: Retries, idle_connections: int = 8) -> None:
        self._retries = retries
        self._idle_most = idle_connections
        self._idle: list[http.client.HTTPConnection] = []  # the last used last; by the lock
        self._lock = threading.Lock()
        self._sleep = time.sleep
        self._url = urlsplit(url)
        self._tls = ssl.create_default_context() if self._url.scheme == "https" else None
        if self._url.scheme == "unix":
            self._prefix = ""
        elif self._url.scheme in ("http", "https") and self._url.hostname:
            self._prefix = self._url.path.rstrip("/")
        else:
            raise ValueError(f"url must be http://host:port, https://host:port or unix:/path, not {url!r}")

    def close(self) -> None:
        """Closes the connections that are idle; those in use are kept for no one after their reply."""
        with self._lock:
            idle, self._idle, self._idle_most = self._idle, [], 0
        for connection in idle:
            connection.close()

    def send(self, request: Request, timeout: float | None, *, again: bool = True) -> Reply:
        """The reply to a request, whatever its status.

        Args:
            request: what is sent.
            timeout: seconds for the whole call, waits between attempts included; None: no bound.
            again: whether 429 and 503 are tried again.

        Raises:
            ConnectionError: no connection, or it broke.
            TimeoutError: the timeout passed.
            ProtocolError: what came was not HTTP.
        """
        deadline = _Deadline(timeout)
        waited = 0.0
        attempt = 1
        while True:
            reply = self._send_once(request, deadline)
            if reply.status not in (429, 503) or not again or attempt >= self._retries.attempts:
                return reply
            wait = self._wait_after(reply, attempt)
            left = deadline.left()
            if waited + wait > self._retries.seconds or (left is not None and wait >= left):
                return reply
            self._sleep(wait)
            waited += wait
            attempt += 1

    @staticmethod
    def _wait_after(reply: Reply, attempt: int) -> float:
        """Retry-After where the daemon gave one, else 0.1 s doubled each time, spread so that clients part."""
        asked = reply.retry_after
        return asked if asked is not None else 0.1 * 2.0 ** (attempt - 1) * random.uniform(0.5, 1.0)

    def _send_once(self, request: Request, deadline: _Deadline) -> Reply:
        """One reply, with one more connection where the first closed before it answered at all."""
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        try:
            return self._converse(connection or self._open(deadline), request, deadline)
        except _UnansweredError:
            pass
        try:
            return self._converse(self._open(deadline), request, deadline)
        except _UnansweredError as closed:
            raise ConnectionError("the connection closed before any reply") from closed.__cause__

    def _open(self, deadline: _Deadline) -> http.client.HTTPConnection:
        url = self._url
        connection: http.client.HTTPConnection
        if url.scheme == "unix":
            connection = _UnixConnection(url.path)
        elif self._tls is not None:
            connection = http.client.HTTPSConnection(url.hostname or "", url.port, context=self._tls)
        else:
            connection = http.client.HTTPConnection(url.hostname or "", url.port)
        connection.timeout = deadline.left()
        try:
            connection.connect()
        except builtins.TimeoutError as error:
            raise TimeoutError(f"no connection to {url.geturl()} in time") from error
        except OSError as error:
            connection.close()
            raise ConnectionError(f"no connection to {url.geturl()}: {error}") from error
        return connection

    def _converse(self, connection: http.client.HTTPConnection, request: Request, deadline: _Deadline) -> Reply:
        """Sends a request and reads its whole reply; then the connection is kept, or closed."""
        keep = False
        try:
            whole = self._write(connection, request, deadline)
            sock = connection.sock
            sock.settimeout(deadline.left())
            try:
                answer = connection.getresponse()
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError) as error:
                raise _UnansweredError from error
            body = self._read(answer, sock, deadline)
            keep = whole and not answer.will_close
            return Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, body)
        except builtins.TimeoutError as error:
            raise TimeoutError("the client's timeout passed before a whole reply had come") from error
        except http.client.IncompleteRead as error:
            raise ConnectionError("the connection closed in the middle of a reply") from error
        except http.client.HTTPException as error:
            raise ProtocolError(f"the reply is not HTTP: {error!r}") from error
        except OSError as error:
            raise ConnectionError(f"the connection broke: {error}") from error
        finally:
            self._put_back(connection, keep)

    def _write(self, connection: http.client.HTTPConnection, request: Request, deadline: _Deadline) -> bool:
        """Sends a request; False where the daemon stopped reading it, which it may do to answer early."""
        connection.putrequest(request.method, self._prefix + request.path, skip_accept_encoding=True)
        for name, value in request.headers.items():
            connection.putheader(name, value)
        pieces = list(request.body.pieces) if request.body else []
        if request.body:
            connection.putheader("Content-Type", request.body.media_type)
            connection.putheader("Content-Length", str(request.body.length))
            if request.body.length <= _TOGETHER:
                pieces = [b"".join(pieces)]
        try:
            connection.sock.settimeout(deadline.left())
            connection.endheaders()
            for piece in pieces:
                connection.sock.settimeout(deadline.left())
                connection.send(piece)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    @staticmethod
    def _read(answer: http.client.HTTPResponse, sock: socket.socket, deadline: _Deadline) -> bytearray:
        """The whole body, into memory made once where its length is known."""
        with contextlib.closing(answer):
            length = answer.length
            body = bytearray(length or 0)
            filled = 0
            while length is None or filled < length:
                sock.settimeout(deadline.left())
                piece = answer.read1(_READ_AT_ONCE)
                if not piece:
                    break
                body[filled : filled + len(piece)] = piece
                filled += len(piece)
            if length is not None and filled < length:
                raise http.client.IncompleteRead(b"", length - filled)
            return body

    def _put_back(self, connection: http.client.HTTPConnection, keep: bool) -> None:
        if keep:
            with self._lock:
                keep = len(self._idle) < self._idle_most
                if keep:
                    self._idle.append(connection)
        if not keep:
            connection.close()
