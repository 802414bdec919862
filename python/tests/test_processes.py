"""Tests that processes which code leaves running end with the call and are reported, and that Python's own pools stay."""

import os
import random
import re
import subprocess
import sys
import unittest
from unittest import mock

from harness import DRIVER, SessionTest, commands, is_running

sys.path.insert(0, os.path.dirname(DRIVER))
from cuvette_driver import processes


@unittest.skipUnless(sys.platform == "linux", "only Linux tells")
class EndingProcess(unittest.TestCase):
    def test_process_that_has_ended_and_is_not_reaped_counts_as_exiting_and_a_running_one_does_not(self):
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        self.assertFalse(processes.is_exiting(child.pid))
        child.stdin.close()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        self.assertTrue(processes.is_exiting(child.pid))
        child.wait()
        self.assertFalse(processes.is_exiting(child.pid))


class LeftRunning(SessionTest):
    """NAP stands for a number of seconds of this test's own, to know its processes by."""

    def setUp(self):
        super().setUp()
        self.nap = str(random.randrange(10**6, 10**8))

    def assert_ended(self, code):
        outcome = self.run_ok(code.replace("NAP", self.nap))
        self.assertIn("sleep " + self.nap, "\n".join(outcome.done["ended"]))
        self.assert_soon(lambda: "sleep " + self.nap not in commands(), "the end of every process")
        return outcome

    def test_background_command_of_a_shell_ends_with_the_call(self):
        self.assert_ended("import os\nos.system('sleep NAP &');")

    def test_process_in_a_new_session_ends_with_the_call(self):
        self.assert_ended("import subprocess, time\np = subprocess.Popen(['sleep', 'NAP'], start_new_session=True)\ntime.sleep(0.2)")

    def test_setsid_process_of_a_shell_ends_with_the_call(self):
        self.assert_ended("import os, time\nos.system('setsid sleep NAP >/dev/null 2>&1 &')\ntime.sleep(0.2)")

    def test_daemon_that_ignores_hangups_ends_with_the_call(self):
        code = """
import os, time
pid = os.fork()
if pid == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp('nohup', ['nohup', 'sleep', 'NAP'])
    os._exit(0)
os.waitpid(pid, 0)
time.sleep(0.3)
"""
        self.assertEqual(self.assert_ended(code).done["ended"], ["sleep " + self.nap])

    def test_call_that_leaves_no_process_reports_none(self):
        self.assertEqual(self.run_ok("import os\nos.system('true');").done["ended"], [])

    def test_process_that_keeps_forking_ends_with_the_call(self):
        self.assert_ended("import subprocess, time\np = subprocess.Popen(['sh', '-c', 'while :; do (sleep NAP &) ; done'])\ntime.sleep(0.2)")


class Describing(SessionTest):
    """Needs only the waiting of the harness."""

    def setUp(self):
        pass

    def start(self, *command):
        process = subprocess.Popen(command)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process.pid

    def state(self, pid):
        return re.search(rb"State:\s+(\S)", processes.read("/proc/%d/status" % pid))[1]

    def test_command_line_of_a_process_is_read_only_after_it_is_stopped(self):
        """One that forks without end holds its own memory, and so whoever asks."""
        fork = "import os\nwhile True:\n    pid = os.fork()\n    if not pid: os._exit(0)\n    os.waitpid(pid, 0)"
        loop = self.start(sys.executable, "-c", fork)

        def look(pid):
            if pid == loop:
                self.assert_soon(lambda: self.state(pid) == b"T", "that it stands still")
            return "seen"

        with mock.patch.object(processes, "describe", look):
            self.assertEqual(dict(processes.kill_descendants(os.getpid(), 0))[loop], "seen")

    def test_command_line_of_a_process_that_is_being_started_is_waited_for(self):
        pid = self.start("sleep", "1000")
        real = processes.read
        unfinished = [b"", b""]

        def read_early(path):
            is_early = path.endswith("/%d/cmdline" % pid) and unfinished
            return unfinished.pop() if is_early else real(path)

        with mock.patch.object(processes, "read", read_early):
            self.assertEqual(processes.describe_all([pid]), {pid: "sleep 1000"})

    def test_processes_beyond_the_first_ones_are_described_by_name_only(self):
        crowd = [self.start("sleep", "1000") for _ in range(processes.MOST_DESCRIBED + 2)]
        expected = ["sleep 1000"] * processes.MOST_DESCRIBED + ["sleep"] * 2
        self.assert_soon(lambda: list(processes.describe_all(crowd).values()) == expected, "that all are told")


class Forks(SessionTest):
    def test_forked_child_that_reaches_the_end_of_the_cell_exits(self):
        outcome = self.run_ok("import os\nx = 1\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nprint('child' if pid == 0 else 'parent')")
        self.assertEqual(outcome.stdout, "child\nparent\n")
        self.assertEqual(len(outcome.of("done")), 1)
        self.assertEqual(self.session.value("x"), 1)

    def test_displays_and_errors_of_a_forked_child_are_not_the_cells(self):
        outcome = self.run_ok("import os\npid = os.fork()\nif pid == 0:\n    display('from the child')\n    1 / 0\nos.waitpid(pid, 0);")
        self.assertEqual((outcome.of("display"), outcome.of("error")), ([], []))
        self.assertIn("ZeroDivisionError", outcome.stderr)
        self.assertNotIn("cuvette_driver", outcome.stderr)
        self.assert_works()

    def test_exit_code_of_a_forked_child_reaches_its_parent(self):
        for ending, code in (("raise SystemExit(7)", 7), ("1 / 0", 1), ("pass", 0)):
            self.assertEqual(
                self.session.value(
                    "import os\npid = os.fork()\nif pid == 0:\n    %s\nelse:\n    status = os.waitpid(pid, 0)[1]\nos.WEXITSTATUS(status)" % ending
                ),
                code,
            )

    def test_forked_child_that_stays_ends_with_the_call(self):
        outcome = self.run_ok("import os, time\nif os.fork() == 0: time.sleep(1000)")
        self.assertEqual(len(outcome.done["ended"]), 1)
        self.assertNotIn("cuvette_driver", outcome.done["ended"][0])
        self.assert_works()


class Pools(SessionTest):
    def test_process_pool_survives_between_cells(self):
        self.run_ok(
            "import multiprocessing, time\ndef square(n): return n * n\npool = multiprocessing.get_context('fork').Pool(2)\npids = sorted(p.pid for p in multiprocessing.active_children())"
        )
        outcome = self.run_ok("time.sleep(0.01)")
        self.assertEqual(outcome.done["ended"], [])
        self.assertEqual(self.session.value("pool.map(square, range(5))"), [0, 1, 4, 9, 16])
        self.assertEqual(self.session.value("pids == sorted(p.pid for p in multiprocessing.active_children())"), True)
        self.assertIn("sleep 60", self.session.run("import os\nos.system('sleep 60 &');").done["ended"][0])
        self.assertEqual(self.session.value("pool.map(square, range(3))"), [0, 1, 4])
        self.run_ok("pool.terminate()\npool.join()")

    def test_process_pool_executor_survives_between_cells(self):
        self.run_ok(
            "import concurrent.futures, multiprocessing\nexecutor = concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context('fork'))\nexecutor.submit(abs, -1).result();"
        )
        self.assertEqual(self.session.value("executor.submit(abs, -5).result()"), 5)

    def test_spawned_process_pool_survives_between_cells(self):
        self.run_ok("import multiprocessing\npool = multiprocessing.get_context('spawn').Pool(1)\npool.apply(abs, (-1,));")
        self.assertEqual(self.session.value("pool.apply(abs, (-6,))"), 6)

    def test_process_pool_ends_with_the_session(self):
        pids = self.session.value(
            "import multiprocessing\npool = multiprocessing.get_context('fork').Pool(2)\n[p.pid for p in multiprocessing.active_children()]"
        )
        self.assertTrue(all(map(is_running, pids)))
        self.session.stop()
        self.assert_soon(lambda: not any(map(is_running, pids)), "the pool's end")

    def test_output_of_a_pool_worker_is_captured(self):
        outcome = self.run_ok("import multiprocessing\nwith multiprocessing.get_context('fork').Pool(1) as pool: pool.apply(print, ('from the pool',))")
        self.assertEqual(outcome.stdout, "from the pool\n")


if __name__ == "__main__":
    unittest.main()
