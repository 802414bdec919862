"""Tests that a session which uses too much is found out, and that its largest process is killed when memory runs out."""

import os
import signal
import tempfile
import time
import unittest
from unittest import mock

from harness import PATIENCE
from usage_helpers import HOLD, MIB, WAIT, Folders

from cuvette_driver import limit_enforcer, linux, processes, usage_monitor
from cuvette_driver.event_buffer import EventBuffer
from cuvette_driver.execution_slot import ExecutionSlot
from cuvette_driver.limit_enforcer import LimitEnforcer
from cuvette_driver.usage_monitor import UsageMonitor

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

    def use_least_weight(self, is_last):
        self.ranks.append(is_last)


def monitored(group=None, **limits):
    made = UsageMonitor(group or NoGroup(), {**NO_LIMITS, **limits})
    made.begin()
    return made


class WithoutGroups(Folders):
    def test_largest_process_is_killed_when_the_memory_limit_is_exceeded(self):
        small, large = self.start(HOLD % 30), self.start(HOLD % 90)
        monitor = monitored(memory=100 * MIB + usage_monitor.bytes_used_in("/dev/shm"))
        self.assertIsNone(monitor.check())
        self.assertEqual(large.wait(PATIENCE), -signal.SIGKILL)
        self.assertIsNone(small.poll())
        self.assertEqual(monitor.hits(went_well=False), ["oom"])

    def test_no_process_is_killed_within_the_memory_limit(self):
        process = self.start(HOLD % 30)
        monitor = monitored(memory=400 * MIB + usage_monitor.bytes_used_in("/dev/shm"))
        self.assertIsNone(monitor.check())
        self.assertIsNone(process.poll())
        self.assertEqual((monitor.hits(went_well=False), monitor.memory_kills()), ([], 0))

    def test_no_process_is_killed_without_a_memory_limit(self):
        process = self.start(HOLD % 30)
        monitor = monitored(memory=0)
        self.assertIsNone(monitor.check())
        self.assertIsNone(process.poll())

    def test_memory_kill_before_the_execution_is_not_reported_for_it(self):
        self.start(HOLD % 90)
        monitor = monitored(memory=50 * MIB + usage_monitor.bytes_used_in("/dev/shm"))
        monitor.check()
        self.assertEqual(monitor.hits(went_well=False), ["oom"])
        monitor.begin()
        self.assertEqual(monitor.hits(went_well=False), [])

    def test_memory_of_all_descendants_counts_together(self):
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
        monitor = monitored(memory=100 * MIB + usage_monitor.bytes_used_in("/dev/shm"))
        monitor.check()
        self.assertEqual(self.line_of(parent), b"2\n")
        self.assertEqual(monitor.memory_kills(), 1)

    def test_files_in_shared_memory_count_as_memory(self):
        if not os.path.isdir("/dev/shm") or not os.access("/dev/shm", os.W_OK):
            self.skipTest("there is no /dev/shm")
        process = self.start(HOLD % 1)
        with tempfile.NamedTemporaryFile(dir="/dev/shm", prefix="cuvette-test-") as file:
            before = usage_monitor.bytes_used_in("/dev/shm")
            monitor = monitored(memory=60 * MIB + before)
            monitor.check()
            self.assertEqual(monitor.memory_kills(), 0)
            file.write(bytes(90 * MIB))
            file.flush()
            monitor.check()
            self.assertEqual(monitor.memory_kills(), 1)
        self.assertEqual(process.wait(PATIENCE), -signal.SIGKILL)

    def test_usage_is_checked_more_often_where_no_control_group_limits_memory(self):
        self.assertLess(monitored().interval, monitored(Counted(memory=0)).interval)

    def test_process_limit_that_was_reached_is_reported(self):
        children = [self.start(WAIT) for _ in range(4)]
        monitor = monitored(processes=4)
        monitor.check()
        self.assertEqual(monitor.hits(went_well=False), ["too-many-processes"])
        self.assertTrue(all(child.poll() is None for child in children))
        monitor.begin()
        self.assertEqual(monitor.hits(went_well=False), [])

    def test_session_that_stays_at_its_process_limit_is_ended_as_a_fork_bomb(self):
        for _ in range(4):
            self.start(WAIT)
        monitor = monitored(processes=4)
        self.assertIsNone(monitor.check())
        with mock.patch.object(usage_monitor.time, "monotonic", lambda now=time.monotonic: now() + 10):
            self.assertEqual(monitor.check(), "too-many-processes")

    def test_memory_of_a_process_that_is_gone_is_zero(self):
        process = self.start("print(flush=True)")
        process.wait(PATIENCE)
        self.assertEqual(usage_monitor.memory_of(process.pid), 0)


class WithGroups(Folders):
    """Where the kernel counts, the monitor only reads; it must not end anything itself."""

    def test_memory_kills_are_left_to_the_control_group(self):
        process = self.start(HOLD % 60)
        group = Counted(memory=3, pids=0)
        monitor = monitored(group, memory=MIB, processes=1)
        monitor.check()
        self.assertIsNone(process.poll())
        self.assertEqual(monitor.hits(went_well=False), [])
        group.counts["memory"] = 4
        self.assertEqual((monitor.hits(went_well=False), monitor.memory_kills()), (["oom"], 4))

    def test_session_that_is_refused_many_processes_is_ended_as_a_fork_bomb(self):
        group = Counted(memory=0, pids=7)
        monitor = monitored(group, processes=5)
        group.counts["pids"] = 8
        self.assertIsNone(monitor.check())
        self.assertEqual(monitor.hits(went_well=False), ["too-many-processes"])
        group.counts["pids"] = 8 + usage_monitor.MOST_REFUSALS
        self.assertEqual(monitor.check(), "too-many-processes")
        monitor.begin()
        self.assertEqual((monitor.check(), monitor.hits(went_well=False)), (None, []))

    def test_session_with_many_processes_has_the_least_weight_as_long_as_it_has_them(self):
        group = Counted(memory=0, pids=0)
        monitor = monitored(group, processes=256)
        for group.size in (1, usage_monitor.MANY_PROCESSES, usage_monitor.MANY_PROCESSES + 1, 256, 256, usage_monitor.MANY_PROCESSES, 1):
            self.assertIsNone(monitor.check())
        self.assertEqual(group.ranks, [True, False])

    def test_killed_fork_bomb_loses_the_least_weight_until_its_last_process_is_gone(self):
        group = Counted(memory=0, pids=0)
        monitor = monitored(group, processes=256)
        group.size = 256
        self.assertIsNone(monitor.check())
        group.counts["pids"] = usage_monitor.MOST_REFUSALS
        self.assertEqual(monitor.check(), "too-many-processes")
        monitor.begin()  # The next call begins while the last of them are still ending.
        for group.size in (256, usage_monitor.MANY_PROCESSES + 1, usage_monitor.MANY_PROCESSES):
            self.assertIsNone(monitor.check())
        self.assertEqual(group.ranks, [True, False])
        group.size = 256
        self.assertIsNone(monitor.check())
        self.assertEqual(group.ranks, [True, False, True])

    def test_disk_quota_is_checked_beside_control_groups(self):
        monitor = UsageMonitor(Counted(memory=0, pids=0), {**NO_LIMITS, "disk": 10 * MIB})
        monitor.watch_folders([self.fd])
        monitor.begin()
        self.assertIsNone(monitor.check())
        self.write("a", 12 * MIB)
        self.assert_soon(lambda: monitor.check() == "disk-quota", "that it is over")
        self.assertEqual(monitor.hits(went_well=False), ["disk-quota"])

    def test_several_limits_that_were_hit_are_all_reported(self):
        group = Counted(memory=0, pids=0)
        monitor = UsageMonitor(group, {**NO_LIMITS, "fileCount": 1})
        monitor.watch_folders([self.fd])
        monitor.begin()
        self.write("a")
        self.write("b")
        group.counts.update(memory=1, pids=1)
        self.assertEqual(monitor.hits(went_well=False), ["oom", "too-many-processes", "disk-quota"])

    def test_session_without_folders_yet_is_over_no_limit(self):
        monitor = monitored(Counted(memory=0, pids=0), disk=1)
        self.assertEqual((monitor.check(), monitor.hits(went_well=False)), (None, []))


class BetweenCalls(unittest.TestCase):
    """A keeper that finds its session over a limit while nothing is asked of it."""

    def setUp(self):
        self.monitor = mock.Mock(interval=0.05)
        self.monitor.memory_kills.return_value = 0
        self.monitor.check.return_value = "too-many-processes"
        self.monitor.has_run_since.return_value = True
        self.monitor.hits.return_value = []
        self.executions = ExecutionSlot(EventBuffer(), LimitEnforcer(self.monitor))
        with mock.patch.object(linux, "use_short_time_slices"):
            self.run_execution()
        self.executions.take_finished()

    def run_execution(self):
        with mock.patch.object(processes, "kill_descendants", return_value=[]):
            self.executions.start({"id": "1", "limit": 100}, 1)
            self.executions.finish({"status": "ok"}, 1, ())

    def ends_the_session(self):
        later = mock.patch.object(limit_enforcer.time, "monotonic", lambda now=time.monotonic: now() + 1)
        with later, mock.patch.object(processes, "kill_descendants") as kill:
            self.executions.check_limits()
        return kill.called

    def test_processes_that_go_on_over_a_limit_between_calls_are_killed(self):
        self.assertTrue(self.ends_the_session())

    def test_nothing_is_killed_between_calls_where_no_process_has_run(self):
        self.monitor.has_run_since.return_value = False
        self.assertFalse(self.ends_the_session())

    def test_usage_of_a_call_that_has_just_ended_kills_nothing(self):
        self.run_execution()
        self.assertFalse(self.ends_the_session())

    def test_usage_before_the_first_call_of_an_interpreter_kills_nothing(self):
        self.executions = ExecutionSlot(EventBuffer(), LimitEnforcer(self.monitor))
        self.assertFalse(self.ends_the_session())


if __name__ == "__main__":
    unittest.main()
