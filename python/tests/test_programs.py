"""Tests what a keeper of programs runs, limits, ends and reports."""

import os
import random
import sys
import time
import unittest

from harness import commands, is_running
from program_helpers import ENV, ProgramTest, shell


class Endings(ProgramTest):
    def test_program_reports_both_streams_and_its_exit_code(self):
        outcome = self.run_program("echo out; echo err >&2; exit 3")
        self.assertEqual((outcome.stdout, outcome.stderr), ("out\n", "err\n"))
        self.assertEqual((outcome.done["status"], outcome.done["code"], outcome.done["stopped"]), ("exit", 3, None))
        self.assert_works()

    def test_program_killed_by_a_signal_reports_it(self):
        for name, number in (("SEGV", 11), ("KILL", 9), ("TERM", 15)):
            outcome = self.run_program("echo before; kill -%s $$; echo after" % name)
            self.assertEqual(outcome.stdout, "before\n")
            self.assertEqual((outcome.done["status"], outcome.done["signal"], outcome.done["code"]), ("signal", "SIG" + name, 128 + number))

    def test_program_that_cannot_be_run_says_why(self):
        for argv in (["/no/such/program"], ["no-such-program"], [self.folder]):
            outcome = self.run_program({"argv": argv})
            self.assertEqual(outcome.done["code"], 127)
            self.assertIn(argv[0] + " cannot be run", outcome.stderr)
        self.assert_works()

    def test_program_whose_folder_is_gone_says_so(self):
        outcome = self.run_program("true", cwd=os.path.join(self.folder, "gone"))
        self.assertEqual(outcome.done["code"], 127)
        self.assertIn("gone", outcome.stderr)
        self.assert_works()

    def test_program_output_of_any_bytes_without_a_newline_arrives(self):
        outcome = self.run_program(r"printf 'a\0b\377c\r\nd'")
        self.assertEqual(outcome.stdout, "a\0b\ufffdc\r\nd")

    def test_program_that_closes_its_output_is_waited_for(self):
        outcome = self.run_program("echo before; exec >&- 2>&-; sleep 0.2; exit 5")
        self.assertEqual((outcome.stdout, outcome.done["code"]), ("before\n", 5))

    def test_program_that_sends_itself_sigstop_is_continued(self):
        outcome = self.run_program("kill -STOP $$; echo 'went on'")
        self.assertEqual(outcome.stdout, "went on\n")

    def test_program_that_kills_its_process_group_reaches_only_itself(self):
        outcome = self.run_program("kill -KILL 0")
        self.assertEqual(outcome.done["signal"], "SIGKILL")
        self.assert_works()

    def test_large_program_output_arrives_whole(self):
        outcome = self.run_program("i=0; while [ $i -lt 300 ]; do printf '%1000d\\n' $i; i=$((i+1)); done")
        self.assertEqual(outcome.stdout, "".join("%1000d\n" % i for i in range(300)))


class Steps(ProgramTest):
    def test_steps_run_in_a_row_in_one_folder(self):
        outcome = self.run_program("echo building; echo made > made", "cat made; exit 4")
        self.assertEqual(outcome.stdout, "building\nmade\n")
        self.assertEqual((outcome.done["steps"], outcome.done["code"]), (1, 4))

    def test_steps_that_succeeded_are_counted(self):
        self.assertEqual(self.run_program("true", "true").done["steps"], 2)

    def test_failed_step_is_the_last(self):
        for failing, code in (("exit 2", 2), ("kill -ABRT $$", 134)):
            outcome = self.run_program(failing, "echo never")
            self.assertEqual((outcome.stdout, outcome.done["steps"], outcome.done["code"]), ("", 0, code))

    def test_process_left_by_a_step_does_not_hold_up_the_next(self):
        started = time.monotonic()
        outcome = self.run_program("sleep 30 & echo first", "echo second")
        self.assertEqual(outcome.stdout, "first\nsecond\n")
        self.assertLess(time.monotonic() - started, 10)

    def test_each_step_has_environment_variables_of_its_own(self):
        outcome = self.run_program(shell("echo $A $B", env={"A": "own"}), shell("echo $A $B; env | grep -c CUVETTE_TEST"), env={**ENV, "A": "all", "B": "b"})
        self.assertEqual(outcome.stdout, "own b\nall b\n0\n")

    def test_stopped_step_is_the_last(self):
        outcome = self.run_program("sleep 30", "echo never", timeout=0.2)
        self.assert_stopped(outcome, "timeout", "interrupted")
        self.assertEqual(outcome.stdout, "")

    def test_next_step_waits_until_the_server_says_continue(self):
        path = os.path.join(self.folder, "second")
        id = self.start("echo first", "touch second; echo second")
        self.session.read_until("first\n")
        self.assertEqual(self.session.receive()["ev"], "built")
        time.sleep(0.2)
        self.assertFalse(os.path.exists(path))
        self.session.send("continue")
        outcome = self.finish(id)
        self.assertEqual((outcome.stdout, outcome.done["steps"]), ("second\n", 2))
        self.assertEqual(self.run_program("true").of("built"), [])

    def test_plan_that_waits_for_the_server_can_be_stopped(self):
        for stop in (lambda id: self.session.send("interrupt", id=id, reason="cancelled"), lambda id: None):
            id = self.start("echo first", "echo never", timeout=0.5)
            self.session.read_until("first\n")
            self.assertEqual(self.session.receive()["ev"], "built")
            stop(id)
            outcome = self.finish(id)
            self.assertEqual(outcome.stdout, "")
            self.assertIn(outcome.done["stopped"]["why"], ("cancelled", "timeout"))
            self.session.send("continue")
            self.assert_works()

    def test_next_server_is_asked_again_between_two_steps(self):
        id = self.start("echo first", "echo second")
        while self.session.receive(ack=False)["ev"] != "built":
            pass
        self.session.connection.close()
        self.session.connect()
        self.assertEqual(self.finish(id).stdout, "first\nsecond\n")

    def test_time_limit_counts_for_all_steps_together(self):
        started = time.monotonic()
        outcome = self.run_program("sleep 0.4", "sleep 30", timeout=0.8)
        self.assert_stopped(outcome, "timeout", "interrupted")
        self.assertLess(time.monotonic() - started, 6)


class Input(ProgramTest):
    def test_program_without_input_reads_end_of_file(self):
        started = time.monotonic()
        self.assertEqual(self.run_program('cat; read x; echo "[$x] $?"').stdout, "[] 1\n")
        self.assertLess(time.monotonic() - started, 10)

    def test_program_reads_the_given_input(self):
        text = "line 1\n\u00fc\U0001f389\n" + "x" * 300_000
        self.assertEqual(self.run_program("cat", stdin=text).stdout, text)

    def test_each_step_reads_the_whole_input(self):
        self.assertEqual(self.run_program("head -c 2 >/dev/null", "cat", stdin="abc").stdout, "abc")

    def test_arguments_are_passed_as_they_are(self):
        args = ["a b", "it's", '"', "$HOME", "", "*", "\u00fc", "-n", "two\nlines"]
        outcome = self.run_program(shell('for a; do printf "<%s>" "$a"; done', *args))
        self.assertEqual(outcome.stdout, "".join("<%s>" % one for one in args))


class Stopping(ProgramTest):
    def test_program_is_interrupted_at_its_time_limit(self):
        outcome = self.run_program("echo begun; sleep 60", timeout=0.3)
        self.assert_stopped(outcome, "timeout", "interrupted")
        self.assertEqual(outcome.stdout, "begun\n")
        self.assert_works()

    def test_program_that_handles_the_interrupt_ends_in_its_own_way(self):
        outcome = self.run_program("trap 'echo cleaned up; exit 0' INT; sleep 60 & wait", timeout=0.3)
        self.assertEqual(outcome.stdout, "cleaned up\n")
        self.assert_works()

    def test_program_that_ignores_interrupts_is_killed_with_its_children(self):
        nap = str(random.randrange(10**6, 10**8))
        started = time.monotonic()
        outcome = self.run_program("trap '' INT TERM HUP; sleep %s & while :; do sleep %s; done" % (nap, nap), timeout=0.2)
        self.assert_stopped(outcome, "timeout", "killed")
        self.assertEqual(outcome.done["signal"], "SIGKILL")
        self.assertLess(time.monotonic() - started, 15)
        self.assertNotIn("sleep " + nap, commands())
        self.assert_works()

    def test_program_goes_on_after_its_child_that_ignores_interrupts_is_killed(self):
        outcome = self.run_program("trap 'echo interrupted' INT\nsh -c 'trap \"\" INT TERM; sleep 60'\necho 'went on'", timeout=0.2)
        self.assert_stopped(outcome, "timeout", "children-killed")
        self.assertTrue(outcome.stdout.endswith("went on\n"), outcome)

    def test_interrupt_reaches_the_whole_process_group_of_a_program(self):
        child = "sh -c 'trap \"echo child; exit\" INT; sleep 60 & wait; :'"
        outcome = self.run_program("trap 'echo parent; exit' INT\n%s\n:" % child, timeout=0.4)
        self.assertEqual(outcome.stdout, "child\nparent\n")

    def test_cancelled_program_is_interrupted(self):
        id = self.start("echo begun; sleep 60")
        self.session.read_until("begun\n")
        self.session.send("interrupt", id=id, reason="cancelled")
        self.assert_stopped(self.finish(id), "cancelled", "interrupted")
        self.assert_works()

    def test_interrupt_of_another_execution_does_not_reach_a_program(self):
        id = self.start("echo begun; sleep 0.5; echo ended")
        self.session.read_until("begun\n")
        self.session.send("interrupt", id="another", reason="cancelled")
        outcome = self.finish(id)
        self.assertEqual((outcome.stdout, outcome.done["stopped"]), ("ended\n", None))

    def test_reset_ends_the_running_program(self):
        id = self.start("echo begun; sleep 60")
        self.session.read_until("begun\n")
        self.session.send("reset", id="reset-1")
        events = [self.session.receive(), self.session.receive()]
        self.assertEqual({(event["ev"], event["id"]) for event in events}, {("reset", "reset-1"), ("done", id)})
        self.assert_works()

    def test_program_output_beyond_the_limit_is_cut_and_ends_it(self):
        outcome = self.run_program("while :; do echo 0123456789; done", limit=5000)
        self.assertEqual(outcome.done["stopped"]["why"], "output-limit")
        self.assertLessEqual(len(outcome.printed), 5000)
        self.assert_works()


class LeftRunning(ProgramTest):
    def test_process_left_by_a_program_ends_with_it_and_is_reported(self):
        nap = str(random.randrange(10**6, 10**8))
        for start in ("sleep %s & :", "(setsid sleep %s >/dev/null 2>&1 &)", "nohup setsid sh -c 'sleep %s; :' >/dev/null 2>&1 &"):
            outcome = self.run_program((start % nap) + "\nsleep 0.2; echo done")
            self.assertEqual(outcome.stdout, "done\n")
            self.assertIn("sleep " + nap, "\n".join(outcome.done["ended"]))
            self.assertNotIn("sleep " + nap, commands())

    def test_late_output_of_a_left_process_is_not_taken_for_the_next_programs(self):
        self.run_program("(setsid sh -c 'sleep 0.3; echo late' &)")
        self.assertEqual(self.run_program("sleep 0.5; echo own").stdout, "own\n")

    def test_process_left_by_a_program_ends_with_the_session(self):
        nap = str(random.randrange(10**6, 10**8))
        self.start("echo begun; setsid sleep %s & sleep %s" % (nap, nap))
        self.session.read_until("begun\n")
        self.session.stop()
        self.assert_soon(lambda: "sleep " + nap not in commands(), "the end of every process")
        self.assert_soon(lambda: not is_running(self.session.pid), "the end of the keeper")


class Usage(ProgramTest):
    WORK = "import time\nx = bytearray(b'1' * (60 << 20))\nuntil = time.process_time() + 0.3\nwhile time.process_time() < until: pass"

    def test_processor_time_and_peak_memory_of_a_program_are_reported(self):
        done = self.run_program({"argv": [sys.executable, "-S", "-c", self.WORK]}).done
        self.assertGreaterEqual(done["cpu"], 0.29)
        self.assertLess(done["cpu"], 3)
        self.assertGreaterEqual(done["wall"], done["cpu"] * 0.9)
        self.assertGreater(done["peak"], 60 << 20)
        self.assertLess(done["peak"], 200 << 20)

    def test_usage_of_all_steps_is_reported(self):
        work = {"argv": [sys.executable, "-S", "-c", self.WORK]}
        done = self.run_program(work, "true").done
        self.assertGreaterEqual(done["cpu"], 0.29)
        self.assertGreater(done["peak"], 60 << 20)

    def test_small_program_has_a_small_peak_memory(self):
        done = self.run_program("echo x; sleep 0.3; echo y").done
        self.assertGreater(done["peak"], 100 << 10)
        self.assertLess(done["peak"], 12 << 20)
        self.assertLess(done["cpu"], 0.25)

    def test_program_is_bounded_by_its_memory_limit(self):
        code = "x = bytearray(600 << 20)"
        outcome = self.run_program({"argv": [sys.executable, "-S", "-c", code]}, limits={"memory": 300 << 20})
        self.assertIn("MemoryError", outcome.stderr)
        self.assertEqual(outcome.done["code"], 1)

    def test_program_is_bounded_by_its_processor_time_limit(self):
        outcome = self.run_program("while :; do :; done", limits={"cpu": 1})
        self.assertIn(outcome.done["signal"], ("SIGXCPU", "SIGKILL"))
        self.assertIsNone(outcome.done["stopped"])
        self.assert_works()


if __name__ == "__main__":
    unittest.main()
