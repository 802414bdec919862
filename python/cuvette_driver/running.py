"""One execution as the keeper sees it: its limits, the ladder that ends it, and its outcome."""

from __future__ import annotations

import os
import signal
import time

from cuvette_driver import processes
from cuvette_driver.wire import Message

GRACE = 2.0
# C's system() ignores SIGINT until its child has ended: the interrupt after the killing waits for that.
PAUSE = 0.05
# The rung, the signal to the worker (none: the processes below it are killed), and how long it is given.
LADDER = (
    ("interrupted", signal.SIGINT, GRACE),
    ("children-killed", None, PAUSE),
    ("children-killed", signal.SIGINT, GRACE),
    ("killed", signal.SIGKILL, GRACE),
)


class Running:
    def __init__(self, message: Message, worker: int) -> None:
        self.id: str = message["id"]
        self.worker = worker
        self.started = time.monotonic()
        self.timeout: float | None = message.get("timeout")
        self.deadline = None if self.timeout is None else self.started + self.timeout
        self.room: int = message["limit"]
        self.is_cut = False
        self.why: str | None = None
        self.cause: str | None = None
        self.step = -1
        self.next_step: float | None = None

    def next_deadline(self) -> float | None:
        return self.next_step if self.why else self.deadline

    def admit(self, size: int) -> int:
        """Counts output and says how much of it is to be kept; what goes past the limit ends the execution."""
        kept = min(size, self.room)
        self.room -= kept
        if kept < size:
            self.is_cut = True
            if self.why is None:
                self.interrupt("output-limit")
        return kept

    def interrupt(self, why: str) -> None:
        """Starts the ladder; asked again, it climbs at once."""
        self.next_step = time.monotonic()
        self.why = self.why or why

    def interrupt_again(self) -> None:
        """The first interrupt came before the code ran, and had no effect."""
        if self.step == 0:
            self._signal(signal.SIGINT)

    def climb(self) -> None:
        now = time.monotonic()
        if self.why is None and self.deadline is not None and now >= self.deadline:
            self.interrupt("timeout")
        if self.next_step is None or now < self.next_step:
            return
        self.step = min(self.step + 1, len(LADDER) - 1)
        _, number, grace = LADDER[self.step]
        self.next_step = now + grace
        if number is None:
            processes.kill_below(os.getpid(), self.worker)
        else:
            self._signal(number)

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.kill(self.worker, number)
        except OSError:
            pass

    def outcome(self, ending: Message) -> Message:
        """The ending as the worker or its death tells it, with what the limits did to it."""
        done: Message = {key: value for key, value in ending.items() if key != "ev"}
        done["wall"] = time.monotonic() - self.started
        had_effect = ending.get("interrupted") or "death" in ending or self.step > 0 or self.is_cut
        rung = LADDER[max(self.step, 0)][0]
        done["stopped"] = {"why": self.why, "rung": rung} if self.why and had_effect else None
        done["cause"] = self.cause
        return done
