"""Tests control groups of sessions: the files of both versions in a folder that stands for the kernel's, and real groups where this machine has some."""

import errno
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import types
import unittest
from unittest import mock

from harness import DRIVER, PATIENCE, start_time

sys.path.insert(0, os.path.dirname(DRIVER))
from cuvette_driver import cgroup
from cuvette_driver.cgroup import ControlGroup
from cuvette_driver.confinement import Confiner
from cuvette_driver.zygote import Zygote

MIB = 1 << 20
LIMITS = {"memory": 64 * MIB, "processes": 8, "cpus": 2, "openFiles": 100, "disk": 0, "fileCount": 0}
FILES = {
    1: {
        "memory": ("tasks", "cgroup.procs", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.oom_control"),
        "pids": ("tasks", "cgroup.procs", "pids.max", "pids.events", "pids.current"),
        "cpu": ("tasks", "cgroup.procs", "cpu.cfs_quota_us", "cpu.shares"),
    },
    2: {
        "": (
            "cgroup.procs",
            "cgroup.subtree_control",
            "memory.max",
            "memory.swap.max",
            "memory.events",
            "pids.max",
            "pids.events",
            "pids.current",
            "cpu.max",
            "cpu.weight",
        ),
    },
}


class FakeHierarchies(unittest.TestCase):
    """Plain folders stand for control groups: whoever makes one finds the kernel's files in it, as in a real one."""

    version = 1

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="cuvette-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        patch = mock.patch.object(cgroup, "os", types.SimpleNamespace(**{**vars(os), "mkdir": self.mkdir, "rmdir": self.rmdir}))
        patch.start()
        self.addCleanup(patch.stop)
        self.kinds = ("memory", "pids", "cpu")
        self.absent = set()
        for folder in {self.base(kind) for kind in self.kinds}:
            os.makedirs(folder, exist_ok=True)

    def base(self, kind):
        return os.path.join(self.folder, "all" if self.version == 2 else kind)

    def mkdir(self, path):
        os.mkdir(path)
        kind = "" if self.version == 2 else os.path.relpath(path, self.folder).split(os.sep)[0]
        for name in FILES[self.version][kind]:
            if name not in self.absent:
                with open(os.path.join(path, name), "w"):
                    pass

    def rmdir(self, path):
        """As in the kernel: its own files do not count, processes and groups below do."""
        if self.read(os.path.join(path, "cgroup.procs")).strip():
            raise OSError(errno.EBUSY, "somebody is in it")
        with os.scandir(path) as entries:
            if any(entry.is_dir() for entry in entries):
                raise OSError(errno.EBUSY, "a group is in it")
        shutil.rmtree(path)

    def read(self, path):
        try:
            with open(path) as file:
                return file.read()
        except OSError:
            return ""

    def policy(self, *kinds, **limits):
        folders = {kind: self.base(kind) for kind in kinds or self.kinds}
        return {"cgroup": {"version": self.version, "folders": folders}, "limits": {**LIMITS, **limits}}

    def group(self, policy=None, name="one"):
        group = ControlGroup(policy or self.policy(), name)
        group.make()
        for fd in (*group.counters.values(), *group.task_files, group.weight, group.size):
            if fd >= 0:
                self.addCleanup(os.close, fd)
        return group

    def written(self, kind, name, session="one"):
        return self.read(os.path.join(self.base(kind), session, name))


class Version1(FakeHierarchies):
    def test_version_1_limits_are_written_to_each_hierarchy(self):
        self.group()
        self.assertEqual(self.written("memory", "memory.limit_in_bytes"), str(64 * MIB))
        self.assertEqual(self.written("memory", "memory.memsw.limit_in_bytes"), str(64 * MIB))
        self.assertEqual(self.written("pids", "pids.max"), "8")
        self.assertEqual(self.written("cpu", "cpu.cfs_quota_us"), "200000")

    def test_limit_of_zero_writes_no_limit(self):
        self.group(self.policy(memory=0, processes=0, cpus=0))
        for kind, name in (("memory", "memory.limit_in_bytes"), ("pids", "pids.max"), ("cpu", "cpu.cfs_quota_us")):
            self.assertEqual(self.written(kind, name), "")

    def test_kernel_that_does_not_count_swap_still_gets_the_memory_limit(self):
        self.absent = {"memory.memsw.limit_in_bytes"}
        self.group()
        self.assertEqual(self.written("memory", "memory.limit_in_bytes"), str(64 * MIB))

    def test_limit_that_cannot_be_set_raises(self):
        self.absent = {"pids.max"}
        with self.assertRaises(OSError):
            ControlGroup(self.policy(), "one").make()

    def test_code_joins_the_group_in_each_hierarchy(self):
        self.group().join()
        for kind in self.kinds:
            self.assertEqual(self.written(kind, "tasks"), "0")

    def test_keeper_stays_outside_of_the_group_until_code_joins(self):
        self.group()
        for kind in self.kinds:
            self.assertEqual((self.written(kind, "tasks"), self.written(kind, "cgroup.procs")), ("", ""))

    def test_group_gets_the_least_weight_and_the_default_one_again(self):
        group = self.group()
        for is_last, weight in ((True, "2"), (False, "1024")):
            group.use_least_weight(is_last)
            self.assertTrue(self.written("cpu", "cpu.shares").startswith(weight))

    def test_group_is_compared_by_its_number_of_processes(self):
        group = self.group()
        with open(os.path.join(self.base("pids"), "one", "pids.current"), "w") as file:
            file.write("33\n")
        self.assertEqual([group.is_larger_than(count) for count in (32, 33)], [True, False])

    def test_hierarchies_that_are_absent_limit_nothing(self):
        group = self.group(self.policy("pids"))
        group.join()
        self.assertFalse(group.is_larger_than(0))
        self.assertEqual(os.listdir(self.base("memory")), [])
        self.assertEqual((group.count("memory"), group.count("pids")), (None, 0))

    def test_group_without_any_hierarchy_limits_and_counts_nothing(self):
        group = ControlGroup({"cgroup": None, "limits": LIMITS}, "one")
        group.make()
        group.join()
        self.assertEqual((group.count("memory"), group.count("pids")), (None, None))


class Version2(FakeHierarchies):
    version = 2

    def test_version_2_limits_are_written_to_one_folder(self):
        self.group()
        self.assertEqual(self.written("memory", "memory.max"), str(64 * MIB))
        self.assertEqual(self.written("memory", "memory.swap.max"), "0")
        self.assertEqual(self.written("pids", "pids.max"), "8")
        self.assertEqual(self.written("cpu", "cpu.max"), "200000 100000")

    def test_all_controllers_share_one_folder(self):
        self.group()
        self.assertEqual(os.listdir(self.base("memory")), ["one"])

    def test_version_2_group_is_joined_when_it_is_made(self):
        group = self.group()
        self.assertEqual(self.written("memory", "cgroup.procs"), "0")
        group.join()
        self.assertEqual(self.written("memory", "cgroup.procs"), "0")

    def test_zygote_delegates_its_controllers_to_the_groups_of_sessions(self):
        policy = self.policy("memory", "pids")
        with mock.patch.object(cgroup.processes, "write") as write:
            cgroup.open_folders(policy)
        (folder,) = set(policy["cgroup"]["folders"].values())
        control = os.path.join(folder, "cgroup.subtree_control")
        # One word at a time, so that one that is refused does not keep the others out.
        self.assertEqual(write.mock_calls, [mock.call(control, "+memory"), mock.call(control, "+pids")])


class Counters(FakeHierarchies):
    def write(self, kind, name, text):
        with open(os.path.join(self.base(kind), "one", name), "w") as file:
            file.write(text)

    def test_hits_of_limits_are_counted(self):
        group = self.group()
        self.assertEqual((group.count("memory"), group.count("pids"), group.count("cpu")), (0, 0, None))
        self.write("memory", "memory.oom_control", "oom_kill_disable 0\nunder_oom 1\noom_kill 3\n")
        self.write("pids", "pids.events", "max 12\n")
        self.assertEqual((group.count("memory"), group.count("pids")), (3, 12))

    def test_counter_file_without_the_expected_line_counts_zero(self):
        group = self.group()
        self.write("memory", "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n")
        self.assertEqual(group.count("memory"), 0)

    def test_counters_are_read_after_the_folder_is_hidden(self):
        group = self.group()
        self.write("pids", "pids.events", "max 12\n")
        os.rename(self.base("pids"), self.base("pids") + "-hidden")
        self.assertEqual(group.count("pids"), 12)


class CountersOfVersion2(Counters):
    version = 2

    def test_hits_of_limits_are_counted(self):
        group = self.group()
        self.write("memory", "memory.events", "low 0\nhigh 5\nmax 77\noom 9\noom_kill 2\noom_group_kill 8\n")
        self.write("pids", "pids.events", "max 4\n")
        self.assertEqual((group.count("memory"), group.count("pids")), (2, 4))

    def test_counter_file_without_the_expected_line_counts_zero(self):
        self.assertEqual(self.group().count("memory"), 0)


class FoldersOfAZygote(FakeHierarchies):
    def test_folders_of_a_zygote_are_named_by_its_process(self):
        policy = self.policy()
        cgroup.open_folders(policy)
        name = "z%d-%s" % (os.getpid(), start_time(os.getpid()))
        self.assertEqual(policy["cgroup"]["folders"], {kind: os.path.join(self.base(kind), name) for kind in self.kinds})
        for kind in self.kinds:
            self.assertEqual(os.listdir(self.base(kind)), [name])

    def test_folders_of_a_zygote_are_removed_when_it_ends(self):
        policy = self.policy()
        cgroup.open_folders(policy)
        cgroup.close_folders(policy)
        self.assertEqual([os.listdir(self.base(kind)) for kind in self.kinds], [[], [], []])
        cgroup.close_folders(policy)

    def test_folders_of_a_zygote_stay_while_sessions_are_in_them(self):
        policy = self.policy()
        cgroup.open_folders(policy)
        self.group(policy)
        cgroup.close_folders(policy)
        for folder in policy["cgroup"]["folders"].values():
            self.assertTrue(os.path.isdir(os.path.join(folder, "one")))

    def test_zygote_without_control_groups_makes_no_folders(self):
        policy = {"cgroup": None, "limits": LIMITS}
        cgroup.open_folders(policy)
        cgroup.close_folders(policy)
        self.assertTrue(cgroup.remove(policy, "one"))


class RemovalOfGroups(FakeHierarchies):
    def occupy(self, kind, text):
        with open(os.path.join(self.base(kind), "one", "cgroup.procs"), "w") as file:
            file.write(text)

    def test_group_of_an_ended_session_is_removed(self):
        policy = self.policy()
        self.group(policy)
        self.group(policy, "two")
        self.assertTrue(cgroup.remove(policy, "one"))
        for kind in self.kinds:
            self.assertEqual(os.listdir(self.base(kind)), ["two"])

    def test_group_is_not_removed_while_any_hierarchy_has_a_process_in_it(self):
        policy = self.policy()
        self.group(policy)
        self.occupy("pids", "123\n")
        self.assertFalse(cgroup.remove(policy, "one"))
        self.assertEqual(os.listdir(self.base("pids")), ["one"])
        self.occupy("pids", "")
        self.assertTrue(cgroup.remove(policy, "one"))
        self.assertEqual(os.listdir(self.base("pids")), [])

    def test_removal_of_a_group_that_is_gone_succeeds(self):
        self.assertTrue(cgroup.remove(self.policy(), "never-there"))


class EndOfZygote(FakeHierarchies):
    def setUp(self):
        super().setUp()
        self.policy_of_zygote = self.policy()
        cgroup.open_folders(self.policy_of_zygote)
        confiner = Confiner.__new__(Confiner)  # Its constructor would confine the process of the tests.
        confiner.policy = self.policy_of_zygote
        listener, forks = self.sockets()
        self.zygote = Zygote("unused", listener, forks, 0.0, confiner)

    def sockets(self):
        pair = socket.socketpair()
        for one in pair:
            self.addCleanup(one.close)
        return pair

    def end(self):
        self.zygote.end()
        self.zygote.isolation.close()

    def test_group_of_a_keeper_that_ended_before_it_said_its_name_is_removed(self):
        self.group(self.policy_of_zygote, "nameless")
        self.end()
        self.assertEqual([os.listdir(self.base(kind)) for kind in self.kinds], [[], [], []])

    def test_end_waits_for_a_keeper_that_is_being_made(self):
        self.zygote.pending, keeper = self.sockets()

        def make():
            keeper.recv(1)
            self.group(self.policy_of_zygote, "late")
            keeper.close()

        thread = threading.Thread(target=make)
        thread.start()
        self.end()
        thread.join()
        self.assertEqual([os.listdir(self.base(kind)) for kind in self.kinds], [[], [], []])

    def test_groups_of_sessions_that_live_on_stay(self):
        session, _ = self.sockets()
        self.zygote.keepers.add(session)
        self.zygote.names[session] = "one"
        self.group(self.policy_of_zygote, "one")
        self.group(self.policy_of_zygote, "two")
        self.end()
        self.assertEqual(cgroup.names(self.policy_of_zygote), {"one"})


def own_groups():
    """Where this process may make groups, by kind, if it is root and this machine is of version 1."""
    found = {}
    try:
        with open("/proc/self/cgroup") as file:
            own = {kind: path for _, kinds, path in (line.strip().split(":", 2) for line in file) for kind in kinds.split(",")}
        with open("/proc/self/mountinfo") as file:
            for line in file:
                before, _, after = line.partition(" - ")
                root, point = before.split()[3:5]
                kind, _, options = after.split()[:3]
                for name in ("memory", "pids"):
                    if kind == "cgroup" and name in options.split(",") and name in own:
                        found[name] = os.path.join(point, os.path.relpath(own[name], root))
    except (OSError, ValueError):
        return {}
    return found if len(found) == 2 and all(os.access(path, os.W_OK) for path in found.values()) else {}


@unittest.skipUnless(own_groups(), "this machine does not let us make control groups of version 1")
class RealControlGroups(unittest.TestCase):
    """The kernel's own, of version 1."""

    def setUp(self):
        self.policy = {"cgroup": {"version": 1, "folders": {}}, "limits": {**LIMITS, "cpus": 0}}
        for kind, base in own_groups().items():
            folder = os.path.join(base, "cuvette-test-%d" % os.getpid())
            os.mkdir(folder)
            self.addCleanup(os.rmdir, folder)
            self.policy["cgroup"]["folders"][kind] = folder
        self.group = ControlGroup(self.policy, "one")
        self.group.make()
        for fd in (*self.group.counters.values(), *self.group.task_files):
            self.addCleanup(os.close, fd)
        self.addCleanup(self.remove)

    def remove(self):
        deadline = time.monotonic() + PATIENCE
        while not cgroup.remove(self.policy, "one"):
            self.assertLess(time.monotonic(), deadline, "the group is still in use")
            time.sleep(0.01)

    def run_inside(self, function):
        """Runs in a process that has joined; gives its status."""
        pid = os.fork()
        if pid == 0:
            try:
                self.group.join()
                os._exit(function() or 0)
            finally:
                os._exit(99)
        return os.waitpid(pid, 0)[1]

    def test_process_that_takes_too_much_memory_is_killed_and_counted(self):
        self.assertEqual(self.group.count("memory"), 0)
        status = self.run_inside(lambda: len(bytearray(b"x") * (100 * MIB)) and 5)
        self.assertEqual(os.WTERMSIG(status), signal.SIGKILL)
        self.assertEqual(self.group.count("memory"), 1)
        self.assertEqual(self.run_inside(lambda: len(bytearray(b"x") * MIB) and 5) >> 8, 5)

    def test_process_beyond_the_limit_is_refused_and_counted(self):
        def fork_on():
            children = []
            try:
                for _ in range(20):
                    pid = os.fork()
                    if pid == 0:
                        signal.pause()
                    children.append(pid)
            except OSError as error:
                return len(children) if error.errno == errno.EAGAIN else 98
            finally:
                for pid in children:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)

        self.assertEqual(self.run_inside(fork_on) >> 8, 7)
        self.assertEqual(self.group.count("pids"), 1)

    def test_real_group_is_not_removed_while_a_process_is_in_it(self):
        pid = os.fork()
        if pid == 0:
            self.group.join()
            signal.pause()
        try:
            tasks = os.path.join(self.policy["cgroup"]["folders"]["pids"], "one", "tasks")
            deadline = time.monotonic() + PATIENCE
            while not self.read(tasks):
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.01)
            self.assertFalse(cgroup.remove(self.policy, "one"))
            self.assertEqual(self.read(tasks).split(), [str(pid)])
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def read(self, path):
        with open(path) as file:
            return file.read()


if __name__ == "__main__":
    unittest.main()
