"""Gives each session a control group, which limits the memory, processes and processor time that all of its processes use together.

The server has made a folder for this process in every hierarchy that it could. A hierarchy that it could not use limits nothing.
"""

from __future__ import annotations

import os
from typing import Any

from cuvette_driver import processes

PERIOD = 100_000
# By the version of control groups: the file that holds a group's weight on a busy processor, the default weight, and the least.
WEIGHTS = {1: ("cpu.shares", "1024", "2"), 2: ("cpu.weight", "100", "1")}


class ControlGroup:
    """The group of one session, made before its first process. Code joins it, and what code starts is in it too. The keeper
    stays outside where that is cheap, so that it can act when the session has used up its share."""

    def __init__(self, policy: dict[str, Any], name: str) -> None:
        given = policy["cgroup"] or {"version": 0, "folders": {}}
        self.version: int = given["version"]
        # On version 2, all controllers share one folder.
        self.folders = {kind: os.path.join(folder, name) for kind, folder in given["folders"].items()}
        self.limits: dict[str, int] = policy["limits"]
        # Descriptors, because the paths are hidden from the session.
        self.counters: dict[str, int] = {}
        self.weight = self.size = -1
        self.task_files: list[int] = []

    def make(self, joins_now: bool = False) -> None:
        """Makes the group. With `joins_now` this process joins it, and so does all that it forks, the keeper included; else code joins by itself."""
        for folder in set(self.folders.values()):
            os.mkdir(folder)
        self._limit()
        for kind, file in self._counter_files():
            self.counters[kind] = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        if "cpu" in self.folders and "pids" in self.folders:
            self.weight = os.open(os.path.join(self.folders["cpu"], WEIGHTS[self.version][0]), os.O_WRONLY | os.O_CLOEXEC)
            self.size = os.open(os.path.join(self.folders["pids"], "pids.current"), os.O_RDONLY | os.O_CLOEXEC)
        if self.version == 2:
            # Joining takes a lock that blocks every fork on the machine for milliseconds, so it is done once, ahead of the session.
            for folder in set(self.folders.values()):
                processes.write(os.path.join(folder, "cgroup.procs"), "0")
            return
        # Version 1 takes a single thread without that lock.
        task_files = [os.path.join(folder, "tasks") for folder in self.folders.values()]
        self.task_files = [os.open(path, os.O_WRONLY | os.O_CLOEXEC) for path in task_files]
        if joins_now:
            self.join()
            for entrance in self.task_files:
                os.close(entrance)
            self.task_files = []

    def join(self) -> None:
        """Moves this process, which is to run code, into the group."""
        for entrance in self.task_files:
            os.write(entrance, b"0")

    def _limit(self) -> None:
        is_2 = self.version == 2
        memory, processes, cpus = self.limits["memory"], self.limits["processes"], self.limits["cpus"]
        if memory:
            self._set("memory", "memory.max" if is_2 else "memory.limit_in_bytes", str(memory))
            # A session that swaps would slow down all others before it is ended. The file is absent where the kernel does not count swap.
            self._try("memory", "memory.swap.max" if is_2 else "memory.memsw.limit_in_bytes", "0" if is_2 else str(memory))
        if processes:
            self._set("pids", "pids.max", str(processes))
        if cpus and is_2:
            self._set("cpu", "cpu.max", "%d %d" % (cpus * PERIOD, PERIOD))
        elif cpus:
            self._set("cpu", "cpu.cfs_quota_us", str(cpus * PERIOD))

    def _set(self, kind: str, file: str, value: str) -> None:
        if kind in self.folders:
            processes.write(os.path.join(self.folders[kind], file), value)

    def _try(self, kind: str, file: str, value: str) -> None:
        try:
            self._set(kind, file, value)
        except OSError:
            pass

    def _counter_files(self) -> list[tuple[str, str]]:
        names = {"memory": "memory.events" if self.version == 2 else "memory.oom_control", "pids": "pids.events"}
        return [(kind, os.path.join(self.folders[kind], name)) for kind, name in names.items() if kind in self.folders]

    def is_larger_than(self, count: int) -> bool:
        """Says whether it has more processes and threads than that; never where its weight cannot be changed."""
        return self.size >= 0 and int(os.pread(self.size, 32, 0)) > count

    def use_least_weight(self, is_last: bool) -> None:
        """Gives the group the least weight on a busy processor, or the default one again."""
        _, ordinary, least = WEIGHTS[self.version]
        os.pwrite(self.weight, (least if is_last else ordinary).encode(), 0)

    def count(self, kind: str) -> int | None:
        """Counts how often the limit was hit; None if there is no such limit."""
        if kind not in self.counters:
            return None
        word = b"oom_kill " if kind == "memory" else b"max "
        for line in os.pread(self.counters[kind], 4096, 0).splitlines():
            if line.startswith(word):
                return int(line.split()[1])
        return 0


def open_folders(policy: dict[str, Any]) -> None:
    """Makes the zygote's own folder, named by its process, so that whoever finds it knows whether the zygote lives."""
    given = policy["cgroup"]
    if given is None:
        return
    started = processes.read("/proc/self/stat").rpartition(b")")[2].split()[19].decode()
    name = "z%d-%s" % (os.getpid(), started)
    given["folders"] = {kind: os.path.join(folder, name) for kind, folder in given["folders"].items()}
    for folder in set(given["folders"].values()):
        os.mkdir(folder)
        if given["version"] == 2:
            for kind in given["folders"]:
                processes.write(os.path.join(folder, "cgroup.subtree_control"), "+" + kind)


def close_folders(policy: dict[str, Any]) -> None:
    for folder in set((policy["cgroup"] or {"folders": {}})["folders"].values()):
        try:
            os.rmdir(folder)
        except OSError:
            pass  # Sessions live on in it.


def names(policy: dict[str, Any]) -> set[str]:
    """Lists the sessions that have a group in the zygote's own folders."""
    found: set[str] = set()
    for folder in set((policy["cgroup"] or {"folders": {}})["folders"].values()):
        try:
            found.update(entry.name for entry in os.scandir(folder) if entry.is_dir())
        except FileNotFoundError:
            pass
    return found


def remove(policy: dict[str, Any], name: str) -> bool:
    """Removes the group of a session that has ended; False while the kernel still counts a process in it."""
    given = policy["cgroup"] or {"folders": {}}
    is_gone = True
    for folder in {os.path.join(folder, name) for folder in given["folders"].values()}:
        try:
            os.rmdir(folder)
        except FileNotFoundError:
            pass
        except OSError:
            is_gone = False
    return is_gone
