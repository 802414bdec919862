"""Watches what a confined session uses while code runs: disk always, memory and processes where no control group counts them."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from cuvette_driver import processes
from cuvette_driver.cgroup import Group
from cuvette_driver.disk import FAR_OFF, Disk

EVERY = 0.05
EVERY_WITH_MEMORY = 0.03
PAGE = os.sysconf("SC_PAGE_SIZE")
NEARLY = 0.95
# How often a session may be refused a process before it is ended; and, where the kernel does not tell, for how long it may be full.
MOST_REFUSALS, LONGEST_CROWD = 20, 1.0
# With more processes and threads than this, a session has what others leave: each of its many would take a turn before theirs.
CROWD = 32


class Guard:
    def __init__(self, group: Group, limits: dict[str, int]) -> None:
        self.group = group
        self.limits = limits
        self.disk: Disk | None = None
        self.own_kills = 0
        self.was_crowded = False
        self.crowded_since: float | None = None
        self.before = {"oom": 0, "too-many-processes": 0}
        self.worked = 0
        self.is_last = False
        # A crowd that was killed, until the last of it is gone.
        self.is_ending = False
        # Whether the session had no room for files left when the execution began, and whether by so much that nothing may write there.
        self.began_full = self.began_far_past = False

    def watch(self, folders: list[int], are_new: bool = False) -> None:
        """From when the session has its folders: by descriptors that see nothing of what is mounted inside them.

        New ones are not counted before code runs: they hold no more than what was put there for it.
        """
        self.disk = Disk(folders, self.limits["disk"], self.limits["fileCount"])
        if are_new:
            self.disk.then = self.disk.taken()

    def begin(self) -> None:
        """An execution starts: what was used before is not its doing."""
        self.was_crowded = False
        self.crowded_since = None
        self.before = {"oom": self.memory_kills(), "too-many-processes": self.group.count("pids") or 0}
        if self.disk is not None:
            self.disk.begin()
            self.began_full, self.began_far_past = self.disk.is_full, self.disk.is_far_past

    def rest(self) -> None:
        """An execution has ended: from here on, it is what goes on after it."""
        self.begin()
        self.worked = processor_ticks()

    def is_at_work(self) -> bool:
        """Whether anything has run since: other interpreters of the session write to the same folders."""
        return processor_ticks() > self.worked

    @property
    def interval(self) -> float:
        return EVERY if self.group.count("memory") is not None else EVERY_WITH_MEMORY

    def memory_kills(self) -> int:
        counted = self.group.count("memory")
        return self.own_kills if counted is None else counted

    def check(self) -> str | None:
        """The limit for which the execution is to be ended, if there is one. Ends the largest process where memory is ours to watch."""
        is_bomb = self._is_bomb()
        is_crowd = self.group.is_larger_than(CROWD)
        # Processes that are killed need the processor to end: with only what others leave, that takes minutes.
        self.is_ending = is_crowd and (self.is_ending or is_bomb)
        self._rank(is_last=is_crowd and not self.is_ending)
        if self.group.count("memory") is None and self.limits["memory"]:
            self._check_memory()
        if is_bomb:
            return "too-many-processes"
        return "disk-quota" if self.disk is not None and self.disk.is_over() else None

    def _rank(self, is_last: bool) -> None:
        if is_last != self.is_last:
            self.is_last = is_last
            self.group.go_last(is_last)

    def _is_bomb(self) -> bool:
        """Whether it goes on and on to start processes where it can have no more: that slows down everybody."""
        refused = self.group.count("pids")
        if refused is not None:
            return refused - self.before["too-many-processes"] >= MOST_REFUSALS
        if not self.limits["processes"]:
            return False
        is_crowded = len(processes.descendants(os.getpid())) >= self.limits["processes"] * NEARLY
        self.was_crowded |= is_crowded
        self.crowded_since = (self.crowded_since or time.monotonic()) if is_crowded else None
        return self.crowded_since is not None and time.monotonic() - self.crowded_since > LONGEST_CROWD

    def _check_memory(self) -> None:
        sizes = {pid: memory_of(pid) for pid in processes.descendants(os.getpid())}
        if sum(sizes.values()) + taken_in("/dev/shm") <= self.limits["memory"]:
            return
        self.own_kills += 1
        try:
            os.kill(max(sizes, key=lambda pid: sizes[pid]), signal.SIGKILL)
        except (OSError, ValueError):
            pass

    def hits(self, went_well: bool) -> list[str]:
        """The limits that the execution has run into."""
        found: list[str] = []
        if self.memory_kills() > self.before["oom"]:
            found.append("oom")
        if self.was_crowded or (self.group.count("pids") or 0) > self.before["too-many-processes"]:
            found.append("too-many-processes")
        is_refused = self.began_full and not went_well
        if is_refused or (self.disk is not None and self.disk.is_over(FAR_OFF if went_well else self.disk.next_exact)):
            found.append("disk-quota")
        return found


def processor_ticks() -> int:
    """Processor time of all processes of the session, in the kernel's own small measure."""
    ticks = 0
    for pid in processes.descendants(os.getpid()):
        try:
            fields = processes.read("/proc/%d/stat" % pid).rpartition(b")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        except (OSError, IndexError, ValueError):
            pass
    return ticks


def memory_of(pid: int) -> int:
    """What a process has in memory for itself, without files."""
    try:
        fields = processes.read("/proc/%d/statm" % pid).split()
        return (int(fields[1]) - int(fields[2])) * PAGE
    except (OSError, IndexError, ValueError):
        return 0


def taken_in(folder: str) -> int:
    about: Any = os.statvfs(folder)
    taken: int = (about.f_blocks - about.f_bfree) * about.f_frsize
    return taken
