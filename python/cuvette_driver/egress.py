"""Carries connections from inside of sessions to the server's proxy, which decides about them.

The egress process runs outside of every session; it neither parses what it carries nor decides anything.
It has a poller of its own, because a socket that must not be read for now may still have to be written to.
"""

from __future__ import annotations

import os
import resource
import select
import socket
from typing import Callable

from cuvette_driver.wire import CHUNK

MOST_CONNECTIONS = 64  # For each session; further connections wait in its listener's backlog.
PAUSE = 1.0  # Seconds until a session accepts connections again, after there was no descriptor or memory for one.
GONE = select.POLLHUP | select.POLLERR

Handler = Callable[[int], object]


def run(orders: socket.socket, proxy: str) -> None:
    """Serves the sessions that `orders` brings, and returns when `orders` ends.

    A session is one byte with two descriptors: its listening socket, and the reading end of a pipe that is open as long as it lives.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    Egress(orders, proxy).serve()


class Egress:
    def __init__(self, orders: socket.socket, proxy: str) -> None:
        self.orders = orders
        self.proxy = proxy
        self.poll = ReadWritePoller()
        self.sessions: set[Session] = set()
        self.is_over = False

    def serve(self) -> None:
        self.poll.register(self.orders.fileno(), select.POLLIN, self.on_order)
        while not self.is_over:
            paused = [session for session in self.sessions if session.is_paused]
            self.poll.wait(PAUSE if paused else None)
            for session in paused:
                session.resume()
        for session in list(self.sessions):
            session.close()

    def on_order(self, _: int) -> None:
        try:
            data, fds = socket.recv_fds(self.orders, 1, 2)[:2]
        except ConnectionError:
            data, fds = b"", []
        for fd in fds:
            os.set_inheritable(fd, False)
            os.set_blocking(fd, False)
        if len(fds) == 2:
            self.sessions.add(Session(self, socket.socket(fileno=fds[0]), fds[1]))
            return
        for fd in fds:  # There was no free descriptor for the other one.
            os.close(fd)
        self.is_over = not data


class Session:
    """One session with its connections; it ends when the writing end of its pipe is closed."""

    def __init__(self, egress: Egress, listener: socket.socket, pipe: int) -> None:
        self.egress = egress
        self.poll = egress.poll
        self.listener = listener
        self.pipe = pipe
        self.connections: set[Connection] = set()
        self.is_paused = False
        self.poll.register(pipe, select.POLLIN, self.on_pipe)
        self.listen()

    def listen(self) -> None:
        if self.is_paused or len(self.connections) >= MOST_CONNECTIONS:
            self.poll.unregister(self.listener.fileno())
        else:
            self.poll.register(self.listener.fileno(), select.POLLIN, self.on_client)

    def resume(self) -> None:
        self.is_paused = False
        if self in self.egress.sessions:
            self.listen()

    def on_client(self, _: int) -> None:
        try:
            client = self.listener.accept()[0]
        except (BlockingIOError, ConnectionError):
            return
        except OSError:
            self.is_paused = True
            self.listen()
            return
        try:
            client.setblocking(False)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            proxy = connect(self.egress.proxy)
        except OSError:
            client.close()
            return
        self.connections.add(Connection(self, client, proxy))
        self.listen()

    def on_pipe(self, _: int) -> None:
        try:
            is_open = bool(os.read(self.pipe, CHUNK))
        except BlockingIOError:
            return
        if not is_open:
            self.close()

    def remove(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self.listen()

    def close(self) -> None:
        for connection in list(self.connections):
            connection.close()
        self.egress.sessions.discard(self)
        self.poll.unregister(self.listener.fileno())
        self.listener.close()
        self.poll.unregister(self.pipe)
        os.close(self.pipe)


class Connection:
    """A client inside of a session, joined to the proxy."""

    def __init__(self, session: Session, client: socket.socket, proxy: socket.socket) -> None:
        self.session = session
        self.client = client
        self.proxy = proxy
        self.out = Flow(client, proxy)
        self.back = Flow(proxy, client)
        self.watch()

    def watch(self) -> None:
        poll = self.session.poll
        for sock, read, written, handler in (
            (self.client, self.out, self.back, self.move),
            (self.proxy, self.back, self.out, self.on_proxy),
        ):
            events = (select.POLLIN if read.can_read else 0) | (select.POLLOUT if written.unsent else 0)
            # A registered descriptor reports a hang-up over and over, even without events. Only after the proxy has sent everything is that of use.
            if events or (sock is self.proxy and read.is_done):
                poll.register(sock.fileno(), events, handler)
            else:
                poll.unregister(sock.fileno())

    def move(self, _: int) -> None:
        try:
            self.out.move()
            self.back.move()
        except OSError:
            self.close()
            return
        if self.out.is_done and self.back.is_done:
            self.close()
        else:
            self.watch()

    def on_proxy(self, events: int) -> None:
        if events & GONE and self.back.is_done:
            self.close()  # Clients that keep such connections open would use up their session's limit.
        else:
            self.move(events)

    def close(self) -> None:
        for sock in (self.client, self.proxy):
            self.session.poll.unregister(sock.fileno())
            sock.close()
        self.session.remove(self)


class Flow:
    """One direction of a connection. For backpressure it holds one piece at most: nothing more is read until that is written."""

    def __init__(self, source: socket.socket, target: socket.socket) -> None:
        self.source = source
        self.target = target
        self.unsent = b""
        self.has_ended = False
        self.is_done = False

    @property
    def can_read(self) -> bool:
        return not self.unsent and not self.has_ended

    def move(self) -> None:
        """Moves what can be moved now; raises OSError when the source is broken."""
        if self.can_read:
            try:
                self.unsent = self.source.recv(CHUNK)
            except BlockingIOError:
                return
            self.has_ended = not self.unsent
        if self.is_done:
            return
        try:
            self.unsent = self.unsent[self.target.send(self.unsent) :] if self.unsent else b""
            if self.has_ended and not self.unsent:
                self.target.shutdown(socket.SHUT_WR)
                self.is_done = True
        except BlockingIOError:
            return
        except OSError:
            # The target accepts no more data. What it sent before is still carried in the other direction.
            self.unsent, self.has_ended, self.is_done = b"", True, True


class ReadWritePoller:
    """Calls the handlers of the descriptors that are ready, with what happened to them."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._handlers: dict[int, Handler] = {}

    def register(self, fd: int, events: int, handler: Handler) -> None:
        """Replaces what was registered for the descriptor before."""
        self._poll.register(fd, events)
        self._handlers[fd] = handler

    def unregister(self, fd: int) -> None:
        """Must be called while the descriptor is still open."""
        if self._handlers.pop(fd, None) is not None:
            self._poll.unregister(fd)

    def wait(self, seconds: float | None) -> None:
        for fd, events in self._poll.poll(None if seconds is None else seconds * 1000):
            handler = self._handlers.get(fd)
            if handler is not None:  # An earlier handler of this round may have closed the descriptor.
                handler(events)


def connect(path: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.setblocking(False)
        sock.connect(path)
    except OSError:
        sock.close()
        raise
    return sock
