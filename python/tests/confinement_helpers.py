"""Helps tests of confinement: says what this machine can do, makes a policy, and runs functions inside of a session."""

import os
import sys

from child_process import become_nobody, in_child
from harness import DRIVER

sys.path.insert(0, os.path.dirname(DRIVER))
from cuvette_driver import confinement, namespaces
from cuvette_driver.confinement import Confinement

MIB = 1 << 20
LIMITS = {"memory": 512 * MIB, "processes": 64, "cpus": 1, "openFiles": 77, "disk": 10 * MIB, "fileCount": 50}
CAPABILITIES = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")


def unshared(others=0):
    """As a zygote has it: no longer root, and in a user namespace of its own."""
    become_nobody()
    confinement.set_dumpable(True)
    namespaces.unshare_user(confinement.CODE_USER, others)


def can_unshare():
    def tried():
        unshared(namespaces.CLONE_NEWNS | namespaces.CLONE_NEWNET)
        namespaces.make_mounts_private()
        return True

    try:
        return sys.platform == "linux" and in_child(tried)
    except AssertionError:
        return False


def can_mount_proc():
    def tried():
        unshared(namespaces.CLONE_NEWNS)
        namespaces.make_mounts_private()
        return Confinement.fork_confined(policy(), None).pid > 1

    try:
        return can_unshare() and in_child(tried)
    except AssertionError:
        return False


def policy(**different):
    return {"network": "none", "proxy": None, "limits": LIMITS, "cgroup": None, "kept": [], "covers": [], **different}


def as_worker(life, function):
    """What the function says in a process of the session that has given up its rights."""

    def unprivileged():
        life.drop_privileges_as_interpreter(open_descriptors())
        return function()

    return in_child(unprivileged)


def open_descriptors():
    return set(map(int, os.listdir("/proc/self/fd")))
