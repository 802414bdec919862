"""The keeper of a Python interpreter: starts its worker, passes requests on to it, and starts another when it dies."""

from __future__ import annotations

import os
import signal
import socket
import time
from typing import Any

from cuvette_driver import linux, processes, worker
from cuvette_driver.keeper import DYING, NONSENSE, Keeper
from cuvette_driver.execution import Running
from cuvette_driver.wire import Message
from cuvette_driver.worker_process import WorkerProcess

PAUSE_AFTER_IDLE_DEATH = 0.1  # A worker that cannot even begin is not to be started without end at full speed.

TOO_FULL = (
    "The code was not run: the files of this session take far more room than they may, or lie in folders too deep to be counted. "
    "Remove some of them with bash, such as: rm -r /mnt/data/NAME /tmp/NAME. Until then, programs can remove files, and write none.\n"
)

NUMBERS, LARGEST = (int, float), 1e15
ENDS = ("ok", "error", "exit")
ENDING: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("status", (str,)),
    ("code", (int,)),
    ("ename", (str,)),
    ("interrupted", (bool,)),
    ("cpu", NUMBERS),
    ("peak", (int,)),
    ("kept", (list,)),
)


def run(assignment: socket.socket, confinement: Any = None) -> None:
    """Makes a worker ready, waits to be given a session, and serves it until it is told to stop or nobody needs it."""
    os.setsid()
    # A worker inherits this, and unblocks it when it can answer: an interrupt that comes before is not lost.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    # Forked before anything else is done: memory that the keeper writes to from here on, the worker goes on sharing.
    first = WorkerProcess(assignment.close, confinement)
    linux.adopt_orphans()
    linux.name_process("cuvette-keeper")
    keeper = InterpreterKeeper(assignment, first, confinement)
    if confinement is not None:
        confinement.protect_keeper()
    try:
        if keeper.take():
            keeper.serve()
    finally:
        keeper.close()


class InterpreterKeeper(Keeper):
    def begin(self) -> None:
        self.worker.wait_until_ready()
        processes.kill_below(os.getpid(), self.worker.pid)  # Nothing is there yet; it is used once before it is timed.

    def describe(self) -> Message:
        return worker.description()

    def execute(self, message: Message, line: bytes) -> None:
        running = self.start(message, self.worker.pid)
        if self.confinement is not None and self.confinement.guard.began_far_past:
            self.refuse(running)
            return
        self.worker.send(line)

    def refuse(self, running: Running) -> None:
        """What this interpreter would write before it is ended would add up, call by call."""
        running.why = "disk-quota"
        self.outbox.add({"ev": "stream", "id": running.id, "name": "stderr", "text": TOO_FULL})
        self.finish({"status": "error", "interrupted": True})

    def reset(self, message: Message) -> None:
        processes.kill_below(os.getpid(), 0)
        _, status, usage = os.wait4(self.worker.pid, 0)
        self.bury(status, usage)
        self.outbox.add({"ev": "reset", "id": message["id"], "worker": self.worker.pid, "generation": self.generation})

    def start_worker(self) -> WorkerProcess:
        self.generation += 1
        started = WorkerProcess(self.let_go, self.confinement)
        started.send(self.enter)
        return started

    def let_go(self) -> None:
        signal.set_wakeup_fd(-1)
        for fd in (*self.wake_fds, self.sockets):
            if fd >= 0:
                os.close(fd)
        for inherited in (self.assignment, self.listener, self.server):
            if inherited is not None:
                inherited.close()

    def on_worker(self, channel: socket.socket) -> None:
        messages = self.worker.listen()
        try:
            for message in messages or ():
                self.hear(message)
        except NONSENSE:
            messages = None
        if messages is None and self.worker.channel is channel:
            self.watch.remove(channel)
            self.worker.close_channel()
            self.kill_unless_dying()

    def hear(self, message: Message) -> None:
        kind = message["ev"]
        if kind == "done":
            self.finish(believable(message))
        elif kind == "variables":
            self.outbox.add(message)
        elif kind in ("display", "result", "error", "install") and self.last_id is not None:
            if not self.running or self.running.admits(message):
                self.outbox.add({**message, "id": self.last_id})

    def kill_unless_dying(self) -> None:
        """The channel has ended: either the worker is dead in a moment, or user code broke it."""
        deadline = time.monotonic() + DYING
        while processes.is_alive(self.worker.pid):
            if time.monotonic() > deadline:
                if self.running:
                    self.running.cause = "channel"
                os.kill(self.worker.pid, signal.SIGKILL)
                return
            time.sleep(0.001)
        self.reap()

    def on_death(self, status: int, usage: Any) -> None:
        idle = self.running is None
        if idle:
            time.sleep(PAUSE_AFTER_IDLE_DEATH)
        death = self.bury(status, usage)
        self.outbox.add({"ev": "restarted", "worker": self.worker.pid, "generation": self.generation, "idle": idle, "death": death})

    def bury(self, status: int, usage: Any) -> Message:
        """The worker has been reaped: its execution ends with it, and another takes its place."""
        death = {**processes.describe_death(status, usage), "oom": self.is_short_of_memory()}
        self.hear_last_words()
        self.finish({"death": death})
        self.unwatch_worker()
        self.worker.close()
        self.worker = self.start_worker()
        return death

    def hear_last_words(self) -> None:
        """Displays that the worker sent just before it died; its `done`, if any, no longer counts."""
        try:
            while (messages := self.worker.listen()) or self.worker.has_unread:
                for message in messages or ():
                    if message["ev"] != "done":
                        self.hear(message)
        except NONSENSE:
            pass


def believable(message: Message) -> Message:
    """What a worker may say of its own end: user code, too, can write to the channel."""
    ending: Message = {"status": "ok"}
    for name, kinds in ENDING:
        value = message.get(name)
        if type(value) in kinds and (type(value) not in NUMBERS or 0 <= value < LARGEST):
            ending[name] = value
    if ending["status"] not in ENDS:
        ending["status"] = "ok"
    return ending
