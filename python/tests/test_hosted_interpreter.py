"""Tests an interpreter that is started for one session, without a zygote."""

import json
import os
import socket
import subprocess
import sys
import unittest

from harness import DRIVER, PATIENCE, Session, SessionTest, is_running, kill


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

    def test_hosted_interpreter_runs_code_and_keeps_variables(self):
        session = self.start()
        self.assertEqual(session.hello["executable"], sys.executable)
        session.run("x = 5")
        self.assertEqual(session.value("import os\nx, os.getcwd()"), (5, self.folder))

    def test_hosted_interpreter_has_the_given_environment_and_startup(self):
        session = self.start(env={"PATH": os.environ["PATH"], "MARK": "yes"}, startup="begun = 1")
        self.assertEqual(session.value("import os\nbegun, os.environ['MARK'], 'HOME' in os.environ"), (1, "yes", False))

    def test_hosted_code_reads_nothing_from_standard_input(self):
        session = self.start()
        self.assertEqual(session.value("import os\nos.read(0, 100)"), b"")

    def test_hosted_interpreter_survives_the_death_of_its_worker(self):
        session = self.start()
        self.assert_died(session.run("import os\nos._exit(3)"), exit=3)
        self.assertEqual(session.value("6"), 6)

    def test_hosted_interpreter_enforces_the_time_limit(self):
        session = self.start()
        outcome = session.run("import time\ntime.sleep(60)", timeout=0.2)
        self.assertEqual(outcome.done["stopped"], {"why": "timeout", "rung": "interrupted"})

    def test_hosted_interpreter_ends_when_it_is_told_to_stop(self):
        session = self.start()
        worker = session.hello["worker"]
        session.send("stop")
        self.assert_ended()
        self.assertFalse(is_running(worker))

    def test_hosted_interpreter_serves_one_server_after_the_other(self):
        session = self.start()
        session.run("x = 5")
        session.connection.close()
        session.connect()
        self.assertEqual(session.value("x"), 5)

    def test_hosted_interpreter_ends_after_its_linger(self):
        session = self.start(linger=0.5)
        session.connection.close()
        self.assert_ended()


class Command(unittest.TestCase):
    def test_driver_says_that_a_python_is_too_old_in_syntax_that_it_understands(self):
        """The entry is read by the oldest Python that anybody may try it with."""
        with open(os.path.join(DRIVER, "__main__.py")) as file:
            text = file.read()
        self.assertLess(text.index("sys.version_info < (3, 9)"), text.index("from cuvette_driver"))
        self.assertNotIn('f"', text)

    def test_driver_fails_with_a_policy_that_cannot_be_read(self):
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
