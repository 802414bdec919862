"""Builds and installs the seccomp filter that code in a confined session runs under: it refuses system calls that nothing there needs.

Most of them would fail for want of capabilities all the same; the filter is there for holes in the kernel's own checks.
"""

from __future__ import annotations

import ctypes
import os
import struct

from cuvette_driver.namespaces import (
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    CLONE_NEWUTS,
    check,
    libc,
)

# The number of each system call on x86-64 and on arm64; None where it does not exist.
REFUSED: dict[str, tuple[int | None, int | None]] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "uselib": (134, None),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "fanotify_init": (300, 262),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "lookup_dcookie": (212, 18),
    "nfsservctl": (180, 42),
    "mbind": (237, 235),
    "set_mempolicy": (238, 237),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
}
# These fail with ENOSYS, so that callers do without them: clone3 hides its flags from a filter, io_uring hides whole calls.
ABSENT: dict[str, tuple[int, int]] = {
    "clone3": (435, 435),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
}
CLONE, UNSHARE, SOCKET, IOCTL = (56, 220), (272, 97), (41, 198), (16, 29)
# These work on any process of the same user, the keeper included, which code could slow down or limit until it dies.
PRLIMIT, SETPRIORITY, IOPRIO_SET = (302, 261), (141, 140), (251, 30)
SCHEDULING: dict[str, tuple[int, int]] = {
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
}
KEEPER = 1
PRIO_PROCESS, IOPRIO_WHO_PROCESS = 0, 1
# A placeholder in the filter for the pid of the process that installs it; no process has this pid.
OWN = 0x7FFFFFFE

CLONE_NEWCGROUP, CLONE_NEWTIME = 0x02000000, 0x80
NAMESPACES = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWCGROUP
# Local, IPv4, IPv6; netlink for the list of network interfaces alone.
FAMILIES, NETLINK, NETLINK_ROUTE = (1, 2, 10), 16, 0
# These ioctls type into a terminal as if its user did.
TIOCSTI, TIOCLINUX = 0x5412, 0x541C

MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
X32 = 0x40000000

NUMBER, ARCH, ARGUMENTS = 0, 4, 16
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, KILL = 0x7FFF0000, 0x80000000
EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2


def refuse(number: int) -> int:
    """Gives the filter's return value by which a call fails with that error."""
    return 0x00050000 | number


class Program:
    """Instructions of the kernel's BPF filter language. Jumps go forward, over what follows."""

    def __init__(self) -> None:
        self.instructions: list[tuple[int, int, int, int]] = []

    def add(self, code: int, value: int, if_true: int = 0, if_false: int = 0) -> None:
        self.instructions.append((code, if_true, if_false, value))

    def end_if(self, code: int, value: int, end: int) -> None:
        self.add(code, value, 0, 1)
        self.add(RETURN, end)

    def argument(self, index: int) -> None:
        self.add(LOAD, ARGUMENTS + 8 * index)  # The lower half: the flags that matter are in it.

    def upper_half(self, index: int) -> None:
        self.add(LOAD, ARGUMENTS + 8 * index + 4)

    def only_for(self, number: int, body: Program) -> None:
        """Applies `body` to that call alone; the body must end with a return."""
        self.add(EQUAL, number, 0, len(body.instructions))
        self.instructions += body.instructions

    def packed(self) -> bytes:
        return b"".join(struct.pack("=HBBI", *instruction) for instruction in self.instructions)


def build(machine: str) -> bytes:
    """Builds the filter for a machine; it is empty for one whose system call numbers are not known here."""
    if machine not in MACHINES:
        return b""
    column, architecture = MACHINES[machine]
    program = Program()
    program.add(LOAD, ARCH)
    program.add(EQUAL, architecture, 1, 0)
    program.add(RETURN, KILL)  # A call in another architecture's numbering would be taken for another call.
    program.add(LOAD, NUMBER)
    if column == 0:
        program.end_if(AT_LEAST, X32, refuse(ENOSYS))
    for numbers in REFUSED.values():
        number = numbers[column]
        if number is not None:
            program.end_if(EQUAL, number, refuse(EPERM))
    for absent in ABSENT.values():
        program.end_if(EQUAL, absent[column], refuse(ENOSYS))
    for call, mask in ((CLONE, NAMESPACES), (UNSHARE, NAMESPACES | CLONE_NEWTIME)):
        program.only_for(call[column], argument_filter(0, ANY_BIT, (mask,), EPERM))
    program.only_for(IOCTL[column], argument_filter(1, EQUAL, (TIOCSTI, TIOCLINUX), EPERM))
    program.only_for(SOCKET[column], socket_filter())
    for call in SCHEDULING.values():
        program.only_for(call[column], argument_filter(0, EQUAL, (KEEPER,), EPERM))
    program.only_for(SETPRIORITY[column], one_process_filter(PRIO_PROCESS))
    program.only_for(IOPRIO_SET[column], one_process_filter(IOPRIO_WHO_PROCESS))
    program.only_for(PRLIMIT[column], limits_filter())
    program.add(RETURN, ALLOW)
    return program.packed()


def argument_filter(index: int, test: int, values: tuple[int, ...], error: int) -> Program:
    body = Program()
    body.argument(index)
    for value in values:
        body.end_if(test, value, refuse(error))
    body.add(RETURN, ALLOW)
    return body


def socket_filter() -> Program:
    body = Program()
    body.argument(0)
    for family in FAMILIES:
        body.end_if(EQUAL, family, ALLOW)
    body.add(EQUAL, NETLINK, 1, 0)
    body.add(RETURN, refuse(EAFNOSUPPORT))
    body.argument(2)
    body.end_if(EQUAL, NETLINK_ROUTE, ALLOW)
    body.add(RETURN, refuse(EAFNOSUPPORT))
    return body


def one_process_filter(kind: int) -> Program:
    """For calls that name a process, or by another kind all of a group or of a user: the keeper is of the same user, and may be of the same group."""
    body = Program()
    body.argument(0)
    body.add(EQUAL, kind, 1, 0)
    body.add(RETURN, refuse(EPERM))
    body.argument(1)
    body.end_if(EQUAL, KEEPER, refuse(EPERM))
    body.add(RETURN, ALLOW)
    return body


def limits_filter() -> Program:
    """Limits may be read of any process, and set for oneself: by 0, or by the number of the process that has installed the filter,
    which is what a script has as `$$`. Not by any other: threads of the keeper have numbers, too, and a limit of one is a limit of all."""
    body = Program()
    body.argument(0)
    for own in (0, OWN):
        body.end_if(EQUAL, own, ALLOW)
    body.argument(2)
    body.add(EQUAL, 0, 1, 0)
    body.add(RETURN, refuse(EPERM))
    body.upper_half(2)
    body.end_if(EQUAL, 0, ALLOW)
    body.add(RETURN, refuse(EPERM))
    return body


class _Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


_packed = build(os.uname().machine)
_OWN = struct.pack("=I", OWN)


def is_known() -> bool:
    return bool(_packed)


def install() -> None:
    """Installs the filter for good, for this process and all that it starts."""
    assert libc is not None
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    if _packed:
        installed = _Filter(len(_packed) // 8, _packed.replace(_OWN, struct.pack("=I", os.getpid())))
        check(libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(installed), 0, 0), "seccomp")
