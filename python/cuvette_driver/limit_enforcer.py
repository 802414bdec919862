"""Ends what a confined session runs when it uses more than it may: checks the usage monitor from time to time, and acts on what it finds.

Where a session is not confined there is no monitor, and nothing to check.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from cuvette_driver import processes
from cuvette_driver.execution import Execution

if TYPE_CHECKING:
    from cuvette_driver.usage_monitor import UsageMonitor

CHECK_BETWEEN_CALLS = 2.0


class LimitEnforcer:
    def __init__(self, monitor: UsageMonitor | None) -> None:
        self.monitor = monitor
        self._next_check = 0.0
        self._memory_kills = self._count_memory_kills()

    def begin(self) -> None:
        """An execution starts."""
        if self.monitor is not None:
            self.monitor.begin()
            self._next_check = time.monotonic() + self.monitor.interval

    def end(self) -> None:
        """The record of an execution is on its way: what is used from here on is not its doing."""
        if self.monitor is not None:
            self.monitor.end()

    def seconds_to_check(self) -> float | None:
        return None if self.monitor is None else max(0.0, self._next_check - time.monotonic())

    def check(self, execution: Execution | None) -> None:
        """Interrupts or kills the execution that goes over a limit; between two executions, whatever an earlier one left running."""
        if self.monitor is None or time.monotonic() < self._next_check:
            return
        limit = self.monitor.check()
        if limit is not None and execution is None:
            if self.monitor.has_run_since():
                processes.kill_descendants(os.getpid(), 0)  # No execution is there to report it to.
        elif limit is not None and execution is not None and execution.why is None:
            if limit == "disk-quota":
                execution.interrupt(limit, is_urgent=True)
            else:
                execution.kill(limit)
        self._next_check = time.monotonic() + (self.monitor.interval if execution else CHECK_BETWEEN_CALLS)

    def hits(self, went_well: bool) -> list[str] | None:
        """The limits that the execution has run into; None where nothing is limited."""
        return None if self.monitor is None else self.monitor.hits(went_well)

    def was_short_of_memory(self) -> bool:
        """True if the kernel has killed some process for lack of memory since this was last asked."""
        before, self._memory_kills = self._memory_kills, self._count_memory_kills()
        return self._memory_kills > before

    def _count_memory_kills(self) -> int:
        return processes.out_of_memory_kills() if self.monitor is None else self.monitor.memory_kills()
