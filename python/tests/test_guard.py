"""A session that uses too much is told so, and its largest process is ended for want of memory."""

import os
import signal
import tempfile
import time
import unittest
from unittest import mock

from folders import HOLD, MIB, WAIT, Folders
from harness import PATIENCE

from cuvette_driver import guard, processes
from cuvette_driver.guard import Guard
from cuvette_driver.keeper import Keeper

NO_LIMITS = {"memory": 0, "processes": 0, "cpus": 0, "openFiles": 0, "disk": 0, "fileCount": 0}


class NoGroup:
    """A machine that counts nothing for us."""

    def count(self, kind):
        return None

    def is_larger_than(self, count):
        return False


class Counted:
    """A control group that says what it is told to."""

    def __init__(self, **counts):
        self.counts = counts
        self.size = 0
        self.ranks = []

    def count(self, kind):
        return self.counts.get(kind)

    def is_larger_than(self, count):
        return self.size > count

    def go_last(self, is_last):
        self.ranks.append(is_last)


def guarded(group=None, **limits):
    made = Guard(group or NoGroup(), {**NO_LIMITS, **limits})
    made.begin()
    return made


class WithoutGroups(Folders):
    def test_largest_process_is_ended_when_memory_is_used_up(self):
        small, large = self.start(HOLD % 30), self.start(HOLD % 90)
        watching = guarded(memory=100 * MIB + guard.taken_in("/dev/shm"))
        self.assertIsNone(watching.check())
        self.assertEqual(large.wait(PATIENCE), -signal.SIGKILL)
        self.assertIsNone(small.poll())
        self.assertEqual(watching.hits(went_well=False), ["oom"])

    def test_nothing_is_ended_within_the_limit(self):
        process = self.start(HOLD % 30)
        watching = guarded(memory=400 * MIB + guard.taken_in("/dev/shm"))
        self.assertIsNone(watching.check())
        self.assertIsNone(process.poll())
        self.assertEqual((watching.hits(went_well=False), watching.memory_kills()), ([], 0))

    def test_nothing_is_ended_without_a_limit(self):
        process = self.start(HOLD % 30)
        watching = guarded(memory=0)
        self.assertIsNone(watching.check())
        self.assertIsNone(process.poll())

    def test_memory_that_was_used_up_before_is_not_this_executions_doing(self):
        self.start(HOLD % 90)
        watching = guarded(memory=50 * MIB + guard.taken_in("/dev/shm"))
        watching.check()
        self.assertEqual(watching.hits(went_well=False), ["oom"])
        watching.begin()
        self.assertEqual(watching.hits(went_well=False), [])

    def test_descendants_count_together(self):
        """Also those whose parents are others."""
        code = (
            "import subprocess, sys, time\n"
            "children = [subprocess.Popen([sys.executable, '-c', %r], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(3)]\n"
            "for child in children: child.stdout.readline()\nprint('ready', flush=True)\n"
            "while all(child.poll() is None for child in children): time.sleep(0.01)\n"
            "left = sum(child.poll() is None for child in children)\n"
            "for child in children: child.kill(); child.wait()\nprint(left, flush=True)"
        )
        parent = self.start(code % (HOLD % 40))
        watching = guarded(memory=100 * MIB + guard.taken_in("/dev/shm"))
        watching.check()
        self.assertEqual(self.line_of(parent), b"2\n")
        self.assertEqual(watching.memory_kills(), 1)

    def test_what_is_left_in_shared_memory_counts(self):
        if not os.path.isdir("/dev/shm") or not os.access("/dev/shm", os.W_OK):
            self.skipTest("there is no /dev/shm")
        process = self.start(HOLD % 1)
        with tempfile.NamedTemporaryFile(dir="/dev/shm", prefix="cuvette-test-") as file:
            before = guard.taken_in("/dev/shm")
            watching = guarded(memory=60 * MIB + before)
            watching.check()
            self.assertEqual(watching.memory_kills(), 0)
            file.write(bytes(90 * MIB))
            file.flush()
            watching.check()
            self.assertEqual(watching.memory_kills(), 1)
        self.assertEqual(process.wait(PATIENCE), -signal.SIGKILL)

    def test_looks_more_often_where_memory_is_its_own_to_watch(self):
        self.assertLess(guarded().interval, guarded(Counted(memory=0)).interval)

    def test_crowd_is_told(self):
        children = [self.start(WAIT) for _ in range(4)]
        watching = guarded(processes=4)
        watching.check()
        self.assertEqual(watching.hits(went_well=False), ["too-many-processes"])
        self.assertTrue(all(child.poll() is None for child in children))
        watching.begin()
        self.assertEqual(watching.hits(went_well=False), [])

    def test_crowd_that_stays_is_a_bomb(self):
        for _ in range(4):
            self.start(WAIT)
        watching = guarded(processes=4)
        self.assertIsNone(watching.check())
        with mock.patch.object(guard.time, "monotonic", lambda now=time.monotonic: now() + 10):
            self.assertEqual(watching.check(), "too-many-processes")

    def test_memory_of_a_process_that_has_gone(self):
        process = self.start("print(flush=True)")
        process.wait(PATIENCE)
        self.assertEqual(guard.memory_of(process.pid), 0)


class WithGroups(Folders):
    """Where the kernel counts, the guard only reads; it must not end anything itself."""

    def test_memory_is_left_to_the_kernel(self):
        process = self.start(HOLD % 60)
        group = Counted(memory=3, pids=0)
        watching = guarded(group, memory=MIB, processes=1)
        watching.check()
        self.assertIsNone(process.poll())
        self.assertEqual(watching.hits(went_well=False), [])
        group.counts["memory"] = 4
        self.assertEqual((watching.hits(went_well=False), watching.memory_kills()), (["oom"], 4))

    def test_refused_processes(self):
        group = Counted(memory=0, pids=7)
        watching = guarded(group, processes=5)
        group.counts["pids"] = 8
        self.assertIsNone(watching.check())
        self.assertEqual(watching.hits(went_well=False), ["too-many-processes"])
        group.counts["pids"] = 8 + guard.MOST_REFUSALS
        self.assertEqual(watching.check(), "too-many-processes")
        watching.begin()
        self.assertEqual((watching.check(), watching.hits(went_well=False)), (None, []))

    def test_crowd_goes_last_as_long_as_it_is_one(self):
        group = Counted(memory=0, pids=0)
        watching = guarded(group, processes=256)
        for group.size in (1, guard.CROWD, guard.CROWD + 1, 256, 256, guard.CROWD, 1):
            self.assertIsNone(watching.check())
        self.assertEqual(group.ranks, [True, False])

    def test_crowd_that_is_killed_goes_last_no_more_until_it_is_gone(self):
        group = Counted(memory=0, pids=0)
        watching = guarded(group, processes=256)
        group.size = 256
        self.assertIsNone(watching.check())
        group.counts["pids"] = guard.MOST_REFUSALS
        self.assertEqual(watching.check(), "too-many-processes")
        watching.begin()  # The next call begins while the last of them are still ending.
        for group.size in (256, guard.CROWD + 1, guard.CROWD):
            self.assertIsNone(watching.check())
        self.assertEqual(group.ranks, [True, False])
        group.size = 256
        self.assertIsNone(watching.check())
        self.assertEqual(group.ranks, [True, False, True])

    def test_disk_is_watched_all_the_same(self):
        watching = Guard(Counted(memory=0, pids=0), {**NO_LIMITS, "disk": 10 * MIB})
        watching.watch([self.fd])
        watching.begin()
        self.assertIsNone(watching.check())
        self.write("a", 12 * MIB)
        self.assert_soon(lambda: watching.check() == "disk-quota", "that it is over")
        self.assertEqual(watching.hits(went_well=False), ["disk-quota"])

    def test_several_limits_at_once(self):
        group = Counted(memory=0, pids=0)
        watching = Guard(group, {**NO_LIMITS, "fileCount": 1})
        watching.watch([self.fd])
        watching.begin()
        self.write("a")
        self.write("b")
        group.counts.update(memory=1, pids=1)
        self.assertEqual(watching.hits(went_well=False), ["oom", "too-many-processes", "disk-quota"])

    def test_before_a_session_has_folders(self):
        watching = guarded(Counted(memory=0, pids=0), disk=1)
        self.assertEqual((watching.check(), watching.hits(went_well=False)), (None, []))


class BetweenCalls(unittest.TestCase):
    """A keeper that finds its session over a limit while nothing is asked of it."""

    def setUp(self):
        self.keeper = mock.Mock(spec=Keeper, running=None, next_check=0.0, has_finished=False, last_id="1")
        self.keeper.confinement = mock.Mock()
        self.keeper.confinement.guard.check.return_value = "too-many-processes"
        self.keeper.confinement.guard.interval = 0.05
        self.keeper.worker = mock.Mock(pid=1)

    def ends_the_session(self):
        with mock.patch.object(processes, "kill_below") as kill:
            Keeper.check_use(self.keeper)
        return kill.called

    def test_what_goes_on_is_ended(self):
        self.keeper.confinement.guard.is_at_work.return_value = True
        self.assertTrue(self.ends_the_session())

    def test_nothing_is_ended_where_nothing_goes_on(self):
        self.keeper.confinement.guard.is_at_work.return_value = False
        self.assertFalse(self.ends_the_session())

    def test_what_the_call_before_has_used_is_not_held_against_the_session(self):
        self.keeper.confinement.guard.is_at_work.return_value = True
        self.keeper.has_finished = True
        self.assertFalse(self.ends_the_session())

    def test_what_the_session_had_used_before_is_not_held_against_a_new_interpreter(self):
        self.keeper.confinement.guard.is_at_work.return_value = True
        self.keeper.last_id = None
        self.assertFalse(self.ends_the_session())


if __name__ == "__main__":
    unittest.main()
