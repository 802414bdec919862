"""Hands a session from the zygote to a keeper that waits for one: the listening socket, and the description of the session."""

from __future__ import annotations

import socket

from cuvette_driver.lease import Lease
from cuvette_driver.session_socket import SessionSocket
from cuvette_driver.wire import CHUNK, Lines, Message, decode, encode, receive_descriptor


def assign(assignment: socket.socket, listener: socket.socket, request: Message) -> None:
    """The zygote's side. What only the worker needs is passed on unread, already encoded."""
    socket.send_fds(assignment, [b"\n"], [listener.fileno()])
    own = {name: request.get(name) for name in ("socket", "linger", "owner", "mounts")}
    assignment.sendall(encode(own))
    assignment.sendall(encode({**request, "op": "enter"}))


class Assignment:
    """The keeper's side: what it knows of its session, once it has one."""

    def __init__(self, sock: socket.socket, proc_fd: int | None = None) -> None:
        self.sock = sock
        self._proc_fd = proc_fd
        self.listener: socket.socket | None = None
        self.socket_file = SessionSocket()
        self.lease = Lease()
        self.mounts: list[list[str]] | None = None
        # The first message to every worker of the session.
        self.enter = b""

    def wait(self, ready: bytes) -> bool:
        """Says that the keeper is ready and waits for a session; False if the zygote ends before it has one."""
        self.sock.sendall(ready)
        listener = receive_descriptor(self.sock)
        if listener is None:
            return False
        lines = Lines()
        received: list[bytes] = []
        while len(received) < 2:
            data = self.sock.recv(CHUNK)
            if not data:
                return False
            received += lines.feed(data)
        request, self.enter = decode(received[0]), received[1]
        self.socket_file = SessionSocket(request["socket"])
        self.lease = Lease(request["linger"], tuple(request["owner"]) if request["owner"] else None, self._proc_fd)
        self.mounts = request["mounts"]
        self.listener = socket.socket(fileno=listener)
        return True
