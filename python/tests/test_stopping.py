"""Tests the time limit and cancelling: each rung of the ladder, and the calls right after."""

import time
import unittest

from harness import SessionTest


class TimeLimit(SessionTest):
    def assert_stopped(self, outcome, why, rung):
        self.assertEqual(outcome.done["stopped"], {"why": why, "rung": rung}, outcome)

    def test_sleeping_code_is_interrupted_at_the_time_limit(self):
        outcome = self.session.run("kept = 1\nimport time\ntime.sleep(60)", timeout=0.2)
        self.assert_stopped(outcome, "timeout", "interrupted")
        self.assertEqual((outcome.done["status"], outcome.done["ename"]), ("error", "KeyboardInterrupt"))
        self.assertIn("time.sleep(60)", outcome.traceback)
        self.assert_no_driver_frames(outcome)
        self.assertEqual(self.session.value("kept"), 1)

    def test_printing_code_is_interrupted_at_the_time_limit(self):
        for _ in range(5):
            outcome = self.session.run("while True: print('spam')", timeout=0.1)
            self.assert_stopped(outcome, "timeout", "interrupted")
            self.assert_no_driver_frames(outcome)
            self.assert_works()

    def test_code_that_catches_the_interrupt_ends_in_its_own_way(self):
        outcome = self.session.run("import time\ntry: time.sleep(60)\nexcept KeyboardInterrupt: print('cleaned up')", timeout=0.2)
        self.assert_stopped(outcome, "timeout", "interrupted")
        self.assertEqual(outcome.stdout, "cleaned up\n")
        self.assert_works()

    def test_repr_is_interrupted_at_the_time_limit(self):
        outcome = self.session.run("import time\nclass Slow:\n    def __repr__(self): time.sleep(60)\nSlow()", timeout=0.2)
        self.assert_stopped(outcome, "timeout", "interrupted")
        self.assertEqual(outcome.done["status"], "error")
        self.assert_works()

    def test_code_that_waits_for_a_child_is_interrupted_at_the_time_limit(self):
        outcome = self.session.run("import subprocess\nsubprocess.run(['sleep', '60'])", timeout=0.2)
        self.assert_stopped(outcome, "timeout", "interrupted")
        self.assert_works()

    def test_code_within_the_time_limit_is_not_stopped(self):
        outcome = self.run_ok("import time\ntime.sleep(0.05)\n'in time'", timeout=10)
        self.assertIsNone(outcome.done["stopped"])
        self.assertEqual(outcome.result, "'in time'")

    def test_code_without_a_time_limit_is_not_stopped(self):
        outcome = self.run_ok("import time\ntime.sleep(0.05)\n'unlimited'", timeout=None)
        self.assertEqual(outcome.result, "'unlimited'")

    def test_call_after_a_time_out_gets_its_own_answer(self):
        for number in range(10):
            self.session.run("import time\nwhile True: time.sleep(0.001)", timeout=0.05)
            outcome = self.run_ok("print(%d)\n%d" % (number, number))
            self.assertEqual((outcome.stdout, outcome.result), ("%d\n" % number, "%d" % number))

    def test_time_limit_that_falls_together_with_the_end_gives_one_answer(self):
        for number in range(20):
            outcome = self.session.run("import time\ntime.sleep(0.02)\n%d" % number, timeout=0.02)
            self.assertTrue(outcome.result == "%d" % number or outcome.done["stopped"], outcome)
            self.assertNotIn("death", outcome.done)
        self.assert_works()

    def test_code_with_several_threads_is_interrupted_at_the_time_limit(self):
        self.run_ok("import threading, time\nthreading.Thread(target=time.sleep, args=(1000,), daemon=True).start()")
        self.assert_stopped(self.session.run("time.sleep(60)", timeout=0.2), "timeout", "interrupted")
        self.assert_works()


CODE_AND_RUNG = {
    "children are killed under a C call that ignores interrupts": ("import os\nos.system('sleep 60')", "children-killed"),
    "code goes on after its child was killed": ("import os, time\nos.system('sleep 60')\ntime.sleep(60)", "children-killed"),
    "a child that ignores interrupts": ("import subprocess\nsubprocess.run(['sh', '-c', 'trap \"\" INT; sleep 60'])", "interrupted"),
    "code that catches every interrupt": ("import time\nwhile True:\n    try: time.sleep(60)\n    except KeyboardInterrupt: pass", "killed"),
    "C code that never gives the interpreter free": ("import itertools\nall(itertools.repeat(True))", "killed"),
    "a regular expression without end": ("import re\nre.match('(a*)*(a*)*$', 'a' * 40 + 'b')", "either"),
    "interrupts turned off": ("import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: time.sleep(1)", "killed"),
    "interrupts blocked": ("import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})\nwhile True: time.sleep(1)", "killed"),
}


class Ladder(SessionTest):
    """The higher rungs take seconds each, so all of them climb at the same time."""

    def test_each_rung_of_the_ladder_ends_the_code_that_needs_it(self):
        sessions = {}
        for name, (code, _) in CODE_AND_RUNG.items():
            sessions[name] = session = self.new_session()
            session.run("kept = 1")
            session.start("print('begun')\n" + code, timeout=0.3)
        for name, (_, rung) in CODE_AND_RUNG.items():
            with self.subTest(name):
                session = sessions[name]
                outcome = session.finish()
                self.assertEqual(outcome.stdout, "begun\n")
                stopped = outcome.done["stopped"]
                self.assertEqual(stopped and stopped["why"], "timeout", outcome)
                self.assertIsNone(outcome.done["cause"])
                if rung == "killed":
                    self.assert_died(outcome, signal="SIGKILL")
                elif rung != "either":
                    self.assertNotIn("death", outcome.done)
                    self.assertEqual(session.value("kept"), 1)
                if rung != "either":
                    self.assertEqual(stopped["rung"], rung, outcome)
                self.assert_works(session)


class Cancelling(SessionTest):
    def test_cancelled_code_is_interrupted(self):
        id = self.session.start("print('begun')\nimport time\ntime.sleep(60)")
        self.session.read_until("begun\n")
        self.session.send("interrupt", id=id, reason="cancelled")
        outcome = self.session.finish()
        self.assertEqual(outcome.done["stopped"], {"why": "cancelled", "rung": "interrupted"})
        self.assert_no_driver_frames(outcome)
        self.assert_works()

    def test_cancel_before_the_code_began_is_not_lost(self):
        """It is not lost: no second attempt, two seconds later, is needed."""
        for _ in range(20):
            self.session.start("import time\ntime.sleep(60)")
            self.session.send("interrupt", id=str(self.session.count), reason="cancelled")
            outcome = self.session.finish()
            self.assertEqual(outcome.done["stopped"], {"why": "cancelled", "rung": "interrupted"})
        self.assert_works()

    def test_second_cancel_climbs_the_ladder_at_once(self):
        self.session.start(
            "import time\ntry:\n    print('begun')\n    time.sleep(60)\nexcept KeyboardInterrupt: pass\nwhile True:\n    try: time.sleep(60)\n    except KeyboardInterrupt: pass"
        )
        self.session.read_until("begun\n")
        for _ in range(3):
            self.session.send("interrupt", id=str(self.session.count), reason="cancelled")
            time.sleep(0.1)
        outcome = self.session.finish()
        self.assertEqual(outcome.done["stopped"], {"why": "cancelled", "rung": "killed"})
        self.assert_works()

    def test_interrupt_while_idle_does_nothing(self):
        self.run_ok("kept = 1")
        self.session.send("interrupt", id="1", reason="cancelled")
        self.session.send("interrupt", id=None, reason="cancelled")
        self.assertEqual(self.session.value("kept"), 1)
        self.assertEqual(self.run_ok("import time\ntime.sleep(0.1)").done["stopped"], None)

    def test_interrupt_of_another_execution_does_nothing(self):
        self.session.start("import time\ntime.sleep(0.2)\n'whole'")
        self.session.send("interrupt", id="another", reason="cancelled")
        self.assertEqual(self.session.finish().result, "'whole'")

    def test_cancel_that_races_the_end_gives_one_answer(self):
        for number in range(50):
            self.session.start("x = %d\nx" % number)
            if number % 2:
                time.sleep(number / 50_000)
            self.session.send("interrupt", id=str(self.session.count), reason="cancelled")
            outcome = self.session.finish()
            self.assertNotIn("death", outcome.done)
            self.assertTrue(outcome.result == "%d" % number or outcome.done["stopped"], outcome)
        self.assert_works()
        self.assertEqual(self.session.restarts, [])

    def test_late_cancel_does_not_hit_the_next_call(self):
        for number in range(50):
            self.session.start("1")
            self.session.send("interrupt", id=str(self.session.count), reason="cancelled")
            self.session.finish()
            outcome = self.run_ok("for _ in range(1000): pass\n%d" % number)
            self.assertEqual((outcome.result, outcome.done["stopped"]), ("%d" % number, None))


class Records(SessionTest):
    def test_record_has_wall_time_processor_time_and_peak_memory(self):
        outcome = self.run_ok("x = bytearray(200_000_000)\nfor _ in range(2_000_000): pass\ndel x")
        self.assertGreater(outcome.done["peak"], 200_000_000)
        self.assertGreater(outcome.done["cpu"], 0)
        self.assertGreaterEqual(outcome.done["wall"], 0)
        self.assertLess(self.run_ok("1").done["peak"], 200_000_000)


if __name__ == "__main__":
    unittest.main()
