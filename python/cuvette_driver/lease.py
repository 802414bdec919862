"""Decides how long a keeper lives on without a server."""

from __future__ import annotations

from cuvette_driver import processes

A_DAY = 86_400.0
# Seconds for which a keeper waits for another server although the process that owned the session has ended.
OWNERLESS = 2.0

# A process: its id, and the time at which the kernel says it started.
Owner = tuple[int, str]


class Lease:
    def __init__(self, linger: float = 0.0, owner_for_life: Owner | None = None, proc_fd: int | None = None) -> None:
        """`owner_for_life` is the process with which the session ends. `proc_fd` is the machine's /proc, where the keeper sees another."""
        self.linger = linger
        self.owner: Owner | None = None
        self._owner_for_life = owner_for_life
        self._proc_fd = proc_fd

    def has_expired(self, seconds_alone: float, is_busy: bool, has_socket: bool) -> bool:
        """True once nobody will come any more: the owner has ended, or no server has come for too long, or none can find the session's socket."""
        owner = self.owner or self._owner_for_life
        if owner is not None and not processes.is_same(*owner, self._proc_fd):
            return seconds_alone > OWNERLESS
        return not has_socket or seconds_alone > (A_DAY if is_busy else self.linger)
