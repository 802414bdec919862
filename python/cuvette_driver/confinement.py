"""Confines a session, step by step: new namespaces, private mounts, resource limits, dropped capabilities and a filter of system calls.

The server has put the zygote into a root made by bubblewrap, which holds what sessions may see, and below HIDDEN what only the driver may.
The keeper is the init process of its session's pid namespace: signals from code in there have no effect on it, and all processes end with it.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import signal
import socket
import struct
from typing import Any

from cuvette_driver import cgroup, linux, namespaces, processes, seccomp
from cuvette_driver.isolation import Isolation
from cuvette_driver.namespaces import MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_RDONLY, bind, check, libc, mount
from cuvette_driver.usage_monitor import UsageMonitor

HIDDEN = "/cuvette"
PROGRAMS, PROGRAM = "/mnt/programs", "/mnt/program"
CODE_USER = 1000
HOSTNAME = b"cuvette"
PROXY_PORT = 3128
# The largest file, in bytes, that a program may write when its session has used up its disk quota: it may remove files, and write small ones or none.
SMALL_FILE, NO_FILE = 1 << 20, 1

PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 4, 24, 47, 4
CAPABILITY_VERSION_3 = 0x20080522
LAST_CAPABILITY = 63
SIOCSIFFLAGS, IFF_UP = 0x8914, 1

Policy = dict[str, Any]


def read_policy(path: str) -> Policy:
    """Gives up root for good before it reads the policy, and becomes the user who owns what is hidden from sessions."""
    if os.geteuid() == 0:
        user = os.stat(os.path.join(HIDDEN, "run")).st_uid
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        set_dumpable(True)  # Else this process's own files in /proc would belong to root from here on.
    with open(path) as file:
        policy: Policy = json.load(file)
    return policy


class Confiner(Isolation):
    """Confines the sessions of one zygote, whose own user namespace lets it make others."""

    def __init__(self, policy: Policy, for_programs: bool = False) -> None:
        self.policy = policy
        # A keeper of programs joins the control group in advance, or each call would wait for its program to join. A Python has joined before it is called.
        self.for_programs = for_programs
        cgroup.open_folders(policy)
        namespaces.unshare_user(CODE_USER, namespaces.CLONE_NEWNS)
        namespaces.make_mounts_private()
        self.egress = start_egress(policy["proxy"]) if policy["network"] == "proxy" else None

    def isolate(self) -> Confinement:
        return Confinement.fork_confined(self.policy, self.egress, joins_now=self.for_programs)

    def clean_up(self, name: str) -> bool:
        return cgroup.remove(self.policy, name)

    def clean_up_all_but(self, living: set[str]) -> bool:
        left = [name for name in cgroup.names(self.policy) - living if not cgroup.remove(self.policy, name)]
        return not left

    def close(self) -> None:
        cgroup.close_folders(self.policy)


def start_egress(proxy: str) -> socket.socket:
    """Starts the process that carries connections from sessions to the server's proxy; it ends with the zygote."""
    from cuvette_driver import egress

    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        try:
            ours.close()
            linux.name_process("cuvette-egress")
            egress.run(theirs, proxy)
        finally:
            os._exit(0)
    theirs.close()
    return ours


class Confinement:
    """The confinement of one session, as its keeper holds it."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.limits: dict[str, int] = policy["limits"]
        self.group = cgroup.ControlGroup(policy, str(os.getpid()))
        self.name = str(os.getpid())
        self.monitor = UsageMonitor(self.group, self.limits)
        self.has_folders = False
        self.mounted_program: str | None = None
        # The machine's processes, of which the session sees none.
        self.processes = os.open("/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self.pid = 0

    @classmethod
    def fork_confined(cls, policy: Policy, egress: socket.socket | None, joins_now: bool = False) -> Confinement:
        """Returns in a new process, the init process of new namespaces; the one that called this ends."""
        self = cls(policy)
        self.group.make(joins_now)
        others = namespaces.CLONE_NEWNS | namespaces.CLONE_NEWPID | namespaces.CLONE_NEWIPC | namespaces.CLONE_NEWUTS
        namespaces.unshare(others | (0 if policy["network"] == "allow" else namespaces.CLONE_NEWNET))
        if os.fork() != 0:
            os._exit(0)
        self.pid = int(os.readlink("self", dir_fd=self.processes))
        self.set_up_namespaces(egress)
        return self

    def set_up_namespaces(self, egress: socket.socket | None) -> None:
        """Mounts and sets what every session has for itself, whichever it will be."""
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
        for source, target in self.policy["covers"]:
            bind(source, target)
        # A control group counts shared memory as memory; the size bounds it where there is none.
        size = self.limits["memory"] // 2 or "50%"
        mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777,size=%s,nr_inodes=10000" % size)
        mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")
        assert libc is not None
        check(libc.sethostname(HOSTNAME, len(HOSTNAME)), "sethostname")
        if self.policy["network"] != "allow":
            bring_loopback_up()
        if egress is not None:
            self.open_egress(egress)
            egress.close()
        if self.limits["cpus"]:
            pin_to_processors(self.limits["cpus"], self.pid)

    def open_egress(self, egress: socket.socket) -> None:
        """Has connections to the proxy's address inside of the session carried to the server's proxy, for as long as the session lives."""
        life, self.life = os.pipe()
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", PROXY_PORT))
            listener.listen(64)
            socket.send_fds(egress, [b"\n"], [listener.fileno(), life])
        os.close(life)

    def mount_folders(self, mounts: list[list[str]], are_new: bool = False) -> None:
        """Mounts the session's own folders, and hides where they came from."""
        folders = [open_folder(source) for source, _ in mounts]
        # Folders of the system or of a tool below one of these targets are mounted again on top.
        kept = [(target, os.open(target, os.O_PATH | os.O_CLOEXEC)) for target in self.policy["kept"]]
        for source, target in mounts:
            os.makedirs(target, exist_ok=True)  # One target may be below another.
            bind(source, target)
        for target, fd in kept:
            os.makedirs(target, exist_ok=True)
            bind("/proc/self/fd/%d" % fd, target)
            os.close(fd)
        mask(HIDDEN)
        self.monitor.watch_folders(folders, are_new)
        self.has_folders = True

    def mount_for_program(self, mounts: list[list[str]], folder: str) -> None:
        """Mounts the folders of a session that starts with a program: that program's folder is mounted at PROGRAM for good."""
        placed = [[os.path.join(source, folder), PROGRAM] if target == PROGRAMS else [source, target] for source, target in mounts]
        self.mount_folders(placed, are_new=True)
        self.mounted_program = folder

    def show_program(self, folder: str) -> None:
        """Mounts, in a process that is to become a program, its own folder at PROGRAM, and hides those of others."""
        if folder == self.mounted_program:
            return
        namespaces.unshare(namespaces.CLONE_NEWNS)
        bind(os.path.join(PROGRAMS, folder), PROGRAM)
        mask(PROGRAMS)

    @property
    def names(self) -> tuple[int, bytes]:
        """The pid of its init process as the machine sees it, and the name of its control group."""
        return self.pid, self.name.encode()

    def protect_keeper(self) -> None:
        """Keeps processes of the same user from tracing the keeper and from reading its memory; signals from inside have no effect."""
        set_dumpable(False)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def drop_privileges_as_interpreter(self, kept: set[int]) -> None:
        """Drops the privileges of a forked worker, which keeps only these descriptors. Code that asks for too much memory gets a MemoryError, and lives on."""
        memory = self.limits["memory"]
        limits = {**self.resource_limits(), resource.RLIMIT_DATA: memory and memory + data_size()}
        self.group.join()
        close_all_but(kept)
        drop_privileges(limits)

    def drop_privileges_as_program(self, limits: dict[int, int]) -> None:
        """Drops the privileges of a process that is to become a program, which has limits of its own beside the session's."""
        self.group.join()
        drop_privileges({**self.resource_limits(), **limits, **self.limits_when_full()})

    def limits_when_full(self) -> dict[int, int]:
        """Bounds what a program can write where the disk quota is used up: the usage monitor sees only what is written already."""
        if not self.monitor.was_full_at_start:
            return {}
        return {resource.RLIMIT_FSIZE: NO_FILE if self.monitor.was_far_over_at_start else SMALL_FILE}

    def resource_limits(self) -> dict[int, int]:
        limits = {
            resource.RLIMIT_NOFILE: self.limits["openFiles"],
            resource.RLIMIT_FSIZE: self.limits["disk"],
        }
        if self.group.count("pids") is None:
            limits[resource.RLIMIT_NPROC] = self.limits["processes"]
        return limits


def drop_privileges(limits: dict[int, int]) -> None:
    """Sets the limits and gives up every capability, for good."""
    set_dumpable(True)
    namespaces.unshare_user(CODE_USER)
    # The kernel counts these by user and namespace; outside of their namespaces, all sessions have the same user.
    for limit, value in ((resource.RLIMIT_SIGPENDING, 1024), (resource.RLIMIT_MSGQUEUE, 1 << 19), (resource.RLIMIT_MEMLOCK, 1 << 23)):
        set_limit(limit, value)
    for name, value in (("max_inotify_instances", 16), ("max_inotify_watches", 8192), ("max_user_namespaces", 0)):
        processes.write("/proc/sys/user/" + name, str(value))
    processes.write("/proc/self/oom_score_adj", "1000")
    for limit, value in limits.items():
        if value:
            set_limit(limit, value)
    set_limit(resource.RLIMIT_CORE, 0)
    drop_capabilities()
    set_dumpable(True)
    seccomp.install()


def set_limit(limit: int, value: int) -> None:
    """Lowers a resource limit for good; one that is lower already stays."""
    _, hard = resource.getrlimit(limit)
    least = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(limit, (least, least))


def open_folder(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def data_size() -> int:
    """Counts the bytes of data that this process has already, shared with the zygote that it was forked from."""
    for line in processes.read("/proc/self/status").splitlines():
        if line.startswith(b"VmData:"):
            return int(line.split()[1]) * 1024
    return 0


def close_all_but(kept: set[int]) -> None:
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd > 2 and fd not in kept:
            try:
                os.close(fd)
            except OSError:
                pass  # It was the descriptor that the list was read from.


def mask(folder: str) -> None:
    mount("tmpfs", folder, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=555,size=4k")


def drop_capabilities() -> None:
    assert libc is not None
    libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    for number in range(LAST_CAPABILITY + 1):
        if libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0) != 0:
            break
    header = struct.pack("=II", CAPABILITY_VERSION_3, 0)
    check(libc.capset(header, bytes(24)), "capset")


def set_dumpable(is_dumpable: bool) -> None:
    assert libc is not None
    libc.prctl(PR_SET_DUMPABLE, int(is_dumpable), 0, 0, 0)


def bring_loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))


def pin_to_processors(count: int, which: int) -> None:
    """Pins the session to as many processors as it may use, so that programs count no more; not the same ones for every session."""
    all_of_them = sorted(os.sched_getaffinity(0))
    start = which % len(all_of_them)
    os.sched_setaffinity(0, set((all_of_them * 2)[start : start + min(count, len(all_of_them))]))
