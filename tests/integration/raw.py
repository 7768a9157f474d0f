"""Raw HTTP over a socket, for clients that misbehave."""
import json


def post_head(path, length=None, extra=(), host="localhost", content_type="application/json"):
    """The head of a POST, with whatever headers a test wants to break."""
    lines = [f"POST {path} HTTP/1.1"]
    if host:
        lines.append(f"Host: {host}")
    if content_type:
        lines.append(f"Content-Type: {content_type}")
    if length is not None:
        lines.append(f"Content-Length: {length}")
    lines += list(extra)
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def post(path, fields, extra=()):
    body = json.dumps(fields).encode()
    return post_head(path, len(body), extra) + body


class Stream:
    """Reads replies one after the other from a socket."""

    def __init__(self, sock):
        self.sock, self.buffer = sock, b""

    def _fill(self):
        more = self.sock.recv(65536)
        if not more:
            return False
        self.buffer += more
        return True

    def reply(self):
        """(status, headers, body) of the next reply, or None when the peer closed first."""
        while b"\r\n\r\n" not in self.buffer:
            if not self._fill():
                return None
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        status = int(lines[0].split()[1])
        headers = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in lines[1:])}
        if status == 100:
            return self.reply()
        length = int(headers.get("content-length", 0))
        while len(self.buffer) < length:
            if not self._fill():
                return None
        body, self.buffer = self.buffer[:length], self.buffer[length:]
        return status, headers, body

    def closed(self):
        """True when the peer closed (or reset) without another byte."""
        try:
            return self.sock.recv(1) == b""
        except ConnectionError:
            return True
