"""Tests interpreters that die, are broken from inside, or are reset: the record says so, and the next call works."""

import os
import time
import unittest

from harness import SessionTest, is_running, kill


class Deaths(SessionTest):
    def assert_fresh(self):
        self.assertEqual(self.session.run("marker").done["ename"], "NameError")
        self.assertEqual(self.session.restarts[-1]["generation"], len(self.session.restarts) + 1)

    def test_os_exit_is_reported_with_its_code_and_the_next_call_works(self):
        outcome = self.session.run("marker = 1\nprint('before')\nimport os\nos._exit(9)")
        self.assert_died(outcome, exit=9)
        self.assertEqual(outcome.stdout, "before\n")
        self.assertIsNone(outcome.done["stopped"])
        self.assert_fresh()

    def test_segmentation_fault_is_reported_as_its_signal(self):
        self.assert_died(self.session.run("marker = 1\nimport ctypes\nctypes.string_at(0)"), signal="SIGSEGV")
        self.assert_fresh()

    def test_interpreter_that_kills_itself_is_reported_each_time(self):
        """Ten times: whether the death or the broken channel is seen first must not matter."""
        for _ in range(10):
            self.assert_died(self.session.run("marker = 1\nimport os\nos.kill(os.getpid(), 9)"), signal="SIGKILL")
            self.assert_fresh()

    def test_death_by_any_signal_is_reported_by_its_name(self):
        for number, name in ((15, "SIGTERM"), (6, "SIGABRT"), (40, "SIG40")):
            self.assert_died(self.session.run("import os\nos.kill(os.getpid(), %d)" % number), signal=name)
            self.assert_works()

    def test_displays_before_a_death_are_kept(self):
        outcome = self.session.run("display('shown')\nimport os\nos._exit(1)")
        self.assertEqual(outcome.of("display")[0]["data"]["text/plain"], "'shown'")
        self.assert_died(outcome, exit=1)

    def test_death_of_an_idle_interpreter_is_reported(self):
        self.run_ok("marker = 1")
        kill(self.session.hello["worker"])
        event = self.session.receive()
        self.assertEqual((event["ev"], event["generation"]), ("restarted", 2))
        self.session.restarts.append(event)
        self.assert_fresh()

    def test_code_that_sends_itself_sigstop_is_continued(self):
        self.assertEqual(self.session.value("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP) or 7"), 7)
        self.assert_works()

    def test_many_deaths_leak_no_descriptors(self):
        self.session.run("import os\nos._exit(1)")
        self.assert_works()
        before = len(os.listdir("/proc/%d/fd" % self.session.pid))
        for _ in range(10):
            self.session.run("import os\nos._exit(1)")
        self.assert_works()
        self.assertEqual(len(os.listdir("/proc/%d/fd" % self.session.pid)), before)


class BrokenChannel(SessionTest):
    def test_code_that_closes_all_descriptors_ends_its_interpreter_only(self):
        for _ in range(3):
            outcome = self.session.run("marker = 1\nimport os\nos.closerange(3, 1000)")
            self.assert_died(outcome, signal="SIGKILL", cause="channel")
            self.assertNotIn("cuvette_driver", outcome.printed)
            self.assertEqual(self.session.run("marker").done["ename"], "NameError")
        self.assertTrue(os.path.exists(self.session.path))

    def test_code_that_goes_on_without_its_channel_is_killed(self):
        started = time.monotonic()
        outcome = self.session.run("import os, time\nos.closerange(3, 1000)\ntime.sleep(60)")
        self.assert_died(outcome, signal="SIGKILL", cause="channel")
        self.assertLess(time.monotonic() - started, 30)
        self.assert_works()

    def test_malformed_messages_in_the_channel_end_the_interpreter_and_not_the_session(self):
        """User code that writes into every descriptor ends its interpreter, not the session."""
        code = "import os, stat\nfor fd in os.listdir('/proc/self/fd'):\n    try:\n        if stat.S_ISSOCK(os.fstat(int(fd)).st_mode): os.write(int(fd), b'%s\\n')\n    except OSError: pass"
        for text in ("nonsense", "[1]", '{"ev":"done","kept":5}', '{"ev":"variables"}', '{"ev":"display","data":5}'):
            self.session.run(code % text)
            self.session.ask("reset")
            self.assert_works()

    def test_code_may_overwrite_low_descriptors(self):
        self.run_ok("import os\nr, w = os.pipe()\nfor fd in range(5, 20): os.dup2(w, fd)")
        self.assert_works()

    def test_child_processes_inherit_no_descriptors(self):
        self.assertEqual(self.run_ok("import subprocess\nsubprocess.run(['ls', '/proc/self/fd']);").stdout.split(), ["0", "1", "2", "3"])

    def test_worker_has_only_its_own_descriptors(self):
        """Only its own: three streams, their spares, the channel."""
        folder = "/proc/%d/fd/" % self.session.hello["worker"]
        names = [os.readlink(folder + fd) for fd in os.listdir(folder)]
        self.assertEqual(sum(name.startswith("socket:") for name in names), 1, names)
        self.assertEqual(sum(name.startswith("pipe:") for name in names), 4, names)


class Reset(SessionTest):
    def test_reset_gives_a_clean_interpreter(self):
        self.run_ok("x = 1\nimport os, sys\nos.environ['LEFT'] = 'over'\nsys.path.append('/left/over')\nos.chdir('/')")
        event = self.session.ask("reset")
        self.assertEqual(event["generation"], 2)
        self.assertNotEqual(event["worker"], self.session.hello["worker"])
        self.assertEqual(self.session.variables(), [])
        cwd = os.path.join(self.zygote.folder, "work")
        self.assertEqual(self.session.value("import os, sys\nos.environ.get('LEFT'), '/left/over' in sys.path, os.getcwd()"), (None, False, cwd))
        self.assertEqual(self.session.restarts, [])

    def test_reset_ends_the_old_interpreter_and_its_processes(self):
        self.run_ok("import multiprocessing\npool = multiprocessing.get_context('fork').Pool(2)")
        pids = self.session.value("[p.pid for p in multiprocessing.active_children()]")
        self.session.ask("reset")
        for pid in (*pids, self.session.hello["worker"]):
            self.assert_soon(lambda pid=pid: not is_running(pid), "the end of process %d" % pid)

    def test_reset_of_a_running_call_ends_it(self):
        id = self.session.start("print('begun')\nimport time\ntime.sleep(60)")
        self.session.read_until("begun\n")
        self.session.send("reset", id="r")
        outcome = self.session.finish(id)
        self.assertEqual(outcome.done["death"]["signal"], "SIGKILL")
        event = self.session.receive()
        self.assertEqual((event["ev"], event["id"], event["generation"]), ("reset", "r", 2))
        self.assert_works()

    def test_many_resets_leak_no_descriptors(self):
        self.session.ask("reset")
        before = len(os.listdir("/proc/%d/fd" % self.session.pid))
        for _ in range(10):
            self.session.ask("reset")
        self.assert_works()
        self.assertEqual(len(os.listdir("/proc/%d/fd" % self.session.pid)), before)


if __name__ == "__main__":
    unittest.main()
