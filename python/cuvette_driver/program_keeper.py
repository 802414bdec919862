"""Keeps programs of other languages: runs one plan after the other, each a few programs in a row, and knows no interpreter.

What a keeper does for code in an interpreter, it does for a program: output, limits, the ladder, the end of everything it started.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from typing import TYPE_CHECKING

from cuvette_driver import hosted_interpreter, linux, processes
from cuvette_driver.keeper import Keeper
from cuvette_driver.output_pipe import OutputPipe
from cuvette_driver.program_process import NoProgram, ProgramProcess
from cuvette_driver.wire import Message, decode

if TYPE_CHECKING:
    import resource

    from cuvette_driver.confinement import Confinement

NOTHING_KEPT: Message = {"code": "invalid", "message": "Programs keep no variables to look at."}


def run(assignment: socket.socket, confinement: Confinement | None = None) -> None:
    os.setsid()
    linux.become_subreaper()
    linux.name_process("cuvette-keeper")
    linux.use_short_time_slices()
    keeper = ProgramKeeper(assignment, confinement)
    keeper.run(keeper.serve_or_host)


class ProgramKeeper(Keeper):
    worker: ProgramProcess

    def __init__(self, assignment: socket.socket, confinement: Confinement | None) -> None:
        super().__init__(assignment, confinement)
        self.worker = NoProgram()
        self.plan = Plan({"steps": []})
        self.peak = PeakMemory()
        # Whether the next step waits until the server has what the last one built.
        self.is_waiting = False

    def serve_or_host(self) -> None:
        request = decode(self.session.enter)
        if self.confinement is not None and self.session.listener is not None and request.get("interpreter"):
            hosted_interpreter.host(self.confinement, self.session.listener, request, self.session.socket_file.exists)
        else:
            self.serve()

    def prepare(self) -> None:
        """There is nothing to start before the first program."""

    def describe(self) -> Message:
        return {"python": "%d.%d.%d" % sys.version_info[:3], "executable": sys.executable, "ipython": None, "asks": []}

    def execute(self, message: Message, _: bytes) -> None:
        program = message["program"]
        self.end_last()
        if self.confinement is not None and not self.confinement.has_folders:
            self.confinement.mount_for_program(program["mounts"], program["folder"])
        self.plan = Plan(program)
        self.start(message, 0)
        self.next_step()

    def ask(self, message: Message, _: bytes) -> None:
        self.server.events.answer({"ev": "answered", "id": message["id"], "problem": NOTHING_KEPT})

    def end_last(self) -> None:
        """Ends the program that still runs, if there is one: a reset interrupts it and does not wait, and its last words are its own."""
        if self.executions.current is None:
            return
        if self.worker.pid:
            processes.send(self.worker.pid, signal.SIGKILL)
            processes.wait_for_end([self.worker.pid])
        self.is_waiting = False
        self.end({"status": "signal", "signal": "SIGKILL", "code": 137}, was_interrupted=True)

    def next_step(self) -> None:
        self.worker = ProgramProcess(self.plan.steps.pop(0), self.plan.program, self.confinement)
        self.peak = PeakMemory()
        if self.executions.current:
            self.executions.current.worker = -self.worker.pid  # A negative pid signals the whole process group, as Ctrl-C in a terminal does.

    def on_finished(self) -> None:
        """Nothing of a program goes on after it."""

    def reset(self, message: Message) -> None:
        if self.executions.current:
            self.executions.current.interrupt("cancelled")
        self.server.events.add({"ev": "reset", "id": message["id"], "worker": 0, "generation": self.generation})

    def on_worker(self, channel: socket.socket) -> None:
        """A program has no channel."""

    def on_output(self, pipe: OutputPipe) -> None:
        self.peak.sample(self.worker.pid)
        super().on_output(pipe)

    def on_death(self, status: int, usage: resource.struct_rusage) -> None:
        self.plan.cpu += usage.ru_utime + usage.ru_stime
        self.plan.peak = max(self.plan.peak, self.peak.of_ended(usage.ru_maxrss * processes.RSS_UNIT))
        went_well = os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0
        self.plan.steps_done += went_well
        execution = self.executions.current
        if went_well and self.plan.steps and execution and not execution.why:
            self.close_worker()
            # The server stores what was built before the next step, which could change it, is run.
            self.is_waiting = True
            self.server.events.add({"ev": "built", "id": execution.id})
            return
        self.end(ending_of(status, self.limits.was_short_of_memory()), was_interrupted=self.is_being_stopped() and not went_well)

    def go_on(self) -> None:
        if self.is_waiting and self.executions.current:
            self.is_waiting = False
            self.next_step()

    def on_time(self) -> None:
        super().on_time()
        if self.is_waiting and self.is_being_stopped():
            self.is_waiting = False
            self.end({"status": "signal", "signal": "SIGINT", "code": 130}, was_interrupted=True)

    def is_being_stopped(self) -> bool:
        return self.executions.current is not None and self.executions.current.why is not None

    def end(self, ending: Message, was_interrupted: bool) -> None:
        plan = self.plan
        self.finish({**ending, "cpu": plan.cpu, "peak": plan.peak, "steps": plan.steps_done, "interrupted": was_interrupted})
        self.close_worker()

    def close_worker(self) -> None:
        self.executions.empty(self.worker.pipes)
        self.unwatch_worker()
        self.worker.close()
        self.worker = NoProgram()


class Plan:
    """The steps of one execution that are still to run, and what those that ran have used."""

    def __init__(self, program: Message) -> None:
        self.program = program
        self.steps: list[Message] = list(program["steps"])
        self.steps_done = 0
        self.cpu = 0.0
        self.peak = 0


class PeakMemory:
    """The most memory that one program has used: the kernel's own number counts what its process had before it became the program, too."""

    SAMPLE_EVERY = 0.2
    MARGIN = 1 << 20

    def __init__(self) -> None:
        self._seen = 0
        self._next_sample = 0.0

    def sample(self, pid: int) -> None:
        if time.monotonic() >= self._next_sample:
            self._seen = max(self._seen, processes.peak_memory(pid))
            self._next_sample = time.monotonic() + self.SAMPLE_EVERY

    def of_ended(self, told: int) -> int:
        """`told` is the kernel's number. It is taken where it is well above what this keeper, of which the process is a fork, has used."""
        floor = processes.peak_memory(os.getpid())
        return told if told > floor + self.MARGIN or not self._seen else min(told, self._seen)


def ending_of(status: int, is_oom: bool) -> Message:
    if os.WIFEXITED(status):
        return {"status": "exit", "code": os.WEXITSTATUS(status)}
    number = os.WTERMSIG(status)
    return {"status": "signal", "signal": processes.name_of_signal(number), "code": 128 + number, "oom": is_oom and number == signal.SIGKILL}
