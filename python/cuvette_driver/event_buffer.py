"""Events on their way to the server, kept until the server says that it has them on disk.

A server that comes back after a crash is sent everything that its predecessor had not acknowledged,
so nothing that code printed is lost with the server. Owns numbering, replay and the flow limit.
"""

from __future__ import annotations

import collections
import socket

from cuvette_driver.wire import Message, encode

# Bytes that are not acknowledged: while a server is there to do so, and while there is none.
WINDOW = 1 << 18
HIGH_WATER = 8 << 20


class EventBuffer:
    def __init__(self) -> None:
        self._kept: collections.deque[tuple[int, bytes]] = collections.deque()
        self._unsent: collections.deque[bytes] = collections.deque()
        self._seq = 0
        self._bytes = 0

    def add(self, event: Message) -> None:
        self._seq += 1
        data = encode({**event, "seq": self._seq})
        self._kept.append((self._seq, data))
        self._unsent.append(data)
        self._bytes += len(data)

    def acknowledge(self, seq: int) -> None:
        while self._kept and self._kept[0][0] <= seq:
            self._bytes -= len(self._kept.popleft()[1])

    def start_over(self, greeting: Message) -> None:
        """A new server is there: it gets a greeting, then all that no server has acknowledged."""
        self._unsent = collections.deque([encode(greeting)])
        self._unsent.extend(data for _, data in self._kept)

    def is_full(self, has_server: bool) -> bool:
        """When true, output is left in the pipes, and user code waits. A server is not sent more than it can put away at once."""
        return self._bytes > (WINDOW if has_server else HIGH_WATER)

    @property
    def has_unsent(self) -> bool:
        return bool(self._unsent)

    def send(self, sock: socket.socket) -> None:
        """Writes what the socket takes now; raises OSError when the server is gone."""
        while self._unsent:
            data = self._unsent[0]
            try:
                sent = sock.send(data)
            except BlockingIOError:
                return
            if sent < len(data):
                self._unsent[0] = data[sent:]
                return
            self._unsent.popleft()
