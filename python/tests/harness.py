"""Drives the driver for tests: starts zygotes and sessions, runs cells, and never waits without end."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

DRIVER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "cuvette_driver")
PATIENCE = 60.0
LIMIT = 100_000_000


class Connection:
    """JSON lines over a Unix socket; a silent peer fails the test."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE)
        try:
            self.socket.connect(path)
        except OSError:
            self.socket.close()
            raise
        self.rest = b""

    def send(self, **message):
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def receive(self, patience=PATIENCE):
        """The next message, or None at the end of the stream."""
        deadline = time.monotonic() + patience
        parts = [self.rest]
        while b"\n" not in parts[-1]:
            self.socket.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                data = self.socket.recv(1 << 16)
            except ConnectionError:
                return None
            except socket.timeout:
                self.rest = b"".join(parts)
                raise AssertionError("no message within %s seconds" % patience) from None
            if not data:
                return None
            parts.append(data)
        line, _, self.rest = b"".join(parts).partition(b"\n")
        return json.loads(line)

    def close(self):
        self.socket.close()


class Zygote:
    def __init__(self, *modules, folder=None):
        self.folder = os.path.realpath(folder or tempfile.mkdtemp(prefix="cuvette-test-"))
        self.path = os.path.join(self.folder, "z", "sock")
        os.makedirs(os.path.dirname(self.path))
        self.log = os.path.join(self.folder, "log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, os.path.join(DRIVER, "__main__.py"), self.path, *modules],
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.connection = self._connect()
        self.count = 0

    def _connect(self):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                return Connection(self.path)
            except OSError:
                time.sleep(0.005)
        self.close()
        raise AssertionError("the zygote did not start: " + self.log_text())

    def log_text(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def ask(self, op, **message):
        self.count += 1
        self.connection.send(op=op, id=self.count, **message)
        answer = self.connection.receive()
        assert answer is not None and answer["id"] == self.count, answer
        return answer

    def session(self, cwd=None, env=None, linger=30, startup=None):
        folder = os.path.join(self.folder, "s%d" % (self.count + 1))
        path = os.path.join(folder, "sock")
        work = cwd or os.path.join(self.folder, "work")
        os.makedirs(work, exist_ok=True)
        request = {"socket": path, "cwd": work, "env": dict(os.environ) if env is None else env, "linger": linger, "startup": startup}
        answer = self.ask("spawn", **request)
        assert "pid" in answer, answer
        return Session(path, answer["pid"])

    def close(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if hasattr(self, "connection"):
            self.connection.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Session:
    """One session's keeper, as its server sees it."""

    def __init__(self, path, pid):
        self.path = path
        self.pid = pid
        self.count = 0
        self.restarts = []
        self.connections = []
        self.connect()

    def connect(self):
        """Connects; an earlier connection of ours is replaced, as by another server."""
        self.connection = Connection(self.path)
        self.connections.append(self.connection)
        self.hello = self.connection.receive()
        assert self.hello["ev"] == "hello", self.hello
        return self.hello

    def send(self, op, **message):
        self.connection.send(op=op, **message)

    def receive(self, patience=PATIENCE, ack=True):
        message = self.connection.receive(patience)
        if message is not None and ack and "seq" in message:
            self.send("ack", seq=message["seq"])
        return message

    def start(self, code, timeout=PATIENCE * 3, limit=LIMIT):
        self.count += 1
        self.send("execute", id=str(self.count), code=code, cell=self.count, timeout=timeout, limit=limit)
        return str(self.count)

    def finish(self, id=None, answer=None, ack=True):
        """Reads up to the end of an execution; `answer` is what to say to a question for a package."""
        id = id or str(self.count)
        outcome = Outcome()
        while outcome.done is None:
            event = self.receive(ack=ack)
            if event is None:
                raise AssertionError("the keeper hung up; until then it said:\n%s" % outcome)
            if event["ev"] == "restarted":
                self.restarts.append(event)
                continue
            outcome.add(event)
            if event["ev"] == "install":
                self.send("answer", **(answer(event["name"]) if answer else {"installed": False}))
            if event["ev"] == "done" and event["id"] != id:
                raise AssertionError("an answer to %s while waiting for %s" % (event["id"], id))
        return outcome

    def read_until(self, text):
        """Reads what the running code prints until this is there."""
        printed = ""
        while text not in printed:
            event = self.receive()
            assert event is not None and event["ev"] == "stream", event
            printed += event["text"]
        return printed

    def run(self, code, timeout=PATIENCE * 3, limit=LIMIT, answer=None):
        return self.finish(self.start(code, timeout, limit), answer)

    def value(self, code):
        """The Python value of the code's last expression."""
        import ast

        outcome = self.run(code)
        assert outcome.result is not None, str(outcome)
        return ast.literal_eval(outcome.result)

    def ask(self, op, **message):
        self.count += 1
        id = "%s-%d" % (op, self.count)
        self.send(op, id=id, **message)
        while True:
            event = self.receive()
            assert event is not None, "the keeper hung up"
            if event["ev"] == "restarted":
                self.restarts.append(event)
            elif event.get("id") == id:
                return event

    def variables(self):
        return self.ask("variables")["variables"]

    def inspect(self, path, timeout=PATIENCE, **window):
        """What a look at a value tells, or what keeps it from that."""
        event = self.ask("inspect", path=path, timeout=timeout, **window)
        return event["answer"] if "answer" in event else event["problem"]

    def stop(self):
        """Ends the session, however the test left it."""
        try:
            if not os.path.exists(self.path):
                return
            self.connect()
            self.send("stop")
            while self.connection.receive() is not None:
                pass
        except (OSError, TypeError):
            pass
        finally:
            for connection in self.connections:
                connection.close()


class Outcome:
    """What one execution said, in order."""

    def __init__(self):
        self.events = []
        self.done = None

    def add(self, event):
        self.events.append(event)
        if event["ev"] == "done":
            self.done = event

    def of(self, kind):
        return [event for event in self.events if event["ev"] == kind]

    def text_of(self, *names):
        return "".join(event["text"] for event in self.of("stream") if event["name"] in names)

    @property
    def stdout(self):
        return self.text_of("stdout")

    @property
    def stderr(self):
        return self.text_of("stderr")

    @property
    def printed(self):
        """Both streams in the order in which they arrived."""
        return self.text_of("stdout", "stderr")

    @property
    def result(self):
        results = self.of("result")
        return results[-1]["data"]["text/plain"] if results else None

    @property
    def error(self):
        errors = self.of("error")
        return errors[-1] if errors else None

    @property
    def traceback(self):
        return "\n".join(self.error["traceback"]) if self.error else ""

    @property
    def installs(self):
        return [event["name"] for event in self.of("install")]

    def __str__(self):
        """Short enough for a failure's message."""
        texts = [json.dumps(event) for event in self.events]
        texts = [text if len(text) <= 600 else text[:300] + " ... " + text[-300:] for text in texts]
        return "\n".join(texts if len(texts) <= 20 else [*texts[:10], "...", *texts[-10:]])


_shared = {}


def shared_zygote(*modules):
    """A zygote for all tests of this run; it ends with the run."""
    zygote = _shared.get(modules)
    if zygote is None or zygote.process.poll() is not None:
        zygote = _shared[modules] = Zygote(*modules)
        atexit.register(zygote.close)
    return zygote


class PatientTest(unittest.TestCase):
    """Waits for what comes about in its own time."""

    def assert_soon(self, condition, what, patience=PATIENCE):
        deadline = time.monotonic() + patience
        while not condition():
            if time.monotonic() > deadline:
                self.fail("not within %s seconds: %s" % (patience, what))
            time.sleep(0.01)


class SessionTest(PatientTest):
    """A test with a fresh session of its own, and a folder that goes with it."""

    preload: tuple = ()

    def setUp(self):
        self.zygote = shared_zygote(*self.preload)
        self.session = self.new_session()

    def new_session(self, **options):
        session = self.zygote.session(**options)
        self.addCleanup(session.stop)
        return session

    def new_folder(self):
        folder = os.path.realpath(tempfile.mkdtemp(prefix="cuvette-test-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        return folder

    def run_ok(self, code, **options):
        outcome = self.session.run(code, **options)
        self.assertEqual(outcome.done.get("status"), "ok", outcome)
        return outcome

    def assert_works(self, session=None):
        """The session answers the next call with that call's own answer."""
        session = session or self.session
        self.assertEqual(session.value("40 + %d" % session.count), 40 + session.count - 1)

    def assert_died(self, outcome, exit=None, signal=None, cause=None):
        self.assertIn("death", outcome.done, outcome)
        death = outcome.done["death"]
        self.assertEqual((death["exit"], death["signal"], outcome.done["cause"]), (exit, signal, cause))

    def assert_no_driver_frames(self, outcome):
        self.assertIsNotNone(outcome.error, outcome)
        self.assertNotIn("cuvette_driver", outcome.traceback)


def is_running(pid):
    """False for a process that is gone or waits to be reaped."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def commands():
    """The command lines of all processes that run."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % name, "rb") as file:
                found.append(file.read().replace(b"\0", b" ").decode("utf-8", "replace").strip())
        except OSError:
            pass
    return found


def start_time(pid):
    with open("/proc/%d/stat" % pid, "rb") as file:
        return file.read().rpartition(b")")[2].split()[19].decode()


def kill(pid, number=signal.SIGKILL):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
