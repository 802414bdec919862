"""A keeper is a process beside the one that user code runs in, its worker; it serves one session, outlives its servers, and never runs user code.

This module owns the event loop and what the server can ask for. It puts together the parts that do the work: the assignment, which says
what the session is; the link to the server; the slot of the execution that runs; the limits. What the worker is, and what follows
its death, is left to the two kinds of keepers: of an interpreter, and of programs.
"""

from __future__ import annotations

import abc
import os
import signal
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Callable, Protocol

from cuvette_driver import processes
from cuvette_driver.assignment import Assignment
from cuvette_driver.execution import Execution
from cuvette_driver.execution_slot import ExecutionSlot
from cuvette_driver.limit_enforcer import LimitEnforcer
from cuvette_driver.output_pipe import OutputPipe
from cuvette_driver.poller import Poller
from cuvette_driver.server_link import ServerLink
from cuvette_driver.signal_pipe import SignalPipe
from cuvette_driver.wire import Message, checked_number

if TYPE_CHECKING:
    import resource

    from cuvette_driver.confinement import Confinement

POLL_WITHOUT_SERVER = 2.0
LONGEST_WAIT = 3600.0  # poll() takes a number of milliseconds that is limited.
EXIT_DELAY = 0.1  # A dying process closes its channel a moment before it can be reaped.


class KeptProcess(Protocol):
    """What code runs in: the worker of an interpreter, or a program. The pid is 0 while there is none."""

    pid: int
    channel: socket.socket | None

    @property
    def pipes(self) -> Sequence[OutputPipe]: ...

    @property
    def is_mid_message(self) -> bool: ...

    def send(self, line: bytes) -> None: ...

    def close(self) -> None: ...


class Keeper(abc.ABC):
    worker: KeptProcess
    generation = 1

    def __init__(self, assignment: socket.socket, confinement: Confinement | None = None) -> None:
        """`confinement` is the session's, where it is confined; this process is then the first in it."""
        self.confinement = confinement
        self.session = Assignment(assignment, None if confinement is None else confinement.processes)
        self.poller = Poller()
        self.server = ServerLink(self.poller, self.handle)
        self.limits = LimitEnforcer(None if confinement is None else confinement.monitor)
        self.executions = ExecutionSlot(self.server.events, self.limits)
        self.signals = SignalPipe()
        self.poller.add(self.signals.reader, self.on_signal)
        self.is_stopping = False

    def run(self, serve: Callable[[], None]) -> None:
        """Gets ready, waits to be given a session, and serves it until it is told to stop or nobody needs it."""
        if self.confinement is not None:
            self.confinement.protect_keeper()
        try:
            self.prepare()
            if self.take_session():
                serve()
        finally:
            self.close()

    def take_session(self) -> bool:
        if not self.session.wait(b"%d" % os.getpid() if self.confinement is None else b"%d %s" % self.confinement.names):
            return False
        if self.confinement is not None and self.session.mounts and not self.confinement.has_folders:
            self.confinement.mount_folders(self.session.mounts)
        self.poller.add(self.session.listener, self.on_connect)
        self.worker.send(self.session.enter)
        return True

    # -- the loop ---------------------------------------------------------------------------------

    def serve(self) -> None:
        while not self.is_stopping:
            self.watch_worker()
            # The worker's messages are read before its pipes, because it waits for the pipes to be empty before it sends one.
            self.poller.wait(self.next_wait(), self.worker.channel)
            self.on_time()
            self.server.flush()
            if self.executions.take_finished():
                self.on_finished()

    def watch_worker(self) -> None:
        """While the server is behind, the worker is not read, unless it is being stopped."""
        execution = self.executions.current
        if self.server.is_behind and not (execution and execution.why):
            self.unwatch_worker()
            return
        if self.worker.channel is not None:
            self.poller.add(self.worker.channel, self.on_worker)
        for pipe in self.worker.pipes:
            if pipe.ended or self.worker.is_mid_message:
                self.poller.remove(pipe)
            else:
                self.poller.add(pipe, self.on_output)

    def unwatch_worker(self) -> None:
        if self.worker.channel is not None:
            self.poller.remove(self.worker.channel)
        for pipe in self.worker.pipes:
            self.poller.remove(pipe)

    def next_wait(self) -> float | None:
        execution = self.executions.current
        waits = [] if self.server.connection else [POLL_WITHOUT_SERVER]
        if execution and (seconds := execution.seconds_to_deadline()) is not None:
            waits.append(seconds)
        if self.executions.last_id is not None and (execution or self.worker.pid) and (seconds := self.limits.seconds_to_check()) is not None:
            waits.append(seconds)
        return min(*waits, LONGEST_WAIT) if waits else None

    def on_time(self) -> None:
        self.executions.climb()
        if self.worker.pid:
            self.executions.check_limits()
        if self.server.connection is None and self.is_abandoned():
            self.is_stopping = True

    def is_abandoned(self) -> bool:
        is_busy = self.executions.current is not None
        return self.session.lease.has_expired(self.server.seconds_alone, is_busy, self.session.socket_file.exists())

    # -- the server -------------------------------------------------------------------------------

    def on_connect(self, listener: socket.socket) -> None:
        self.server.accept(listener)
        self.session.lease.owner = None
        self.server.events.start_over(self.greeting())

    def greeting(self) -> Message:
        execution = self.executions.current
        return {
            "ev": "hello",
            "pid": os.getpid() if self.confinement is None else self.confinement.pid,
            "worker": self.worker.pid,
            "generation": self.generation,
            "running": execution.id if execution and not execution.is_question else None,
            **self.describe(),
        }

    def handle(self, message: Message, line: bytes) -> None:
        """Does what the server asks for; `line` is the message as it came."""
        op = message.get("op")
        if op == "ack":
            self.server.events.acknowledge(message["seq"])
        elif op == "execute":
            self.execute(message, line)
        elif op == "interrupt":
            execution = self.executions.current
            if execution and message.get("id") in (None, execution.id):
                execution.interrupt(message["reason"])
        elif op in ("variables", "answer"):
            self.worker.send(line)
        elif op in ("inspect", "complete"):
            self.ask(message, line)
        elif op == "continue":
            self.go_on()
        elif op == "reset":
            self.reset(message)
        elif op == "leave":
            owner, lease = message.get("owner"), self.session.lease
            lease.linger, lease.owner = checked_number(message["linger"]), (int(checked_number(owner[0])), str(owner[1])) if owner else None
        elif op == "stop":
            self.is_stopping = True

    # -- the worker -------------------------------------------------------------------------------

    @abc.abstractmethod
    def prepare(self) -> None:
        """Gets ready before there is a session."""

    @abc.abstractmethod
    def describe(self) -> Message:
        """What the server is told of it in the greeting."""

    @abc.abstractmethod
    def execute(self, message: Message, line: bytes) -> None:
        """Starts what is asked for."""

    @abc.abstractmethod
    def ask(self, message: Message, line: bytes) -> None:
        """Answers a question about the session."""

    @abc.abstractmethod
    def go_on(self) -> None:
        """The server has what it wanted to see; for keepers that wait for it."""

    @abc.abstractmethod
    def reset(self, message: Message) -> None:
        """Gives the session a worker without state."""

    @abc.abstractmethod
    def on_worker(self, channel: socket.socket) -> None:
        """The worker has said something."""

    @abc.abstractmethod
    def on_death(self, status: int, usage: resource.struct_rusage) -> None:
        """The worker has ended, with that status and resource usage."""

    @abc.abstractmethod
    def on_finished(self) -> None:
        """The record of an execution has been sent."""

    def start(self, message: Message, worker: int) -> Execution:
        return self.executions.start(message, worker)

    def finish(self, ending: Message) -> None:
        self.executions.finish(ending, self.worker.pid, self.worker.pipes)

    def on_output(self, pipe: OutputPipe) -> None:
        if not self.worker.is_mid_message:
            self.executions.emit(pipe, pipe.read())

    def on_signal(self, _: int) -> None:
        numbers = self.signals.read()
        if signal.SIGTERM in numbers:
            self.is_stopping = True
        if numbers:
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
                    os.kill(pid, signal.SIGCONT)  # Code that sent itself SIGSTOP would never answer again.
            elif pid == self.worker.pid and not self.is_stopping:
                self.on_death(status, usage)

    # -- the end ----------------------------------------------------------------------------------

    def close(self) -> None:
        self.is_stopping = True
        processes.kill_descendants(os.getpid(), 0)
        processes.reap_killed(EXIT_DELAY)
        self.server.drop()
        self.session.socket_file.remove()
