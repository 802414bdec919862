"""A keeper: a process beside the one that user code runs in, its worker.

It owns the socket that the server talks to, drains the worker's output pipes whatever the worker does,
enforces the time limit, learns how the worker died, and ends what user code left running.
It outlives the server, and waits for the next one. It never runs user code. What the worker is, and what
follows its death, is for the two kinds of keepers: of an interpreter, and of programs.
"""

from __future__ import annotations

import abc
import os
import signal
import socket
import time
from typing import Any

from cuvette_driver import linux, processes
from cuvette_driver.capture import Pipe
from cuvette_driver.outbox import Outbox
from cuvette_driver.running import Running
from cuvette_driver.watch import Watch
from cuvette_driver.wire import CHUNK, Lines, Malformed, Message, decode, encode, receive_descriptor

POLL_WITHOUT_SERVER, A_DAY = 2.0, 86_400.0
DYING = 0.1  # A dying process closes its channel a moment before it can be reaped.
# What a broken peer may make of a message that is valid JSON.
NONSENSE = (Malformed, LookupError, TypeError, ValueError, AttributeError)


def assign(assignment: socket.socket, listener: socket.socket, request: Message) -> None:
    """The zygote's side of `take`: hands a waiting keeper the session's listening socket and its description.

    What only the worker needs is passed on unread, already encoded.
    """
    socket.send_fds(assignment, [b"\n"], [listener.fileno()])
    assignment.sendall(encode({"socket": request["socket"], "linger": request["linger"], "owner": request.get("owner")}))
    assignment.sendall(encode({**request, "op": "enter"}))


class Keeper(abc.ABC):
    def __init__(self, assignment: socket.socket, first: Any) -> None:
        self.assignment = assignment
        self.worker = first
        self.path = ""
        self.enter = b""
        self.linger = 0.0
        self.listener: socket.socket | None = None
        self.server: socket.socket | None = None
        self.server_lines = Lines()
        self.outbox = Outbox()
        self.running: Running | None = None
        self.last_id: str | None = None
        self.alone_since = time.monotonic()
        self.owner: tuple[int, str] | None = None
        self.owner_for_life: tuple[int, str] | None = None
        self.generation = 1
        self.stopping = False
        self.is_new = True
        self.oom_kills = processes.out_of_memory_kills()

        self.watch = Watch()
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_read, False)
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        self.wake_fds = (wake_read, wake_write)
        self.watch.add(wake_read, self.on_signal)

    def take(self) -> bool:
        """Says that it is ready and waits for a session; False if the zygote ends before it has one for us."""
        self.begin()
        self.assignment.sendall(b"%d" % os.getpid())
        listener = receive_descriptor(self.assignment)
        if listener is None:
            return False
        lines = Lines()
        received: list[bytes] = []
        while len(received) < 2:
            data = self.assignment.recv(CHUNK)
            if not data:
                return False
            received += lines.feed(data)
        request, self.enter = decode(received[0]), received[1]
        self.path = request["socket"]
        self.linger = request["linger"]
        self.owner_for_life = tuple(request["owner"]) if request["owner"] else None
        self.listener = socket.socket(fileno=listener)
        self.watch.add(self.listener, self.on_connect)
        self.worker.send(self.enter)
        return True

    # -- the loop ---------------------------------------------------------------------------------

    def serve(self) -> None:
        while not self.stopping:
            self.watch_worker()
            # The worker's messages come before its pipes: it lets the pipes run dry before it sends one.
            self.watch.wait(self.next_wait(), self.worker.channel)
            self.on_time()
            self.send()

    def watch_worker(self) -> None:
        """Backpressure: while the server has too much to acknowledge, the worker is not read, unless it is being stopped."""
        if self.outbox.is_full and not (self.running and self.running.why):
            self.unwatch_worker()
            return
        if self.worker.channel is not None:
            self.watch.add(self.worker.channel, self.on_worker)
        for pipe in self.worker.pipes:
            if pipe.ended or self.worker.is_talking:
                self.watch.remove(pipe)
            else:
                self.watch.add(pipe, self.on_output)

    def unwatch_worker(self) -> None:
        if self.worker.channel is not None:
            self.watch.remove(self.worker.channel)
        for pipe in self.worker.pipes:
            self.watch.remove(pipe)

    def next_wait(self) -> float | None:
        waits = [] if self.server else [POLL_WITHOUT_SERVER]
        if self.running and (deadline := self.running.next_deadline()) is not None:
            waits.append(max(0.0, deadline - time.monotonic()))
        return min(waits, default=None)

    def on_time(self) -> None:
        if self.running:
            self.running.climb()
        if self.server is None and self.nobody_comes():
            self.stopping = True

    def nobody_comes(self) -> bool:
        alone = time.monotonic() - self.alone_since
        owner = self.owner or self.owner_for_life
        if owner and not processes.is_same(*owner):
            return alone > POLL_WITHOUT_SERVER
        return alone > (A_DAY if self.running else self.linger) or not os.path.exists(self.path)

    # -- the server -------------------------------------------------------------------------------

    def on_connect(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        connection.setblocking(False)
        self.hear_out()
        self.drop_server()
        self.server = connection
        self.server_lines = Lines()
        self.owner = None
        self.watch.add(connection, self.on_server)
        self.outbox.start_over(self.greeting())

    def greeting(self) -> Message:
        return {
            "ev": "hello",
            "pid": os.getpid(),
            "worker": self.worker.pid,
            "generation": self.generation,
            "running": self.running.id if self.running else None,
            **self.describe(),
        }

    def on_server(self, connection: socket.socket) -> bool:
        """Obeys what the server says; False if it said nothing."""
        try:
            data = connection.recv(CHUNK)
            for line in self.server_lines.feed(data):
                self.obey(decode(line), line)
        except BlockingIOError:
            return False
        except (OSError, *NONSENSE):
            data = b""
        if not data:
            self.drop_server()
        return bool(data)

    def obey(self, message: Message, line: bytes) -> None:
        op = message.get("op")
        if op == "ack":
            self.outbox.acknowledge(message["seq"])
        elif op == "execute":
            self.execute(message, line)
        elif op == "interrupt":
            if self.running and message.get("id") in (None, self.running.id):
                self.running.interrupt(message["reason"])
        elif op in ("variables", "answer"):
            self.worker.send(line)
        elif op == "continue":
            self.go_on()
        elif op == "reset":
            self.reset(message)
        elif op == "leave":
            self.linger = message["linger"]
            self.owner = (message["owner"][0], message["owner"][1]) if message.get("owner") else None
        elif op == "stop":
            self.stopping = True

    def hear_out(self) -> None:
        """A server that is gone may have said something before: an acknowledgement, or that it leaves."""
        while self.server is not None and self.on_server(self.server):
            pass

    def drop_server(self) -> None:
        if self.server is None:
            return
        self.watch.remove(self.server)
        self.server.close()
        self.server = None
        self.alone_since = time.monotonic()

    def send(self) -> None:
        if self.server is None:
            return
        try:
            self.outbox.send(self.server)
        except OSError:
            self.hear_out()
            self.drop_server()
            return
        self.watch.await_room(self.server, self.outbox.has_unsent)

    # -- executions -------------------------------------------------------------------------------

    def finish(self, ending: Message) -> None:
        """The one place where an execution ends: what it started is ended, the pipes are emptied, the record goes out."""
        if self.running is None:
            return
        kept = frozenset(pid for pid in ending.pop("kept", ()) if isinstance(pid, int))
        ended = processes.kill_below(os.getpid(), self.worker.pid, kept)
        for pipe in self.worker.pipes:
            self.emit(pipe, pipe.read_all())
        if self.is_new:
            self.is_new = False
            linux.go_first()
        outcome = self.running.outcome(ending)
        self.outbox.add({"ev": "done", "id": self.running.id, **outcome, "ended": [command or str(pid) for pid, command in ended]})
        self.running = None

    # -- the worker -------------------------------------------------------------------------------

    @abc.abstractmethod
    def begin(self) -> None:
        """Gets ready before there is a session."""

    @abc.abstractmethod
    def describe(self) -> Message:
        """What the server is told of it in the greeting."""

    @abc.abstractmethod
    def execute(self, message: Message, line: bytes) -> None:
        """Starts what is asked for; `line` is the message as it came."""

    def go_on(self) -> None:
        """The server has what it wanted to see; for those that wait for it."""

    @abc.abstractmethod
    def reset(self, message: Message) -> None: ...

    @abc.abstractmethod
    def on_worker(self, channel: socket.socket) -> None:
        """The worker has said something."""

    @abc.abstractmethod
    def on_death(self, status: int, usage: Any) -> None: ...

    def on_output(self, pipe: Pipe) -> None:
        if not self.worker.is_talking:
            self.emit(pipe, pipe.read())

    def emit(self, pipe: Pipe, text: str) -> None:
        if self.running:
            text = text[: self.running.admit(len(text))]
        if text and self.last_id is not None:
            self.outbox.add({"ev": "stream", "id": self.last_id, "name": pipe.name, "text": text})

    def on_signal(self, fd: int) -> None:
        try:
            numbers = os.read(fd, CHUNK)
        except BlockingIOError:
            return
        if signal.SIGTERM in numbers:
            self.stopping = True
        self.reap()

    def reap(self) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if os.WIFSTOPPED(status):
                if pid == self.worker.pid:
                    os.kill(pid, signal.SIGCONT)  # Code that stops itself would never answer again.
            elif pid == self.worker.pid and not self.stopping:
                self.on_death(status, usage)

    def is_short_of_memory(self) -> bool:
        """True if the kernel has killed some process for lack of memory since this was last asked."""
        before, self.oom_kills = self.oom_kills, processes.out_of_memory_kills()
        return self.oom_kills > before

    # -- the end ----------------------------------------------------------------------------------

    def close(self) -> None:
        self.stopping = True
        processes.kill_below(os.getpid(), 0)
        processes.bury(DYING)
        self.drop_server()
        if not self.path:
            return
        for remove, path in ((os.unlink, self.path), (os.rmdir, os.path.dirname(self.path))):
            try:
                remove(path)
            except OSError:
                pass
