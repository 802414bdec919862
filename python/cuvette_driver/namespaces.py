"""Makes the system calls for namespaces and mounts that the standard library lacks. Each raises OSError where the kernel refuses."""

from __future__ import annotations

import ctypes
import os
import sys

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = (
    0x00020000,
    0x04000000,
    0x08000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 4096, 16384, 1 << 18

libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, "%s: %s" % (what, os.strerror(number)))


def unshare(flags: int) -> None:
    if libc is None:
        raise OSError("there are no namespaces on %s" % sys.platform)
    check(libc.unshare(flags), "unshare")


def unshare_user(inside: int, others: int = 0) -> None:
    """Makes a user namespace that knows this user alone, by the number `inside`, and other namespaces that belong to it."""
    uid, gid = os.geteuid(), os.getegid()
    unshare(CLONE_NEWUSER | others)
    for name, text in (("setgroups", "deny"), ("uid_map", "%d %d 1" % (inside, uid)), ("gid_map", "%d %d 1" % (inside, gid))):
        file = os.open("/proc/self/" + name, os.O_WRONLY)
        os.write(file, text.encode())
        os.close(file)


def make_mounts_private() -> None:
    mount("none", "/", None, MS_REC | MS_PRIVATE)


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    texts = [None if text is None else text.encode() for text in (source, target, kind, options)]
    assert libc is not None
    check(libc.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3]), "mount %s" % target)


def bind(source: str, target: str) -> None:
    mount(source, target, None, MS_BIND)
