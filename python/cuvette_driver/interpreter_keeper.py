"""Keeps a Python interpreter: passes requests on to its worker, and starts another worker when that one dies."""

from __future__ import annotations

import os
import signal
import socket
import time
from typing import TYPE_CHECKING, Any

from cuvette_driver import linux, processes, worker
from cuvette_driver.execution import Execution
from cuvette_driver.keeper import EXIT_DELAY, Keeper
from cuvette_driver.server_link import MALFORMED
from cuvette_driver.wire import Message
from cuvette_driver.worker_process import WorkerProcess

if TYPE_CHECKING:
    import resource

    from cuvette_driver.confinement import Confinement

EXITING_TIMEOUT = 10.0
PAUSE_AFTER_IDLE_DEATH = 0.1  # Slows down the restarts of a worker that dies whenever it starts.

TOO_FULL = (
    "The code was not run: the files of this session take far more room than they may, or lie in folders too deep to be counted. "
    "Remove some of them with bash, such as: rm -r /mnt/data/NAME /tmp/NAME. Until then, programs can remove files, and write none.\n"
)

BUSY: Message = {"code": "busy", "message": "Code runs."}
NUMBERS, LARGEST = (int, float), 1e15
STATUSES = ("ok", "error", "exit")
ENDING: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("status", (str,)),
    ("code", (int,)),
    ("ename", (str,)),
    ("interrupted", (bool,)),
    ("cpu", NUMBERS),
    ("peak", (int,)),
    ("kept", (list,)),
)


def run(assignment: socket.socket, confinement: Confinement | None = None) -> None:
    os.setsid()
    # A worker inherits the blocked signal and unblocks it when it can answer, so that no earlier interrupt is lost.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    # The worker is forked first, so that it goes on sharing the memory that the keeper writes to from here on.
    first = WorkerProcess(assignment.close, confinement)
    linux.become_subreaper()
    linux.name_process("cuvette-keeper")
    keeper = InterpreterKeeper(assignment, first, confinement)
    keeper.run(keeper.serve)


class InterpreterKeeper(Keeper):
    worker: WorkerProcess

    def __init__(self, assignment: socket.socket, first: WorkerProcess, confinement: Confinement | None) -> None:
        super().__init__(assignment, confinement)
        self.worker = first

    def prepare(self) -> None:
        self.worker.wait_until_ready()
        processes.kill_descendants(os.getpid(), self.worker.pid)  # There is nothing to kill yet: the code is run once before it is timed.

    def describe(self) -> Message:
        return worker.description()

    def execute(self, message: Message, line: bytes) -> None:
        execution = self.start(message, self.worker.pid)
        if self.confinement is not None and self.confinement.monitor.was_far_over_at_start:
            self.refuse(execution)
            return
        self.worker.send(line)

    def refuse(self, execution: Execution) -> None:
        """What this interpreter would write before it is ended would add up, call by call."""
        execution.why = "disk-quota"
        self.server.events.add({"ev": "stream", "id": execution.id, "name": "stderr", "text": TOO_FULL})
        self.finish({"status": "error", "interrupted": True})

    def ask(self, message: Message, line: bytes) -> None:
        if self.executions.current is not None:
            self.server.events.answer({"ev": "answered", "id": message["id"], "problem": BUSY})
            return
        self.executions.ask(message, self.worker.pid)
        self.worker.send(line)

    def go_on(self) -> None:
        """An interpreter never waits for the server."""

    def on_finished(self) -> None:
        self.limits.end()

    def reset(self, message: Message) -> None:
        processes.kill_descendants(os.getpid(), 0)
        _, status, usage = os.wait4(self.worker.pid, 0)
        self.replace_worker(status, usage)
        self.server.events.add({"ev": "reset", "id": message["id"], "worker": self.worker.pid, "generation": self.generation})

    def start_worker(self) -> WorkerProcess:
        self.generation += 1
        started = WorkerProcess(self.close_inherited, self.confinement)
        started.send(self.session.enter)
        return started

    def close_inherited(self) -> None:
        """In a forked worker: closes what only the keeper may hold."""
        self.signals.close_in_fork()
        if self.session.socket_file.folder_fd >= 0:
            os.close(self.session.socket_file.folder_fd)
        for inherited in (self.session.sock, self.session.listener, self.server.connection):
            if inherited is not None:
                inherited.close()

    def on_worker(self, channel: socket.socket) -> None:
        messages = self.worker.receive()
        try:
            for message in messages or ():
                self.pass_on(message)
        except MALFORMED:
            messages = None
        if messages is None and self.worker.channel is channel:
            self.poller.remove(channel)
            self.worker.close_channel()
            self.kill_unless_dying()

    def pass_on(self, message: Message) -> None:
        kind = message["ev"]
        if kind == "done":
            self.finish(checked_ending(message))
        elif kind == "variables":
            self.server.events.answer(message)
        elif kind == "answered":
            self.on_answer(message)
        elif kind in ("display", "result", "error", "install"):
            self.executions.publish(message)

    def on_answer(self, message: Message) -> None:
        question = self.executions.current
        if question is not None and question.is_question and question.id == message.get("id"):
            self.finish({key: message[key] for key in ("answer", "problem", "kept") if key in message})

    def kill_unless_dying(self) -> None:
        """The channel has ended: either the worker is dead in a moment, or user code broke it."""
        began = time.monotonic()
        while processes.is_alive(self.worker.pid):
            # A process that ends with much memory on a busy machine takes its time.
            limit = EXITING_TIMEOUT if processes.is_exiting(self.worker.pid) else EXIT_DELAY
            if time.monotonic() - began > limit:
                if self.executions.current:
                    self.executions.current.cause = "channel"
                os.kill(self.worker.pid, signal.SIGKILL)
                return
            time.sleep(0.001)
        self.reap()

    def on_death(self, status: int, usage: resource.struct_rusage) -> None:
        is_idle = self.executions.current is None or self.executions.current.is_question
        if is_idle:
            time.sleep(PAUSE_AFTER_IDLE_DEATH)
        death = self.replace_worker(status, usage)
        restarted = {"ev": "restarted", "worker": self.worker.pid, "generation": self.generation, "idle": is_idle, "death": death}
        self.server.events.add(restarted)

    def replace_worker(self, status: int, usage: resource.struct_rusage) -> Message:
        """The worker has been reaped: its execution ends with it, and another takes its place. Returns how it died."""
        death = {**processes.describe_exit(status, usage), "oom": self.limits.was_short_of_memory()}
        self.read_remaining_messages()
        self.finish({"death": death})
        self.unwatch_worker()
        self.worker.close()
        self.worker = self.start_worker()
        return death

    def read_remaining_messages(self) -> None:
        """Passes on displays that the worker sent just before it died; its `done`, if any, no longer counts."""
        try:
            while (messages := self.worker.receive()) or self.worker.has_unread:
                for message in messages or ():
                    if message["ev"] not in ("done", "answered"):
                        self.pass_on(message)
        except MALFORMED:
            pass  # It died in the middle of one, or user code wrote to the channel.


def checked_ending(message: Message) -> Message:
    """Takes from the worker's word on how an execution ended only what is of the right kind: user code, too, can write to the channel."""
    ending: Message = {"status": "ok"}
    for name, kinds in ENDING:
        value: Any = message.get(name)
        if type(value) in kinds and (type(value) not in NUMBERS or 0 <= value < LARGEST):
            ending[name] = value
    if ending["status"] not in STATUSES:
        ending["status"] = "ok"
    return ending
