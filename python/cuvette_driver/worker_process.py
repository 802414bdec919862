"""Forks the worker and holds what its keeper needs of it: the process, the channel to it, and its output pipes."""

from __future__ import annotations

import os
import select
import socket
import traceback
from typing import TYPE_CHECKING, Callable

from cuvette_driver import worker
from cuvette_driver.output_pipe import OutputPipe
from cuvette_driver.wire import CHUNK, Lines, Malformed, Message

if TYPE_CHECKING:
    from cuvette_driver.confinement import Confinement


class WorkerProcess:
    def __init__(self, close_inherited: Callable[[], None], confinement: Confinement | None = None) -> None:
        """Forks a worker; `close_inherited` closes, in the new process, what only the keeper may hold."""
        ours, theirs = socket.socketpair()
        self.pipes = (OutputPipe("stdout"), OutputPipe("stderr"))
        self.pid = os.fork()
        if self.pid == 0:
            try:
                close_inherited()
                ours.close()
                for pipe in self.pipes:
                    pipe.close()
                if confinement is not None:
                    confinement.drop_privileges_as_interpreter({theirs.fileno(), *(pipe.writer for pipe in self.pipes)})
                worker.main(theirs, *(pipe.writer for pipe in self.pipes))
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        theirs.close()
        for pipe in self.pipes:
            pipe.close_writer()
        self.channel: socket.socket | None = ours
        self._lines = Lines()
        self.has_unread = False

    def send(self, line: bytes) -> None:
        """Passes on a message, as it came."""
        if self.channel is not None:
            try:
                self.channel.sendall(line + b"\n")
            except OSError:
                pass  # It is dying, and will be reaped.

    def receive(self) -> list[Message] | None:
        """Receives the messages that are there now; None once the channel has ended, or what comes from it is malformed."""
        self.has_unread = False
        try:
            data = b"" if self.channel is None else self.channel.recv(CHUNK, socket.MSG_DONTWAIT)
            messages = list(self._lines.messages(data))
        except BlockingIOError:
            return []
        except (OSError, Malformed):
            return None
        self.has_unread = len(data) == CHUNK
        return messages if data else None

    @property
    def is_mid_message(self) -> bool:
        """True while a message is on its way: what its pipes hold may come after it."""
        return self.channel is not None and (self.has_unread or self._lines.is_in_message)

    def wait_until_ready(self) -> None:
        """Waits for its first message, by which it says that it can take others."""
        while self.channel is not None and self.receive() == []:
            select.select([self.channel], [], [])

    def close_channel(self) -> None:
        if self.channel is not None:
            self.channel.close()
            self.channel = None

    def close(self) -> None:
        self.close_channel()
        for pipe in self.pipes:
            pipe.close()
