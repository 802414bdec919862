"""A number that is found aside: who asks has the newest there is, and never waits for longer than it said."""

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


class Asked(unittest.TestCase):
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

    def test_is_new_each_time(self):
        self.assertEqual([self.call.latest(PATIENCE) for _ in range(3)], [1, 2, 3])

    def test_nobody_waits_for_one_that_is_held_up(self):
        self.call.latest(PATIENCE)
        self.held.clear()
        began = time.monotonic()
        self.assertEqual([self.call.latest(0.01) for _ in range(5)], [1] * 5)
        self.assertLess(time.monotonic() - began, PATIENCE)
        self.assertEqual(self.found, 2, "one is looked for at a time")
        self.held.set()
        self.assertGreaterEqual(self.call.latest(PATIENCE), 2)

    def test_failure_is_no_number(self):
        self.call.latest(PATIENCE)
        with mock.patch.object(self.call, "_function", side_effect=OSError), mock.patch.object(sys, "unraisablehook"):
            self.assertEqual(self.call.latest(PATIENCE), 1)
        self.assertEqual(self.call.latest(PATIENCE), 2)

    def test_no_room_for_a_thread(self):
        with mock.patch.object(background_call._thread, "start_new_thread", side_effect=RuntimeError):
            self.assertEqual(self.call.latest(PATIENCE), 0)
        self.assertEqual(self.call.latest(PATIENCE), 1)


if __name__ == "__main__":
    unittest.main()
