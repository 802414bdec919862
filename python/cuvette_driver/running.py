"""One execution as the keeper sees it: its limits, the ladder that ends it, and its outcome.

The ladder: SIGINT; then the end of the processes it started, and SIGINT again; then the end of the interpreter.
"""

from __future__ import annotations

import os
import signal
import time

from cuvette_driver import processes
from cuvette_driver.wire import Message

GRACE = 2.0
RUNGS = ("interrupted", "children-killed", "killed")


class Running:
    def __init__(self, message: Message, worker: int) -> None:
        self.id: str = message["id"]
        self.worker = worker
        self.started = time.monotonic()
        self.timeout: float | None = message.get("timeout")
        self.deadline = None if self.timeout is None else self.started + self.timeout
        self.room: int = message["limit"]
        self.why: str | None = None
        self.cause: str | None = None
        self.rung = -1
        self.next_rung: float | None = None

    def next_deadline(self) -> float | None:
        return self.next_rung if self.why else self.deadline

    def admits(self, size: int) -> bool:
        """Counts output; what goes past the limit is not kept, and ends the execution."""
        self.room -= size
        if self.room < 0 and self.why is None:
            self.interrupt("output-limit")
        return self.room >= 0

    def interrupt(self, why: str) -> None:
        """Starts the ladder; asked again, it climbs at once."""
        self.next_rung = time.monotonic()
        self.why = self.why or why

    def climb(self) -> None:
        now = time.monotonic()
        if self.why is None and self.deadline is not None and now >= self.deadline:
            self.interrupt("timeout")
        if self.next_rung is None or now < self.next_rung:
            return
        self.rung = min(self.rung + 1, len(RUNGS) - 1)
        self.next_rung = now + GRACE
        if self.rung == 1:
            processes.kill_below(os.getpid(), self.worker)
        try:
            os.kill(self.worker, signal.SIGKILL if self.rung == 2 else signal.SIGINT)
        except OSError:
            pass

    def outcome(self, ending: Message) -> Message:
        """The ending as the worker or its death tells it, with what the ladder did to it."""
        done: Message = {key: value for key, value in ending.items() if key != "ev"}
        done["wall"] = time.monotonic() - self.started
        stopped = self.why is not None and (ending.get("interrupted") or "death" in ending)
        done["stopped"] = {"why": self.why, "rung": RUNGS[max(self.rung, 0)]} if stopped else None
        done["cause"] = self.cause
        return done
