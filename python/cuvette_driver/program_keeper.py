"""A keeper of programs: runs one plan after the other, each a few programs in a row, and knows no interpreter.

What a keeper does for code in an interpreter, it does for a program: output, limits, the ladder, the end of everything it started.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from typing import Any

from cuvette_driver import hosted_interpreter, linux, processes
from cuvette_driver.output_pipe import Pipe
from cuvette_driver.keeper import Keeper
from cuvette_driver.program_process import NoProgram, ProgramProcess
from cuvette_driver.wire import Message, decode

SAMPLE_EVERY = 0.2
FLOOR_MARGIN = 1 << 20


def run(assignment: socket.socket, confinement: Any = None) -> None:
    os.setsid()
    linux.adopt_orphans()
    linux.name_process("cuvette-keeper")
    linux.go_first()
    keeper = ProgramKeeper(assignment, NoProgram(), confinement)
    if confinement is not None:
        confinement.protect_keeper()
    try:
        if keeper.take():
            keeper.serve_or_host()
    finally:
        keeper.close()


class ProgramKeeper(Keeper):
    program: Message = {}
    steps: list[Message] = []
    steps_done = 0
    used: Message = {}
    is_waiting = False
    seen = 0
    next_sample = 0.0

    def serve_or_host(self) -> None:
        request = decode(self.enter)
        if self.confinement is not None and self.listener is not None and request.get("interpreter"):
            hosted_interpreter.host(self.confinement, self.listener, request, self.has_socket)
        else:
            self.serve()

    def begin(self) -> None:
        """There is nothing to start before the first program."""

    def describe(self) -> Message:
        return {"python": "%d.%d.%d" % sys.version_info[:3], "executable": sys.executable, "ipython": None}

    def execute(self, message: Message, _: bytes) -> None:
        self.program = message["program"]
        if self.confinement is not None and not self.confinement.is_settled:
            self.confinement.settle_for(self.program["mounts"], self.program["folder"])
        self.steps = list(self.program["steps"])
        self.steps_done = 0
        self.used = {"cpu": 0.0, "peak": 0}
        self.start(message, 0)
        self.next_step()

    def next_step(self) -> None:
        self.worker = ProgramProcess(self.steps.pop(0), self.program, self.confinement)
        self.seen, self.next_sample = 0, 0.0
        if self.running:
            self.running.worker = -self.worker.pid  # The whole group, as Ctrl-C in a terminal does it.

    def rest(self) -> None:
        """Nothing of it goes on."""

    def reset(self, message: Message) -> None:
        if self.running:
            self.running.interrupt("cancelled")
        self.outbox.add({"ev": "reset", "id": message["id"], "worker": 0, "generation": self.generation})

    def on_worker(self, channel: socket.socket) -> None:
        """It has no channel."""

    def on_output(self, pipe: Pipe) -> None:
        self.sample()
        super().on_output(pipe)

    def sample(self) -> None:
        if time.monotonic() >= self.next_sample:
            self.seen = max(self.seen, processes.peak_memory(self.worker.pid))
            self.next_sample = time.monotonic() + SAMPLE_EVERY

    def peak_of(self, told: int) -> int:
        """What the kernel tells at the end of a program is never less than what its process had before it became that program."""
        floor = processes.peak_memory(os.getpid())
        return told if told > floor + FLOOR_MARGIN or not self.seen else min(told, self.seen)

    def on_death(self, status: int, usage: Any) -> None:
        self.used["cpu"] += usage.ru_utime + usage.ru_stime
        self.used["peak"] = max(self.used["peak"], self.peak_of(usage.ru_maxrss * processes.RSS_UNIT))
        went_well = os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0
        self.steps_done += went_well
        if went_well and self.steps and self.running and not self.running.why:
            self.let_go_of_pipes()
            self.worker = NoProgram()
            # What was built is the server's to keep before the program, which could change it, is run.
            self.is_waiting = True
            self.outbox.add({"ev": "built", "id": self.running.id})
            return
        self.end(ending_of(status, self.is_short_of_memory()), was_interrupted=self.is_stopped() and not went_well)

    def go_on(self) -> None:
        if self.is_waiting and self.running:
            self.is_waiting = False
            self.next_step()

    def on_time(self) -> None:
        super().on_time()
        if self.is_waiting and self.is_stopped():
            self.is_waiting = False
            self.end({"status": "signal", "signal": "SIGINT", "code": 130}, was_interrupted=True)

    def is_stopped(self) -> bool:
        return self.running is not None and self.running.why is not None

    def end(self, ending: Message, was_interrupted: bool) -> None:
        self.finish({**ending, **self.used, "steps": self.steps_done, "interrupted": was_interrupted})
        self.let_go_of_pipes()
        self.worker = NoProgram()

    def let_go_of_pipes(self) -> None:
        for pipe in self.worker.pipes:
            self.emit(pipe, pipe.read_all())
        self.unwatch_worker()
        self.worker.close()


def ending_of(status: int, is_oom: bool) -> Message:
    if os.WIFEXITED(status):
        return {"status": "exit", "code": os.WEXITSTATUS(status)}
    number = os.WTERMSIG(status)
    return {"status": "signal", "signal": processes.name_of_signal(number), "code": 128 + number, "oom": is_oom and number == signal.SIGKILL}
