"""A number that may take long to find, because those that it is about can hold up whoever asks: found aside, so that nobody waits for it."""

from __future__ import annotations

import _thread
from typing import Callable


class BackgroundCall:
    def __init__(self, find: Callable[[], int]) -> None:
        self._function = find
        self._is_busy = _thread.allocate_lock()
        self._last = 0

    def latest(self, timeout: float) -> int:
        """The newest there is after this many seconds."""
        if self._is_busy.acquire(blocking=False):
            try:
                _thread.start_new_thread(self._run, ())
            except RuntimeError:  # The session has no process left, and this thread would be one.
                self._is_busy.release()
        if self._is_busy.acquire(timeout=timeout):
            self._is_busy.release()
        return self._last

    def _run(self) -> None:
        try:
            self._last = self._function()
        finally:
            self._is_busy.release()
