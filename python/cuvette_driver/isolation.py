"""Isolates a forked process before a session runs in it, and cleans up after the session. This one isolates nothing; confinement.py has one that does."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cuvette_driver.confinement import Confinement


class Isolation:
    def isolate(self) -> Confinement | None:
        """Isolates the process that calls it. It may return in another process than it was called in."""
        return None

    def clean_up(self, name: str) -> bool:
        """Removes what the session of that name left outside of itself; False if it is too early."""
        return True

    def clean_up_all_but(self, living: set[str]) -> bool:
        """Does the same for every session but those, at the zygote's end."""
        return True

    def close(self) -> None:
        """Removes what the zygote itself left, at its end."""
