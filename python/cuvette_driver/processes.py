"""Finds, describes and ends the processes that user code started. It knows nothing of messages."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import resource

DYING = 0.2
FIRST = 1
# Seconds after which processes that fork faster than they can be killed are left to whoever ends their parent.
KILL_TIMEOUT = 1.0
MOST_DESCRIBED = 20
# Seconds to wait for the command lines of processes that are just being started. Those that have removed theirs are not worth more.
STARTING = 0.05
RSS_UNIT = 1 if sys.platform == "darwin" else 1024
PF_EXITING = 0x4  # Of linux/sched.h.
SHORT = 1024  # The kernel returns files of /proc in pieces of about a page; a shorter piece is the last.
HAS_CHILDREN_FILE = os.path.exists("/proc/self/task/%d/children" % os.getpid())


def children(pid: int) -> list[int]:
    """The direct children of a process."""
    if not HAS_CHILDREN_FILE:
        return _process_tree().get(pid, [])
    found: list[int] = []
    for thread in _threads(pid):
        try:
            found.extend(map(int, read("/proc/%d/task/%s/children" % (pid, thread)).split()))
        except OSError:
            pass  # The thread has ended; others of the process may go on.
    return found


def _threads(pid: int) -> list[Any]:
    """Lists the threads of a process. The link count of the folder says how many there are: mostly one, which has the number of the process."""
    folder = "/proc/%d/task" % pid
    try:
        return [pid] if os.stat(folder).st_nlink == 3 else os.listdir(folder)
    except OSError:
        return []


def descendants(pid: int, without: frozenset[int] = frozenset()) -> list[int]:
    """Lists every process below this one, parents before their children, without the trees below some."""
    family = None if HAS_CHILDREN_FILE else _process_tree()
    found: list[int] = []
    waiting = [pid]
    while waiting:
        parent = waiting.pop()
        below = children(parent) if family is None else family.get(parent, [])
        below = [child for child in below if child not in without]
        found.extend(below)
        waiting.extend(below)
    return found


def describe_all(pids: list[int]) -> dict[int, str]:
    """Describes the first processes by their command lines; the others by name, which costs next to nothing."""
    deadline = time.monotonic() + STARTING
    while any(is_starting(pid) for pid in pids[:MOST_DESCRIBED]) and time.monotonic() < deadline:
        time.sleep(0.001)
    return {pid: describe(pid) if place < MOST_DESCRIBED else name_of(pid) for place, pid in enumerate(pids)}


def is_starting(pid: int) -> bool:
    """Says whether a process has no command line yet: on exec, the kernel gives it its new name first, and its arguments later."""
    try:
        return not read("/proc/%d/cmdline" % pid) and not is_exiting(pid)
    except OSError:
        return False


def name_of(pid: int) -> str:
    try:
        return read("/proc/%d/comm" % pid).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def describe(pid: int) -> str:
    """The command line of a process, shortened for a person."""
    try:
        command = read("/proc/%d/cmdline" % pid) or read("/proc/%d/comm" % pid)
        if command == read("/proc/self/cmdline"):
            return "python (forked by the code)"
    except OSError:
        return ""
    text = command.replace(b"\0", b" ").decode("utf-8", "replace").strip()
    return text if len(text) <= 80 else text[:77] + "..."


def is_exiting(pid: int) -> bool:
    """Says whether the kernel has begun to end a process, which it does before it closes the descriptors."""
    try:
        return bool(int(read("/proc/%d/stat" % pid).rpartition(b")")[2].split()[6]) & PF_EXITING)
    except OSError:
        return False


def is_alive(pid: int) -> bool:
    """Says whether a process still runs; a zombie does not."""
    try:
        return read("/proc/%d/stat" % pid).rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        pass
    if sys.platform == "linux":
        return False
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def is_same(pid: int, started: str, folder: int | None = None) -> bool:
    """True while that very process runs: its id, and the time at which the kernel says it started. `folder` is another /proc."""
    try:
        state, *_, birth = read("%s%d/stat" % ("/proc/" if folder is None else "", pid), folder).rpartition(b")")[2].split()[:20]
        return state not in (b"Z", b"X") and birth.decode() == started
    except OSError:
        return folder is None and is_alive(pid)


def kill_descendants(pid: int, spare: int, without: frozenset[int] = frozenset()) -> list[tuple[int, str]]:
    """Ends every descendant but the one spared and the trees left out; repeats until no new one appears.

    Returns what was ended, as (pid, command).
    """
    ended: dict[int, str] = {}
    if pid == FIRST and not without and (not spare or not is_alive(spare)):
        stop_all_others()
        ended = describe_all(descendants(pid))
        send(-1, signal.SIGKILL)
        wait_for_end(list(ended))
        return list(ended.items())
    deadline = time.monotonic() + KILL_TIMEOUT
    while time.monotonic() < deadline:
        found = [p for p in descendants(pid, without) if p != spare and p not in ended and is_alive(p)]
        if not found:
            break
        # They are stopped first: a process that keeps forking would outrun the killing, and block reads of its command line.
        for victim in found:
            send(victim, signal.SIGSTOP)
        ended.update(describe_all(found))
        for victim in found:
            send(victim, signal.SIGKILL)
    if ended:
        wait_for_end(list(ended))
    return list(ended.items())


def stop_all_others() -> None:
    """Sends SIGSTOP to all other processes of the namespace at once, if this is its init process, so that none can outrun it.

    A process that forks without end holds its own memory nearly all the time, and whoever asks for its command line waits for that.
    """
    if os.getpid() == FIRST:
        send(-1, signal.SIGSTOP)


def wait_for_end(pids: list[int]) -> None:
    """Waits a moment for killed processes to die, so that whoever is told that they have ended finds it so."""
    deadline = time.monotonic() + DYING
    while any(map(is_alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.0005)


def peak_memory(pid: int) -> int:
    """The most memory that a live process has used, in bytes; 0 if the kernel does not say."""
    try:
        text = read("/proc/%d/status" % pid)
        start = text.index(b"VmHWM:")
        return int(text[start + 6 : text.index(b"kB", start)]) * 1024
    except (OSError, ValueError):
        return 0


def describe_exit(status: int, usage: resource.struct_rusage) -> dict[str, Any]:
    """How a process ended, and what it used, from what `wait4` says."""
    return {
        "exit": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
        "signal": name_of_signal(os.WTERMSIG(status)) if os.WIFSIGNALED(status) else None,
        "cpu": usage.ru_utime + usage.ru_stime,
        "peak": usage.ru_maxrss * RSS_UNIT,
    }


def reap_killed(patience: float) -> None:
    """Reaps children that have been killed, so that none of them is left to the machine's init process."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            time.sleep(0.001)


def out_of_memory_kills() -> int:
    """How often this machine's kernel has ended a process for lack of memory; 0 where it does not say."""
    try:
        for line in read("/proc/vmstat").splitlines():
            if line.startswith(b"oom_kill "):
                return int(line.split()[1])
    except OSError:
        pass
    return 0


def read(path: str, folder: int | None = None) -> bytes:
    """Reads a whole file of /proc or /sys, without Python's own layers of files, which a keeper would otherwise never load."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        data = part = os.read(fd, 1 << 16)
        while len(part) >= SHORT:
            part = os.read(fd, 1 << 16)
            data += part
        return data
    finally:
        os.close(fd)


def write(path: str, text: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


def name_of_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # Most real-time signals have no name.
        return "SIG%d" % number


def send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        pass


def _process_tree() -> dict[int, list[int]]:
    try:
        listing = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, check=False).stdout
    except OSError:
        return {}
    family: dict[int, list[int]] = {}
    for line in listing.splitlines():
        pid, parent = map(int, line.split())
        family.setdefault(parent, []).append(pid)
    return family
