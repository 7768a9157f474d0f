"""What can go wrong in a call, as exceptions.

All derive from :class:`AttndError`::

    AttndError
    ├── RequestError             the daemon refused the request and said why
    │   ├── OverloadedError      429 or 503: come back after `retry_after` seconds
    │   └── DeadlineError        504: the daemon's deadline passed
    ├── ConnectionError          no connection, or it broke (also a builtin ConnectionError)
    ├── TimeoutError             the client's own timeout passed (also a builtin TimeoutError)
    └── ProtocolError            a reply that is not what the daemon's contract says

A value that no request can hold (an object array, a NaN scale) is a plain TypeError or ValueError, raised before
anything is sent.
"""

from __future__ import annotations

import builtins


class AttndError(Exception):
    """Base of all errors of this package."""


class ConnectionError(AttndError, builtins.ConnectionError):
    """No connection could be made, or it closed before a whole reply had come."""


class TimeoutError(AttndError, builtins.TimeoutError):
    """The client's timeout passed before a whole reply had come."""


class ProtocolError(AttndError):
    """The reply cannot be understood: not HTTP, not the media type asked for, or a body against its format."""


class RequestError(AttndError):
    """The daemon refused the request.

    Attributes:
        status: the HTTP status.
        code: the kind of problem, one word such as ``"shape-mismatch"``; None where the body was no problem object.
        title: the code in words.
        detail: what is wrong, with the value and the limit.
        pointer: JSON pointer (RFC 6901) of the offending field, such as ``"/query/0/1"``; None where no field is.
        request_id: the request's id, as in the daemon's log.
    """

    def __init__(
        self,
        status: int,
        *,
        code: str | None = None,
        title: str | None = None,
        detail: str | None = None,
        pointer: str | None = None,
        request_id: str | None = None,
    ) -> None:
        self.status = status
        self.code = code
        self.title = title
        self.detail = detail
        self.pointer = pointer
        self.request_id = request_id
        super().__init__(self._text())

    def _text(self) -> str:
        text = f"{self.status} {self.code}" if self.code else f"{self.status}"
        if self.pointer:
            text += f" at {self.pointer}"
        return f"{text}: {self.detail or self.title or 'no reason given'}"


class OverloadedError(RequestError):
    """429 (the queue or the memory budget is full) or 503 (starting or draining), after all retries.

    Attributes:
        retry_after: seconds after which the daemon asks to come back; None where it did not say.
    """

    def __init__(
        self,
        status: int,
        *,
        retry_after: float | None = None,
        code: str | None = None,
        title: str | None = None,
        detail: str | None = None,
        pointer: str | None = None,
        request_id: str | None = None,
    ) -> None:
        self.retry_after = retry_after
        super().__init__(status, code=code, title=title, detail=detail, pointer=pointer, request_id=request_id)


class DeadlineError(RequestError):
    """504: the deadline of the request (``timeout_ms``, or the daemon's own) passed before the result was there."""
