"""Follows one execution from the keeper's side: counts its output, enforces its time limit, and ends it step by step.

The steps are a ladder: an interrupt, then the end of its child processes, then the end of the worker.
"""

from __future__ import annotations

import os
import signal
import time

from cuvette_driver import processes
from cuvette_driver.wire import Message, checked_number

GRACE = 2.0
URGENT = 0.1
# An error up to this length is reported even when the execution has reached its output limit.
SHORT_ERROR = 20_000
# The rung, the signal to the worker (None kills the worker's descendants instead), and the seconds until the next step.
# An interrupt is repeated, because one that comes before the code begins, or just before it starts to wait, is lost;
# after the killing it comes late, because C's system() ignores it until its child has ended.
LADDER = (
    ("interrupted", signal.SIGINT, 0.05),
    ("interrupted", signal.SIGINT, 0.5),
    ("interrupted", signal.SIGINT, GRACE),
    ("children-killed", None, 0.05),
    ("children-killed", signal.SIGINT, GRACE),
    ("killed", signal.SIGKILL, GRACE),
)


class Execution:
    def __init__(self, message: Message, worker: int, is_question: bool = False) -> None:
        """A question is about the session, and shows nothing: what is printed meanwhile is not its own."""
        self.id: str = message["id"]
        self.is_question = is_question
        self.worker = worker
        self.started = time.monotonic()
        self.timeout: float | None = None if message.get("timeout") is None else checked_number(message["timeout"], most=float("inf"))
        self.deadline = None if self.timeout is None else self.started + self.timeout
        self.output_left: int = 0 if is_question else int(checked_number(message["limit"]))
        self.is_truncated = False
        self.is_urgent = False
        self.why: str | None = None
        self.cause: str | None = None
        self.step = -1
        self.next_step: float | None = None

    def seconds_to_deadline(self) -> float | None:
        deadline = self.next_step if self.why else self.deadline
        return None if deadline is None else max(0.0, deadline - time.monotonic())

    def admit(self, size: int) -> int:
        """Counts output and says how much of it is to be kept; what goes past the limit ends the execution."""
        kept = min(size, self.output_left)
        self.output_left -= kept
        if kept < size:
            self.is_truncated = True
            if self.why is None:
                self.interrupt("output-limit")
        return kept

    def admits(self, message: Message) -> bool:
        """Counts a display, a result or an error, and says whether to keep it: as a whole, or not at all."""
        parts = message["data"].values() if "data" in message else message.get("traceback", ())
        size = sum(len(str(part)) for part in parts)
        is_short_error = message["ev"] == "error" and size <= SHORT_ERROR
        return is_short_error or self.admit(size) == size

    def interrupt(self, why: str, is_urgent: bool = False) -> None:
        """Starts the ladder; asked again, it goes to the next rung at once. Where it is urgent, each rung is given little time."""
        self.is_urgent = self.is_urgent or is_urgent
        self.next_step = time.monotonic()
        self.why = self.why or why
        while 0 <= self.step < len(LADDER) - 1 and self.rung == LADDER[self.step + 1][0]:
            self.step += 1

    def kill(self, why: str) -> None:
        """Goes to the last rung at once, for code that cannot be asked to stop. Until it has ended, nothing that it started goes on either."""
        self.why = self.why or why
        processes.stop_all_others()
        self.step = len(LADDER) - 2
        self.next_step = time.monotonic()

    @property
    def rung(self) -> str:
        return LADDER[max(self.step, 0)][0]

    def climb(self) -> None:
        now = time.monotonic()
        if self.why is None and self.deadline is not None and now >= self.deadline:
            self.interrupt("timeout")
        if self.next_step is None or now < self.next_step:
            return
        self.step = min(self.step + 1, len(LADDER) - 1)
        _, number, grace = LADDER[self.step]
        self.next_step = now + (min(grace, URGENT) if self.is_urgent else grace)
        if number is None:
            processes.kill_descendants(os.getpid(), abs(self.worker))
            return
        try:
            os.kill(self.worker, number)
        except OSError:
            pass

    def outcome(self, ending: Message) -> Message:
        """Completes the ending that the worker or its death tells with what the limits did to it."""
        done: Message = {key: value for key, value in ending.items() if key != "ev"}
        done["wall"] = time.monotonic() - self.started
        had_effect = ending.get("interrupted") or "death" in ending or self.rung != LADDER[0][0] or self.is_truncated
        done["stopped"] = {"why": self.why, "rung": self.rung} if self.why and had_effect else None
        done["cause"] = self.cause
        return done
