"""How a process that was forked for a session becomes the first of it, and what is cleaned up after its end. Here: nothing to do."""

from __future__ import annotations

from typing import Any


class Isolation:
    def isolate(self) -> Any:
        """In the forked process; returns how the session is confined, if it is. May return in another process than it was called in."""
        return None

    def clean_up(self, name: str) -> bool:
        """Removes what a session that has ended left outside, by the name it went by; False if it is too early."""
        return True

    def close(self) -> None:
        """When the zygote ends."""
