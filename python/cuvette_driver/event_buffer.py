"""Buffers events until the server has acknowledged that it has them on disk; owns their numbering, replay and the backpressure limit.

A server that comes back after a crash is sent everything that its predecessor had not acknowledged,
so that nothing that code printed is lost with the server.
"""

from __future__ import annotations

import collections
import socket

from cuvette_driver.wire import Message, encode

# The most bytes without acknowledgement: while a server is connected, and while there is none.
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

    def answer(self, event: Message) -> None:
        """Sends the answer to a question, which is not kept: only the server that has asked waits for it, and it acknowledges none."""
        self._seq += 1
        self._unsent.append(encode({**event, "seq": self._seq}))

    def acknowledge(self, seq: int) -> None:
        while self._kept and self._kept[0][0] <= seq:
            self._bytes -= len(self._kept.popleft()[1])

    def start_over(self, greeting: Message) -> None:
        """Prepares a new connection: the server gets a greeting, then all that no server has acknowledged."""
        self._unsent = collections.deque([encode(greeting)])
        self._unsent.extend(data for _, data in self._kept)

    def is_full(self, has_server: bool) -> bool:
        """While this is true, output is left in the pipes, and user code waits."""
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
