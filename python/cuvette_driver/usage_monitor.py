"""Monitors what a confined session uses while code runs: disk always, memory and processes where no control group counts them."""

from __future__ import annotations

import os
import signal
import time

from cuvette_driver import processes
from cuvette_driver.cgroup import ControlGroup
from cuvette_driver.disk import FAR_OFF, Disk

EVERY = 0.05
EVERY_WITH_MEMORY = 0.03
PAGE = os.sysconf("SC_PAGE_SIZE")
NEARLY = 0.95
# How often a session may be refused a process before it is ended; and, where the kernel does not tell, for how long it may be at its limit.
MOST_REFUSALS, FULL_TIMEOUT = 20, 1.0
# With more processes and threads than this, a session gets the least weight: each of them would have a time slice before those of others.
MANY_PROCESSES = 32


class UsageMonitor:
    def __init__(self, group: ControlGroup, limits: dict[str, int]) -> None:
        self.group = group
        self.limits = limits
        self.disk: Disk | None = None
        self.own_kills = 0
        self.was_full_of_processes = False
        self.full_since: float | None = None
        self.before = {"oom": 0, "too-many-processes": 0}
        self.worked = 0
        self.is_last = False
        # Whether many processes were killed, and the last of them are not gone yet.
        self.is_ending = False
        # Whether the disk quota was used up when the execution began, and whether by so much that nothing may be written.
        self.was_full_at_start = self.was_far_over_at_start = False

    def watch_folders(self, folders: list[int], are_new: bool = False) -> None:
        """Starts to watch the session's folders, by descriptors that see nothing of what is mounted inside them.

        New ones are not counted before code runs: they hold no more than what was put there for it.
        """
        self.disk = Disk(folders, self.limits["disk"], self.limits["fileCount"])
        if are_new:
            self.disk.baseline = self.disk.filesystem_usage()

    def begin(self) -> None:
        """Starts an execution: what was used before is not its doing."""
        self.was_full_of_processes = False
        self.full_since = None
        self.before = {"oom": self.memory_kills(), "too-many-processes": self.group.count("pids") or 0}
        if self.disk is not None:
            self.disk.begin()
            self.was_full_at_start, self.was_far_over_at_start = self.disk.is_full, self.disk.is_far_past

    def end(self) -> None:
        """Ends an execution: what is used from here on is not its doing."""
        self.begin()
        self.worked = processor_ticks()

    def has_run_since(self) -> bool:
        """Says whether any process has run since the execution ended: other interpreters of the session write to the same folders."""
        return processor_ticks() > self.worked

    @property
    def interval(self) -> float:
        return EVERY if self.group.count("memory") is not None else EVERY_WITH_MEMORY

    def memory_kills(self) -> int:
        counted = self.group.count("memory")
        return self.own_kills if counted is None else counted

    def check(self) -> str | None:
        """Gives the limit for which the execution is to be ended, if there is one. Kills the largest process itself where no control group limits memory."""
        is_fork_bomb = self._is_fork_bomb()
        are_many = self.group.is_larger_than(MANY_PROCESSES)
        # Killed processes need the processor to end: with the least weight, that takes minutes on a busy machine.
        self.is_ending = are_many and (self.is_ending or is_fork_bomb)
        self._adjust_weight(is_last=are_many and not self.is_ending)
        if self.group.count("memory") is None and self.limits["memory"]:
            self._check_memory()
        if is_fork_bomb:
            return "too-many-processes"
        return "disk-quota" if self.disk is not None and self.disk.is_over() else None

    def _adjust_weight(self, is_last: bool) -> None:
        if is_last != self.is_last:
            self.is_last = is_last
            self.group.use_least_weight(is_last)

    def _is_fork_bomb(self) -> bool:
        """Says whether code goes on to start processes where it can have no more, which slows down every session."""
        refused = self.group.count("pids")
        if refused is not None:
            return refused - self.before["too-many-processes"] >= MOST_REFUSALS
        if not self.limits["processes"]:
            return False
        is_crowded = len(processes.descendants(os.getpid())) >= self.limits["processes"] * NEARLY
        self.was_full_of_processes |= is_crowded
        self.full_since = (self.full_since or time.monotonic()) if is_crowded else None
        return self.full_since is not None and time.monotonic() - self.full_since > FULL_TIMEOUT

    def _check_memory(self) -> None:
        sizes = {pid: memory_of(pid) for pid in processes.descendants(os.getpid())}
        if sum(sizes.values()) + bytes_used_in("/dev/shm") <= self.limits["memory"]:
            return
        self.own_kills += 1
        try:
            os.kill(max(sizes, key=lambda pid: sizes[pid]), signal.SIGKILL)
        except (OSError, ValueError):
            pass

    def hits(self, went_well: bool) -> list[str]:
        """Lists the limits that the execution has run into."""
        found: list[str] = []
        if self.memory_kills() > self.before["oom"]:
            found.append("oom")
        if self.was_full_of_processes or (self.group.count("pids") or 0) > self.before["too-many-processes"]:
            found.append("too-many-processes")
        is_refused = self.was_full_at_start and not went_well
        if is_refused or (self.disk is not None and self.disk.is_over(FAR_OFF if went_well else self.disk.next_exact)):
            found.append("disk-quota")
        return found


def processor_ticks() -> int:
    """Sums the processor time of all processes of the session, in clock ticks."""
    ticks = 0
    for pid in processes.descendants(os.getpid()):
        try:
            fields = processes.read("/proc/%d/stat" % pid).rpartition(b")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        except (OSError, IndexError, ValueError):
            pass
    return ticks


def memory_of(pid: int) -> int:
    """Gives the bytes that a process has in memory for itself, without files."""
    try:
        fields = processes.read("/proc/%d/statm" % pid).split()
        return (int(fields[1]) - int(fields[2])) * PAGE
    except (OSError, IndexError, ValueError):
        return 0


def bytes_used_in(folder: str) -> int:
    about = os.statvfs(folder)
    return (about.f_blocks - about.f_bfree) * about.f_frsize
