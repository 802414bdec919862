"""Zygotes that are sent home, and an interpreter that is started for one session, without a zygote."""

import glob
import json
import os
import signal
import socket
import subprocess
import sys
import unittest

from harness import DRIVER, PATIENCE, Connection, Session, SessionTest, Zygote, is_running, kill

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


class Dismissal(ZygoteTest):
    def test_ends_when_its_last_server_has_gone(self):
        self.dismiss()
        self.zygote.connection.close()
        self.assert_ends()

    def test_stays_while_a_server_is_there(self):
        other = self.connect()
        self.dismiss()
        self.zygote.connection.close()
        other.send(op="spawn", id="x", **NOWHERE)
        self.assertIn("error", other.receive())
        self.assertFalse(self.has_ended())
        other.close()
        self.assert_ends()

    def test_stays_while_a_session_is_there_and_ends_with_it(self):
        session = self.new_session()
        self.dismiss()
        self.zygote.connection.close()
        self.assertEqual(session.value("6 * 7"), 42)
        self.assertFalse(self.has_ended())
        session.stop()
        self.assert_ends()
        self.assert_soon(lambda: not is_running(session.pid), "the keeper's end")

    def test_server_that_comes_later_is_served(self):
        session = self.new_session()
        self.dismiss()
        self.zygote.ask("spawn", **NOWHERE)  # By its answer the other has been heard, too.
        self.zygote.connection.close()
        self.assert_serves()
        session.stop()
        self.assert_serves()
        self.assertFalse(self.has_ended())

    def test_is_no_request_and_has_no_answer(self):
        self.dismiss()
        self.assertIn("error", self.zygote.ask("spawn", **NOWHERE))

    def test_server_that_says_nothing_leaves_the_zygote_there(self):
        self.zygote.connection.close()
        for _ in range(3):
            self.assert_serves()
        self.assertFalse(self.has_ended())

    def test_spare_keeper_goes_with_it(self):
        self.new_session().stop()
        self.assert_soon(lambda: len(self.children()) >= 2, "a spare keeper")
        children = self.children()
        self.dismiss()
        self.zygote.connection.close()
        self.assert_ends()
        self.assert_soon(lambda: not any(map(is_running, children)), "the end of all that it had forked")

    def test_socket_of_the_session_goes_with_the_session(self):
        session = self.new_session()
        self.dismiss()
        self.zygote.connection.close()
        session.stop()
        self.assert_ends()
        self.assertEqual(glob.glob(os.path.join(self.zygote.folder, "s*")), [])


class Termination(ZygoteTest):
    def test_of_the_front_ends_it_in_order(self):
        self.new_session().stop()
        self.assert_soon(lambda: len(self.children()) >= 2, "a spare keeper")
        children = self.children()
        os.kill(self.front(), signal.SIGTERM)
        self.assert_ends()
        self.assert_soon(lambda: not any(map(is_running, children)), "the end of all that it had forked")

    def test_of_the_front_leaves_sessions_at_work(self):
        session = self.new_session()
        session.run("x = 5")
        os.kill(self.front(), signal.SIGTERM)
        self.assert_ends()
        self.assertEqual(session.value("x"), 5)

    def test_of_a_killed_front_leaves_nothing_either(self):
        self.new_session().stop()
        self.assert_soon(lambda: len(self.children()) >= 2, "a spare keeper")
        children = self.children()
        kill(self.front())
        self.assert_soon(self.has_ended, "the end of the zygote")
        self.assert_soon(lambda: not any(map(is_running, children)), "the end of all that it had forked")


class Hosted(SessionTest):
    """The program that a confined keeper turns into for a Python that is not ours: here without the confinement."""

    def setUp(self):
        self.folder = self.new_folder()
        self.path = os.path.join(self.folder, "sock")

    def start(self, **different):
        request = {"cwd": self.folder, "env": dict(os.environ), "linger": 30, "owner": None, "startup": None, "id": 1, "op": "spawn", **different}
        listener = socket.socket(socket.AF_UNIX)
        with listener:
            listener.bind(self.path)
            listener.listen(5)
            ours, theirs = os.pipe()
            pid = os.fork()
            if pid == 0:
                try:
                    os.dup2(ours, 0)
                    os.dup2(os.dup(listener.fileno()), 3, inheritable=True)
                    os.closerange(4, 100)
                    os.execve(sys.executable, [sys.executable, os.path.join(DRIVER, "__main__.py"), "--hosted"], {**os.environ, "TMPDIR": self.folder})
                finally:
                    os._exit(127)
            os.close(ours)
        with open(theirs, "wb") as file:
            file.write(json.dumps(request).encode() + b"\n")
        self.pid = pid
        self.addCleanup(self.end)
        session = Session(self.path, pid)
        self.addCleanup(session.stop)
        return session

    def end(self):
        kill(self.pid)
        try:
            os.waitpid(self.pid, 0)
        except ChildProcessError:
            pass

    def assert_ended(self):
        self.assert_soon(lambda: not is_running(self.pid), "its end")

    def test_runs_code_and_keeps_variables(self):
        session = self.start()
        self.assertEqual(session.hello["executable"], sys.executable)
        session.run("x = 5")
        self.assertEqual(session.value("import os\nx, os.getcwd()"), (5, self.folder))

    def test_has_the_environment_and_the_startup_that_were_given(self):
        session = self.start(env={"PATH": os.environ["PATH"], "MARK": "yes"}, startup="begun = 1")
        self.assertEqual(session.value("import os\nbegun, os.environ['MARK'], 'HOME' in os.environ"), (1, "yes", False))

    def test_code_reads_nothing_from_its_input(self):
        session = self.start()
        self.assertEqual(session.value("import os\nos.read(0, 100)"), b"")

    def test_survives_the_death_of_its_worker(self):
        session = self.start()
        self.assert_died(session.run("import os\nos._exit(3)"), exit=3)
        self.assertEqual(session.value("6"), 6)

    def test_time_limit_holds(self):
        session = self.start()
        outcome = session.run("import time\ntime.sleep(60)", timeout=0.2)
        self.assertEqual(outcome.done["stopped"], {"why": "timeout", "rung": "interrupted"})

    def test_ends_when_it_is_told_to(self):
        session = self.start()
        worker = session.hello["worker"]
        session.send("stop")
        self.assert_ended()
        self.assertFalse(is_running(worker))

    def test_takes_one_server_after_the_other(self):
        session = self.start()
        session.run("x = 5")
        session.connection.close()
        session.connect()
        self.assertEqual(session.value("x"), 5)

    def test_ends_after_its_linger(self):
        session = self.start(linger=0.5)
        session.connection.close()
        self.assert_ended()


class Command(unittest.TestCase):
    def test_of_a_python_that_is_too_old_is_told(self):
        """The entry is read by the oldest Python that anybody may try it with."""
        with open(os.path.join(DRIVER, "__main__.py")) as file:
            text = file.read()
        self.assertLess(text.index("sys.version_info < (3, 9)"), text.index("from cuvette_driver"))
        self.assertNotIn('f"', text)

    def test_without_a_socket_fails(self):
        done = subprocess.run(
            [sys.executable, os.path.join(DRIVER, "__main__.py"), "--policy=/no/such/file", "/no/such/folder/sock"],
            check=False,
            capture_output=True,
            timeout=PATIENCE,
        )
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"/no/such/file" if os.geteuid() != 0 else b"No such file", done.stderr)


if __name__ == "__main__":
    unittest.main()
