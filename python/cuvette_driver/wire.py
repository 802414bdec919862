"""Frames JSON messages, one a line, over a stream socket. What a message means is left to others."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from typing import Any

Message = dict[str, Any]
CHUNK = 1 << 16

_ENCODER = json.JSONEncoder(separators=(",", ":"), default=str)
_DECODER = json.JSONDecoder()


class Malformed(Exception):
    """The peer sent something that is not a JSON object on a line."""


def encode(message: Message) -> bytes:
    return _ENCODER.encode(message).encode("ascii") + b"\n"


class Lines:
    """Collects received bytes and gives back whole lines."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, data: bytes) -> list[bytes]:
        if b"\n" not in data:
            self._parts += [data] if data else []
            return []
        *lines, rest = (b"".join(self._parts) + data).split(b"\n")
        self._parts = [rest] if rest else []
        return lines

    def messages(self, data: bytes) -> Iterator[Message]:
        return map(decode, self.feed(data))

    @property
    def is_in_message(self) -> bool:
        """True while part of a message has come, and its end has not."""
        return bool(self._parts)


def decode(line: bytes) -> Message:
    try:
        message = _DECODER.decode(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise Malformed(str(error)) from error
    if not isinstance(message, dict):
        raise Malformed("a message must be an object")
    return message


def checked_number(value: object, most: float = 1e12) -> float:
    """Gives the value back if it is a finite number in range; what the peer says is not to be relied on."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= most:
        raise Malformed("expected a number")
    return value


def receive_descriptor(sock: socket.socket) -> int | None:
    """Receives a descriptor that the peer passes on, for this process alone; None when the peer is gone."""
    _, fds, _, _ = socket.recv_fds(sock, 1, 1)
    for fd in fds:
        os.set_inheritable(fd, False)
    return fds[0] if fds else None


class Channel:
    """The worker's end of the socket pair to its keeper; it blocks."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._lines = Lines()
        self._ready: list[Message] = []

    def send(self, message: Message) -> None:
        self.sock.sendall(encode(message))

    def receive(self) -> Message | None:
        """The next message, or None when the other end is gone."""
        while not self._ready:
            data = self.sock.recv(CHUNK)
            if not data:
                return None
            self._ready.extend(self._lines.messages(data))
        return self._ready.pop(0)
