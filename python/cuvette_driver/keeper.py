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
from cuvette_driver.output_pipe import Pipe
from cuvette_driver.event_buffer import Outbox
from cuvette_driver.execution import Running
from cuvette_driver.poller import Watch
from cuvette_driver.wire import CHUNK, Lines, Malformed, Message, decode, encode, number, receive_descriptor

POLL_WITHOUT_SERVER, POLL_BETWEEN_CALLS, A_DAY = 2.0, 2.0, 86_400.0
LONGEST_WAIT = 3600.0  # The kernel counts in milliseconds that have an end.
DYING = 0.1  # A dying process closes its channel a moment before it can be reaped.
# What a broken peer may make of a message that is valid JSON.
NONSENSE = (Malformed, LookupError, TypeError, ValueError, AttributeError)


def assign(assignment: socket.socket, listener: socket.socket, request: Message) -> None:
    """The zygote's side of `take`: hands a waiting keeper the session's listening socket and its description.

    What only the worker needs is passed on unread, already encoded.
    """
    socket.send_fds(assignment, [b"\n"], [listener.fileno()])
    own = {name: request.get(name) for name in ("socket", "linger", "owner", "mounts")}
    assignment.sendall(encode(own))
    assignment.sendall(encode({**request, "op": "enter"}))


class Keeper(abc.ABC):
    def __init__(self, assignment: socket.socket, first: Any, confinement: Any = None) -> None:
        """`confinement` is the session's, where it is confined; this process is then the first in it."""
        self.assignment = assignment
        self.confinement = confinement
        self.worker = first
        # The session's socket, by the folder above its own: where it stands is hidden from a confined session, the keeper included.
        self.sockets = -1
        self.path = ""
        self.inode = 0
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
        self.has_finished = False
        self.is_new = True
        self.oom_kills = self.memory_kills()
        self.next_check = 0.0

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
        self.assignment.sendall(b"%d" % os.getpid() if self.confinement is None else b"%d %s" % self.confinement.names)
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
        if request["socket"]:
            folder, name = os.path.split(request["socket"])
            self.sockets = os.open(os.path.dirname(folder), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            self.path = os.path.join(os.path.basename(folder), name)
            self.inode = os.stat(self.path, dir_fd=self.sockets).st_ino
        self.settle(request["mounts"])
        self.linger = request["linger"]
        self.owner_for_life = tuple(request["owner"]) if request["owner"] else None
        self.listener = socket.socket(fileno=listener)
        self.watch.add(self.listener, self.on_connect)
        self.worker.send(self.enter)
        return True

    def settle(self, mounts: Any) -> None:
        if self.confinement is not None and mounts and not self.confinement.is_settled:
            self.confinement.settle(mounts)

    # -- the loop ---------------------------------------------------------------------------------

    def serve(self) -> None:
        while not self.stopping:
            self.watch_worker()
            # The worker's messages come before its pipes: it lets the pipes run dry before it sends one.
            self.watch.wait(self.next_wait(), self.worker.channel)
            self.on_time()
            self.send()
            if self.has_finished:
                self.has_finished = False
                self.rest()

    def watch_worker(self) -> None:
        """Backpressure: while the server has too much to acknowledge, the worker is not read, unless it is being stopped."""
        if self.outbox.is_full(self.server is not None) and not (self.running and self.running.why):
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
        if self.confinement is not None and self.last_id is not None and (self.running or self.worker.pid):
            waits.append(max(0.0, self.next_check - time.monotonic()))
        return min(min(waits), LONGEST_WAIT) if waits else None

    def on_time(self) -> None:
        if self.running:
            self.running.climb()
        self.check_use()
        if self.server is None and self.nobody_comes():
            self.stopping = True

    def check_use(self) -> None:
        if self.confinement is None or time.monotonic() < self.next_check or not self.worker.pid:
            return
        if self.last_id is None:
            return  # No code has run yet: what the session has used is not the doing of this interpreter.
        if self.has_finished:
            return  # What the call has used is not yet told apart from what goes on after it.
        guard = self.confinement.guard
        limit = guard.check()
        if limit is not None and self.running is None:
            if guard.is_at_work():
                processes.kill_below(os.getpid(), 0)  # What goes on after a call has no one to tell.
        elif limit is not None and self.running is not None and self.running.why is None:
            if limit == "disk-quota":
                self.running.interrupt(limit, is_urgent=True)
            else:
                self.running.end(limit)
        self.next_check = time.monotonic() + (guard.interval if self.running else POLL_BETWEEN_CALLS)

    def nobody_comes(self) -> bool:
        alone = time.monotonic() - self.alone_since
        owner = self.owner or self.owner_for_life
        if owner and not processes.is_same(*owner, self.confinement and self.confinement.processes):
            return alone > POLL_WITHOUT_SERVER
        return alone > (A_DAY if self.running else self.linger) or not self.has_socket()

    def has_socket(self) -> bool:
        return not self.path or os.access(self.path, os.F_OK, dir_fd=self.sockets)

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
            "pid": os.getpid() if self.confinement is None else self.confinement.pid,
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
            owner = message.get("owner")
            self.linger, self.owner = number(message["linger"]), (int(number(owner[0])), str(owner[1])) if owner else None
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

    def start(self, message: Message, worker: int) -> Running:
        if self.confinement is not None:
            self.confinement.guard.begin()
            self.next_check = time.monotonic() + self.confinement.guard.interval
        self.running = Running(message, worker)
        self.last_id = self.running.id
        return self.running

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
        if self.confinement is not None:
            outcome["hit"] = self.confinement.guard.hits(went_well=ending.get("status") == "ok" or ending.get("code") == 0)
        self.outbox.add({**outcome, "ev": "done", "id": self.running.id, "ended": [command or str(pid) for pid, command in ended]})
        self.running = None
        self.has_finished = True

    def rest(self) -> None:
        if self.confinement is not None:
            self.confinement.guard.rest()

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
        before, self.oom_kills = self.oom_kills, self.memory_kills()
        return self.oom_kills > before

    def memory_kills(self) -> int:
        return processes.out_of_memory_kills() if self.confinement is None else self.confinement.guard.memory_kills()

    # -- the end ----------------------------------------------------------------------------------

    def close(self) -> None:
        self.stopping = True
        processes.kill_below(os.getpid(), 0)
        processes.bury(DYING)
        self.drop_server()
        if not self.path:
            return
        try:
            # Another keeper may have come for the session since.
            if os.stat(self.path, dir_fd=self.sockets).st_ino == self.inode:
                os.unlink(self.path, dir_fd=self.sockets)
        except OSError:
            pass
        try:
            os.rmdir(os.path.dirname(self.path), dir_fd=self.sockets)
        except OSError:
            pass
