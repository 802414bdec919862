"""Connects a keeper to its server: passes the server's messages on, sends events, and notices when the server is gone.

Events that a server has not acknowledged wait in the event buffer for the next one.
"""

from __future__ import annotations

import socket
import time
from typing import Callable

from cuvette_driver.event_buffer import EventBuffer
from cuvette_driver.poller import Poller
from cuvette_driver.wire import CHUNK, Lines, Malformed, Message, decode

# What a message that is valid JSON may still raise where it is used: its sender may be broken, or hostile.
MALFORMED = (Malformed, LookupError, TypeError, ValueError, AttributeError)


class ServerLink:
    def __init__(self, poller: Poller, handle: Callable[[Message, bytes], None]) -> None:
        """`handle` is called with each message, and with the line that it came as."""
        self.events = EventBuffer()
        self.connection: socket.socket | None = None
        self._poller = poller
        self._handle = handle
        self._lines = Lines()
        self._alone_since = time.monotonic()

    @property
    def seconds_alone(self) -> float:
        return time.monotonic() - self._alone_since

    @property
    def is_behind(self) -> bool:
        """Backpressure: true while the server has too much to acknowledge."""
        return self.events.is_full(self.connection is not None)

    def accept(self, listener: socket.socket) -> None:
        """Takes a new server in place of the one before."""
        connection, _ = listener.accept()
        self.attach(connection)

    def attach(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._drain()
        self.drop()
        self.connection = connection
        self._lines = Lines()
        self._poller.add(connection, self._receive)

    def _receive(self, connection: socket.socket) -> bool:
        """Handles what the server says; False if it said nothing."""
        try:
            data = connection.recv(CHUNK)
            for line in self._lines.feed(data):
                self._handle(decode(line), line)
        except BlockingIOError:
            return False
        except (OSError, *MALFORMED):
            data = b""
        if not data:
            self.drop()
        return bool(data)

    def _drain(self) -> None:
        """Reads what a server has said before it was gone: an acknowledgement, or that it leaves."""
        while self.connection is not None and self._receive(self.connection):
            pass

    def drop(self) -> None:
        if self.connection is None:
            return
        self._poller.remove(self.connection)
        self.connection.close()
        self.connection = None
        self._alone_since = time.monotonic()

    def flush(self) -> None:
        """Sends as many events as the connection takes now."""
        if self.connection is None:
            return
        try:
            self.events.send(self.connection)
        except OSError:
            self._drain()
            self.drop()
            return
        self._poller.await_room(self.connection, self.events.has_unsent)
