"""Holds the one execution that runs at a time: starts it, sends its output as events, and ends it with a record."""

from __future__ import annotations

import os
from collections.abc import Iterable

from cuvette_driver import linux, processes
from cuvette_driver.event_buffer import EventBuffer
from cuvette_driver.execution import Execution
from cuvette_driver.limit_enforcer import LimitEnforcer
from cuvette_driver.output_pipe import OutputPipe
from cuvette_driver.wire import Message

DIED: Message = {"code": "died", "message": "The interpreter died of this, and has started afresh: its variables are lost."}


class ExecutionSlot:
    def __init__(self, events: EventBuffer, limits: LimitEnforcer) -> None:
        self.current: Execution | None = None
        # The id of the current execution, or of the last one: output that comes later is reported as its own.
        self.last_id: str | None = None
        self._events = events
        self._limits = limits
        self._has_just_finished = False
        self._has_finished_any = False

    def start(self, message: Message, worker: int) -> Execution:
        self._limits.begin()
        self.current = Execution(message, worker)
        self.last_id = self.current.id
        return self.current

    def ask(self, message: Message, worker: int) -> None:
        """Starts a question, which has a time limit and the ladder, as an execution has."""
        self._limits.begin()
        self.current = Execution(message, worker, is_question=True)

    def finish(self, ending: Message, worker: int, pipes: Iterable[OutputPipe]) -> None:
        """The one place where an execution ends: what it started is ended, the pipes are emptied, the record goes out."""
        if self.current is None:
            return
        kept = frozenset(pid for pid in ending.pop("kept", ()) if isinstance(pid, int))
        ended = processes.kill_descendants(os.getpid(), worker, kept)
        self.empty(pipes)
        if not self._has_finished_any:
            self._has_finished_any = True
            linux.use_short_time_slices()
        if self.current.is_question:
            self._answer(self.current, ending)
            return
        outcome = self.current.outcome(ending)
        hit = self._limits.hits(went_well=ending.get("status") == "ok" or ending.get("code") == 0)
        if hit is not None:
            outcome["hit"] = hit
        self._events.add({**outcome, "ev": "done", "id": self.current.id, "ended": [command or str(pid) for pid, command in ended]})
        self._leave()

    def _answer(self, question: Execution, ending: Message) -> None:
        parts = {name: ending[name] for name in ("answer", "problem") if name in ending}
        self._events.answer({"ev": "answered", "id": question.id, **(parts or {"problem": DIED})})
        self._leave()

    def _leave(self) -> None:
        self.current = None
        self._has_just_finished = True

    def take_finished(self) -> bool:
        """True once after each execution that has ended."""
        has_finished, self._has_just_finished = self._has_just_finished, False
        return has_finished

    def climb(self) -> None:
        if self.current is not None:
            self.current.climb()

    def check_limits(self) -> None:
        """Not before code has run: what the session has used until then is not the doing of this keeper. Nor between
        the end of an execution and its record: what the execution has used is not yet told apart from what goes on after it."""
        if self.last_id is not None and not self._has_just_finished:
            self._limits.check(self.current)

    def empty(self, pipes: Iterable[OutputPipe]) -> None:
        for pipe in pipes:
            self.emit(pipe, pipe.read_all())

    def emit(self, pipe: OutputPipe, text: str) -> None:
        if self.current is not None and not self.current.is_question:
            text = text[: self.current.admit(len(text))]
        if text and self.last_id is not None:
            self._events.add({"ev": "stream", "id": self.last_id, "name": pipe.name, "text": text})

    def publish(self, event: Message) -> None:
        """Passes on a display, a result or an error of the worker's, if the execution has room for it."""
        if self.last_id is not None and (self.current is None or self.current.is_question or self.current.admits(event)):
            self._events.add({**event, "id": self.last_id})
