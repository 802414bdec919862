"""Tests the zygote: the sessions that it starts, and every way in which it ends."""

import glob
import os
import signal
import time
import unittest

from harness import Connection, SessionTest, Zygote, is_running, kill

# A session that cannot be: its answer is an error.
NOWHERE = {"socket": "/proc/no/such/place/sock", "cwd": "/", "env": {}, "linger": 1, "startup": None}


class ZygoteTest(SessionTest):
    """With a zygote of its own, whose end is part of the test."""

    def setUp(self):
        self.zygote = Zygote()
        self.addCleanup(self.zygote.close)

    def dismiss(self, connection=None):
        (connection or self.zygote.connection).send(op="dismiss")

    def connect(self):
        connection = Connection(self.zygote.path)
        self.addCleanup(connection.close)
        return connection

    def has_ended(self):
        return self.zygote.process.poll() is not None

    def assert_ends(self):
        self.assert_soon(self.has_ended, "the end of the zygote")
        self.assert_soon(lambda: not os.path.exists(os.path.dirname(self.zygote.path)), "the end of its folder")

    def assert_serves(self):
        """After all that was said to it before: it takes one connection after the other."""
        connection = self.connect()
        connection.send(op="spawn", id="x", **NOWHERE)
        self.assertIn("error", connection.receive())
        connection.close()

    def children(self):
        with open("/proc/%d/task/%d/children" % (self.zygote.process.pid, self.zygote.process.pid)) as file:
            return list(map(int, file.read().split()))

    def front(self):
        """The process that talks to servers: the first that the one that was started has forked."""
        return min(self.children())


class DismissedZygote(ZygoteTest):
    def test_dismissed_zygote_ends_when_its_last_server_has_gone(self):
        self.dismiss()
        self.zygote.connection.close()
        self.assert_ends()

    def test_dismissed_zygote_stays_while_a_server_is_connected(self):
        other = self.connect()
        self.dismiss()
        self.zygote.connection.close()
        other.send(op="spawn", id="x", **NOWHERE)
        self.assertIn("error", other.receive())
        self.assertFalse(self.has_ended())
        other.close()
        self.assert_ends()

    def test_dismissed_zygote_stays_until_its_last_session_ends(self):
        session = self.new_session()
        self.dismiss()
        self.zygote.connection.close()
        self.assertEqual(session.value("6 * 7"), 42)
        self.assertFalse(self.has_ended())
        session.stop()
        self.assert_ends()
        self.assert_soon(lambda: not is_running(session.pid), "the keeper's end")

    def test_dismissed_zygote_serves_a_server_that_comes_later(self):
        session = self.new_session()
        self.dismiss()
        self.zygote.ask("spawn", **NOWHERE)  # By its answer the other has been heard, too.
        self.zygote.connection.close()
        self.assert_serves()
        session.stop()
        self.assert_serves()
        self.assertFalse(self.has_ended())

    def test_dismissal_gets_no_answer(self):
        self.dismiss()
        self.assertIn("error", self.zygote.ask("spawn", **NOWHERE))

    def test_zygote_that_was_not_dismissed_stays(self):
        self.zygote.connection.close()
        for _ in range(3):
            self.assert_serves()
        self.assertFalse(self.has_ended())

    def test_spare_keeper_ends_with_its_dismissed_zygote(self):
        self.new_session().stop()
        self.assert_soon(lambda: len(self.children()) >= 2, "a spare keeper")
        children = self.children()
        self.dismiss()
        self.zygote.connection.close()
        self.assert_ends()
        self.assert_soon(lambda: not any(map(is_running, children)), "the end of all that it had forked")

    def test_socket_of_a_session_is_removed_with_the_session(self):
        session = self.new_session()
        self.dismiss()
        self.zygote.connection.close()
        session.stop()
        self.assert_ends()
        self.assertEqual(glob.glob(os.path.join(self.zygote.folder, "s*")), [])


class TerminatedZygote(ZygoteTest):
    def test_terminated_zygote_ends_its_template_and_spare_keeper(self):
        self.new_session().stop()
        self.assert_soon(lambda: len(self.children()) >= 2, "a spare keeper")
        children = self.children()
        os.kill(self.front(), signal.SIGTERM)
        self.assert_ends()
        self.assert_soon(lambda: not any(map(is_running, children)), "the end of all that it had forked")

    def test_terminated_zygote_leaves_sessions_running(self):
        session = self.new_session()
        session.run("x = 5")
        os.kill(self.front(), signal.SIGTERM)
        self.assert_ends()
        self.assertEqual(session.value("x"), 5)

    def test_killed_zygote_leaves_no_process_behind(self):
        self.new_session().stop()
        self.assert_soon(lambda: len(self.children()) >= 2, "a spare keeper")
        children = self.children()
        kill(self.front())
        self.assert_soon(self.has_ended, "the end of the zygote")
        self.assert_soon(lambda: not any(map(is_running, children)), "the end of all that it had forked")


class SessionsOfZygote(ZygoteTest):
    def test_sessions_outlive_a_killed_zygote(self):
        session = self.zygote.session()
        self.addCleanup(session.stop)
        session.run("x = 5")
        self.zygote.process.kill()
        self.zygote.process.wait()
        self.assertEqual(session.value("x"), 5)
        session.run("import os\nos._exit(1)")
        self.assertEqual(session.value("6"), 6)

    def test_ended_zygote_leaves_no_spare_keeper_behind(self):
        session = self.zygote.session()
        session.stop()
        time.sleep(0.3)
        children = self.children()
        self.assertGreater(len(children), 0)
        self.zygote.process.terminate()
        self.zygote.process.wait(10)
        deadline = time.monotonic() + 10
        while any(map(is_running, children)) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertFalse(any(map(is_running, children)))
        self.assertFalse(os.path.exists(os.path.dirname(self.zygote.path)))

    def test_zygote_ends_when_its_socket_is_removed(self):
        os.unlink(self.zygote.path)
        self.zygote.process.wait(15)

    def test_failed_spawn_is_answered_with_an_error_and_the_next_one_works(self):
        answer = self.zygote.ask("spawn", socket="/proc/no/such/place/sock", cwd="/", env={}, linger=1, startup=None)
        self.assertIn("error", answer)
        session = self.zygote.session()
        self.addCleanup(session.stop)
        self.assertEqual(session.value("1"), 1)

    def test_ten_sessions_at_once_each_get_their_own_answers(self):
        sessions = [self.zygote.session() for _ in range(10)]
        for session in sessions:
            self.addCleanup(session.stop)
        for number, session in enumerate(sessions):
            session.start("x = %d\nx" % number)
        self.assertEqual([session.finish().result for session in sessions], [str(number) for number in range(10)])

    def test_module_that_cannot_be_preloaded_is_left_out_and_logged(self):
        zygote = Zygote("no_such_module_at_all", "json")
        self.addCleanup(zygote.close)
        session = zygote.session()
        self.addCleanup(session.stop)
        self.assertEqual(session.value("import sys\n'json' in sys.modules"), True)
        self.assert_soon(lambda: "no_such_module_at_all" in zygote.log_text(), "the log names what was left out")


if __name__ == "__main__":
    unittest.main()
