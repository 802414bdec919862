"""Mounts a session's workspace at /mnt/data for one process, by a mount namespace of its own. It confines nothing else.

Run as a program, it fails where this machine cannot do that, with the reason.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from cuvette_driver.namespaces import CLONE_NEWNS, MS_NODEV, MS_NOSUID, bind, make_mounts_private, mount, unshare, unshare_user

ROOT = "/mnt"
WORKSPACE = ROOT + "/data"
PROGRAM = ROOT + "/program"


def enter(workspace: str, program: str | None = None) -> None:
    """Mounts the workspace, and a program's own folder beside it; raises OSError where the kernel does not let us."""
    folders = [(WORKSPACE, workspace)] + ([(PROGRAM, program)] if program else [])
    unshare_mounts()
    make_mounts_private()
    # Opened before the mount over /mnt hides them, and in the new namespace, because a descriptor of another one cannot be bound.
    sources = [(place, os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)) for place, folder in folders]
    mount("tmpfs", ROOT, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=64k")
    for place, source in sources:
        os.mkdir(place)
        bind("/proc/self/fd/%d" % source, place)
        os.close(source)
    os.chdir(WORKSPACE)


def unshare_mounts() -> None:
    uid = os.geteuid()
    if uid == 0:
        try:
            unshare(CLONE_NEWNS)
            return
        except OSError:
            pass  # Root in a container may lack the capability, and needs a user namespace as other users do.
    unshare_user(uid, CLONE_NEWNS)


if __name__ == "__main__":
    try:
        enter("/tmp")
    except (OSError, AttributeError) as error:
        sys.exit(str(error))
