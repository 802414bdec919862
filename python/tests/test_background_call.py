"""Tests that a background call gives the newest number there is, and that its caller never waits longer than it said."""

import os
import sys
import threading
import time
import unittest
from unittest import mock

from harness import DRIVER, PATIENCE

sys.path.insert(0, os.path.dirname(DRIVER))
from cuvette_driver import background_call
from cuvette_driver.background_call import BackgroundCall


class BackgroundCalls(unittest.TestCase):
    def setUp(self):
        self.held = threading.Event()
        self.held.set()
        self.found = 0
        self.call = BackgroundCall(self.find)

    def find(self):
        self.found += 1
        number = self.found
        self.held.wait(PATIENCE)
        return number

    def test_each_call_gives_a_newly_computed_number(self):
        self.assertEqual([self.call.latest(PATIENCE) for _ in range(3)], [1, 2, 3])

    def test_caller_waits_no_longer_than_its_timeout_for_a_slow_computation(self):
        self.call.latest(PATIENCE)
        self.held.clear()
        began = time.monotonic()
        self.assertEqual([self.call.latest(0.01) for _ in range(5)], [1] * 5)
        self.assertLess(time.monotonic() - began, PATIENCE)
        self.assertEqual(self.found, 2, "one is looked for at a time")
        self.held.set()
        self.assertGreaterEqual(self.call.latest(PATIENCE), 2)

    def test_failed_computation_keeps_the_last_number(self):
        self.call.latest(PATIENCE)
        with mock.patch.object(self.call, "_function", side_effect=OSError), mock.patch.object(sys, "unraisablehook"):
            self.assertEqual(self.call.latest(PATIENCE), 1)
        self.assertEqual(self.call.latest(PATIENCE), 2)

    def test_call_gives_the_last_number_where_no_thread_can_be_started(self):
        with mock.patch.object(background_call._thread, "start_new_thread", side_effect=RuntimeError):
            self.assertEqual(self.call.latest(PATIENCE), 0)
        self.assertEqual(self.call.latest(PATIENCE), 1)


if __name__ == "__main__":
    unittest.main()
