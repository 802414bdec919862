"""Computes a number in a background thread, so that a caller waits no longer than it wants to for one that may take long."""

from __future__ import annotations

import _thread
from typing import Callable


class BackgroundCall:
    def __init__(self, find: Callable[[], int]) -> None:
        self._function = find
        self._is_busy = _thread.allocate_lock()
        self._last = 0

    def latest(self, timeout: float) -> int:
        """Starts a computation unless one runs, and gives the newest number there is after at most `timeout` seconds."""
        if self._is_busy.acquire(blocking=False):
            try:
                _thread.start_new_thread(self._run, ())
            except RuntimeError:  # The session may start no further process, and a thread counts as one.
                self._is_busy.release()
        if self._is_busy.acquire(timeout=timeout):
            self._is_busy.release()
        return self._last

    def _run(self) -> None:
        try:
            self._last = self._function()
        finally:
            self._is_busy.release()
