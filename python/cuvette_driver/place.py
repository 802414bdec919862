"""Gives a process its session's workspace at /mnt/data, by a mount namespace of its own. It confines nothing else.

Run as a program, it says whether this machine can do that.
"""

from __future__ import annotations

import ctypes
import os
import sys

ROOT = "/mnt"
WORKSPACE = ROOT + "/data"
PROGRAM = ROOT + "/program"

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 4096, 16384, 1 << 18

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def enter(workspace: str, program: str | None = None) -> None:
    """Mounts the workspace, and a program's own folder beside it; raises OSError where the kernel does not let us."""
    folders = [(WORKSPACE, workspace)] + ([(PROGRAM, program)] if program else [])
    _unshare()
    _mount("none", "/", None, MS_REC | MS_PRIVATE)
    # Opened before what is mounted over /mnt can hide them, and in the new namespace, where alone they can be mounted again.
    sources = [(place, os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)) for place, folder in folders]
    _mount("tmpfs", ROOT, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=64k")
    for place, source in sources:
        os.mkdir(place)
        _mount("/proc/self/fd/%d" % source, place, None, MS_BIND)
        os.close(source)
    os.chdir(WORKSPACE)


def _unshare() -> None:
    uid, gid = os.geteuid(), os.getegid()
    if _libc is None:
        raise OSError("there are no mount namespaces on %s" % sys.platform)
    if uid == 0 and _libc.unshare(CLONE_NEWNS) == 0:
        return
    _check(_libc.unshare(CLONE_NEWNS | CLONE_NEWUSER), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", "%d %d 1" % (uid, uid)), ("gid_map", "%d %d 1" % (gid, gid))):
        file = os.open("/proc/self/" + name, os.O_WRONLY)
        os.write(file, text.encode())
        os.close(file)


def _mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    texts = [None if text is None else text.encode() for text in (source, target, kind, options)]
    assert _libc is not None
    _check(_libc.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3]), "mount %s" % target)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, "%s: %s" % (what, os.strerror(number)))


if __name__ == "__main__":
    try:
        enter("/tmp")
    except (OSError, AttributeError) as error:
        sys.exit(str(error))
