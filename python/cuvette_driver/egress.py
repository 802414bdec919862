"""The egress process: passes connections from inside sessions on to the server's proxy, which decides about them.

It stands outside of every session, understands nothing of what it passes on, and decides nothing.
It polls by itself, not with `Watch`: a side that must not be read for now is still to be written to.
"""

from __future__ import annotations

import os
import resource
import select
import socket
from typing import Callable

from cuvette_driver.wire import CHUNK

MOST_CONNECTIONS = 64  # Of one session; further ones wait in its listener's backlog.
REST = 1.0  # Seconds until a session takes connections again, after there was no descriptor or no memory for one.
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
        self.poll = Poll()
        self.sessions: set[Session] = set()
        self.is_over = False

    def serve(self) -> None:
        self.poll.want(self.orders.fileno(), select.POLLIN, self.on_order)
        while not self.is_over:
            resting = [session for session in self.sessions if session.is_resting]
            self.poll.wait(REST if resting else None)
            for session in resting:
                session.go_on()
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
        for fd in fds:  # There was no room for the other one.
            os.close(fd)
        self.is_over = not data


class Session:
    """What is open for one session; it ends when the writing end of its pipe is closed."""

    def __init__(self, egress: Egress, listener: socket.socket, pipe: int) -> None:
        self.egress = egress
        self.poll = egress.poll
        self.listener = listener
        self.pipe = pipe
        self.connections: set[Connection] = set()
        self.is_resting = False
        self.poll.want(pipe, select.POLLIN, self.on_pipe)
        self.listen()

    def listen(self) -> None:
        if self.is_resting or len(self.connections) >= MOST_CONNECTIONS:
            self.poll.forget(self.listener.fileno())
        else:
            self.poll.want(self.listener.fileno(), select.POLLIN, self.on_client)

    def go_on(self) -> None:
        self.is_resting = False
        if self in self.egress.sessions:
            self.listen()

    def on_client(self, _: int) -> None:
        try:
            client = self.listener.accept()[0]
        except (BlockingIOError, ConnectionError):
            return
        except OSError:
            self.is_resting = True
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
        self.poll.forget(self.listener.fileno())
        self.listener.close()
        self.poll.forget(self.pipe)
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
            events = (select.POLLIN if read.is_hungry else 0) | (select.POLLOUT if written.rest else 0)
            # Without any event a hang-up would still be told, over and over. It is of use only once the proxy has said all.
            if events or (sock is self.proxy and read.is_done):
                poll.want(sock.fileno(), events, handler)
            else:
                poll.forget(sock.fileno())

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
            self.close()  # A client that holds on to such a connection would fill its session's share with them.
        else:
            self.move(events)

    def close(self) -> None:
        for sock in (self.client, self.proxy):
            self.session.poll.forget(sock.fileno())
            sock.close()
        self.session.remove(self)


class Flow:
    """One direction of a connection. It holds one piece at most: nothing more is read until that is written."""

    def __init__(self, source: socket.socket, target: socket.socket) -> None:
        self.source = source
        self.target = target
        self.rest = b""
        self.has_ended = False
        self.is_done = False

    @property
    def is_hungry(self) -> bool:
        return not self.rest and not self.has_ended

    def move(self) -> None:
        """Moves what can be moved now; raises OSError when the source is broken."""
        if self.is_hungry:
            try:
                self.rest = self.source.recv(CHUNK)
            except BlockingIOError:
                return
            self.has_ended = not self.rest
        if self.is_done:
            return
        try:
            self.rest = self.rest[self.target.send(self.rest) :] if self.rest else b""
            if self.has_ended and not self.rest:
                self.target.shutdown(socket.SHUT_WR)
                self.is_done = True
        except BlockingIOError:
            return
        except OSError:
            # The target takes nothing more. What it said before that is still to be passed on, the other way.
            self.rest, self.has_ended, self.is_done = b"", True, True


class Poll:
    """Calls the handlers of the descriptors that are ready, with what happened to them."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._handlers: dict[int, Handler] = {}

    def want(self, fd: int, events: int, handler: Handler) -> None:
        """Takes the place of what was wanted of it before."""
        self._poll.register(fd, events)
        self._handlers[fd] = handler

    def forget(self, fd: int) -> None:
        """To be called while it is still open."""
        if self._handlers.pop(fd, None) is not None:
            self._poll.unregister(fd)

    def wait(self, seconds: float | None) -> None:
        for fd, events in self._poll.poll(None if seconds is None else seconds * 1000):
            handler = self._handlers.get(fd)
            if handler is not None:  # An earlier handler of this round may have closed it, and another have its number.
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
