"""Tests that a peer which sends malformed messages is dropped or ignored, and that the next proper one is served."""

import json
import os
import random
import time
import unittest

from harness import LIMIT, PATIENCE, Connection, SessionTest

SEED = 20261116
OPS = ("execute", "interrupt", "continue", "ack", "variables", "reset", "answer", "leave", "spawn", "dismiss", "", "no such thing")
FIELDS = [
    "id",
    "code",
    "cell",
    "args",
    "timeout",
    "limit",
    "program",
    "reason",
    "seq",
    "installed",
    "paths",
    "hint",
    "owner",
    "socket",
    "cwd",
    "env",
    "startup",
]
PROPER = (
    {"op": "execute", "id": "1", "code": "1", "cell": 1, "timeout": 5, "limit": LIMIT},
    {"op": "execute", "id": "1", "code": "print(1)", "cell": 1, "timeout": None, "limit": 10},
    {"op": "interrupt", "id": "1", "reason": "cancelled"},
    {"op": "ack", "seq": 1},
    {"op": "variables", "id": "v"},
    {"op": "answer", "installed": False, "paths": [], "hint": "x"},
    {"op": "continue"},
)


class Fuzz:
    """Random messages, the same in every run."""

    def __init__(self, seed=SEED):
        self.random = random.Random(seed)

    def value(self, depth=2):
        choose = self.random
        plain = [None, True, False, 0, -1, 1, 0.5, 1e308, -1e308, float("inf"), float("nan"), 10**30, "", "x", "1", "\ud800", "\0", "é" * 50]
        if depth and choose.random() < 0.3:
            if choose.choice(("list", "object")) == "list":
                return [self.value(depth - 1) for _ in range(choose.randrange(3))]
            return {choose.choice(FIELDS): self.value(depth - 1)}
        return choose.choice(plain)

    def message(self):
        """Out of nothing, or of a proper one with some fields changed or gone. None that a proper server would end a session by."""
        choose = self.random
        message = dict(choose.choice(PROPER)) if choose.random() < 0.7 else {"op": choose.choice((*OPS, self.value()))}
        for name in choose.sample(FIELDS, choose.randrange(4)):
            if choose.random() < 0.3:
                message.pop(name, None)
            elif name != "code":
                message[name] = self.value()
        if message.get("op") == "leave":
            message["linger"] = choose.choice((1000, None, "x", [], {}, "5"))
        return message

    def line(self):
        choose = self.random
        data = json.dumps(self.message()).encode()
        kind = choose.randrange(6)
        if kind == 0:
            data = bytearray(data)
            for _ in range(choose.randrange(1, 4)):
                data[choose.randrange(len(data))] = choose.randrange(256)
        elif kind == 1:
            data = data[: choose.randrange(len(data))]
        elif kind == 2:
            data = choose.randbytes(choose.randrange(60))
        # A word that ends the session would be obeyed, and rightly.
        return bytes(data).replace(b"stop", b"stay").replace(b'"linger": 0', b'"linger": 9') + b"\n"


def say_random_lines(test, fuzz, rounds, count):
    """Says some random lines in each round, after which a proper peer must be served."""
    for _ in range(rounds):
        lines = [fuzz.line() for _ in range(count)]
        for line in lines:
            test.say(line)
        test.assert_serves(lines)


class FromServers:
    """What is said to a keeper, of either kind."""

    def say(self, data):
        """As a server of its own, which then goes away. To a fresh session, if an earlier case has ended this one."""
        if not os.path.exists(self.session.path):
            self.session = self.new_session()
        connection = Connection(self.session.path)
        try:
            connection.receive()
            connection.socket.sendall(data)
            self.read_a_little(connection)
        except (BrokenPipeError, ConnectionResetError):
            pass
        finally:
            connection.close()

    def read_a_little(self, connection):
        """Until it is silent, or has hung up."""
        try:
            while connection.receive(patience=0.05) is not None:
                pass
        except (AssertionError, ValueError):
            pass

    def test_keeper_serves_after_random_lines(self):
        say_random_lines(self, Fuzz(), rounds=25, count=4)

    def test_keeper_serves_after_random_lines_that_come_in_pieces(self):
        fuzz = Fuzz(SEED + 1)
        for _ in range(10):
            data = b"".join(fuzz.line() for _ in range(6))
            cut = fuzz.random.randrange(len(data))
            connection = Connection(self.session.path)
            try:
                for part in (data[:cut], data[cut:]):
                    connection.socket.sendall(part)
            except (BrokenPipeError, ConnectionResetError):
                pass
            finally:
                connection.close()
            self.assert_serves(data)

    def test_keeper_serves_after_known_malformed_messages(self):
        execute = {"op": "execute", "id": "x", "code": "print(1)", "cell": 1, "timeout": 5, "limit": 1000}
        # fmt: off
        cases = [
            b"[" * 100_000 + b"\n",
            b'{"op":' + b"[" * 100_000 + b"\n",
            b'{"op":"variables","id":' + b"[" * 500 + b"]" * 500 + b"}\n",
            *(json.dumps({**execute, **different}).encode() + b"\n" for different in (
                {"limit": "x"}, {"limit": None}, {"limit": -5}, {"limit": [1]}, {"limit": float("nan")},
                {"timeout": 3_000_000}, {"timeout": 1e300}, {"timeout": float("inf")}, {"timeout": float("nan")}, {"timeout": -1}, {"timeout": "5"}, {"timeout": []},
                {"code": 5}, {"code": None}, {"code": "'\ud800'"}, {"cell": "x"}, {"args": 5}, {"id": None}, {"id": {}}, {"program": 5},
            )),
            b'{"op":"execute"}\n', b'{"op":"execute","id":"x","limit":5}\n', b'{"op":"reset"}\n', b'{"op":"interrupt"}\n', b'{"op":["stop"]}\n',
            b'{"op":"ack","seq":"x"}\n', b'{"op":"ack","seq":' + b"9" * 5000 + b"}\n", b"\0\n", b"\xff\xfe\n", b"\n", b"null\n",
            b'{"op":"leave","linger":100,"owner":["a","b"]}\n', b'{"op":"leave","linger":100,"owner":5}\n', b'{"op":"leave","linger":100,"owner":[]}\n',
        ]
        # fmt: on
        for case in cases:
            with self.subTest(case[:60]):
                self.say(case)
                self.assert_serves(case[:60])

    def test_linger_that_is_not_a_number_does_not_end_the_session(self):
        sessions = {"x": self.session, None: self.new_session(), (): self.new_session()}
        for linger, self.session in sessions.items():
            self.say(json.dumps({"op": "leave", "linger": linger}).encode() + b"\n")
        # Longer than a keeper waits before it looks whether anybody comes.
        time.sleep(2.5)
        for linger, self.session in sessions.items():
            self.assert_serves(linger)

    def test_keeper_serves_after_a_server_hung_up_in_the_middle_of_a_line(self):
        for data in (b"{", b'{"op":"execute","id":"x","code":"', b"x" * 100_000):
            self.say(data)
            self.assert_serves(data[:40])


class ToInterpreterKeepers(FromServers, SessionTest):
    def assert_serves(self, what):
        """Whatever the last one started is over after a reset, and what follows has its own answer."""
        try:
            self.session.connect()
            self.session.send("leave", linger=30, owner=None)
            self.session.ask("reset")
            self.assert_works()
        except (OSError, TypeError, AssertionError) as error:
            raise AssertionError("no longer served after %r" % (what,)) from error

    def test_huge_timeout_is_accepted(self):
        for timeout in (3_000_000, 1e300):
            outcome = self.run_ok("import time\ntime.sleep(0.1)\n'done'", timeout=timeout)
            self.assertEqual(outcome.result, "'done'")


class ToProgramKeepers(FromServers, SessionTest):
    preload = ("--programs",)

    def assert_serves(self, what):
        try:
            self.session.connect()
            self.session.send("leave", linger=30, owner=None)
            self.session.ask("reset")
            program = {"steps": [{"argv": ["echo", "served"]}], "cwd": "/", "env": {"PATH": os.environ["PATH"]}, "limits": {}}
            id = "proper-%d" % random.randrange(10**9)
            self.session.send("execute", id=id, code="", cell=1, timeout=PATIENCE, limit=1000, program=program)
            printed, event = "", {}
            while (event.get("ev"), event.get("id")) != ("done", id):
                event = self.session.receive()
                printed += event.get("text", "") if event.get("id") == id else ""
            self.assertEqual((printed, event["code"]), ("served\n", 0))
        except (OSError, TypeError, AttributeError, AssertionError) as error:
            raise AssertionError("no longer served after %r" % (what,)) from error

    def test_keeper_serves_after_invalid_programs(self):
        # fmt: off
        programs = (
            None, 5, [], {}, {"steps": []}, {"steps": None}, {"steps": [{}]}, {"steps": ["x"]}, {"steps": [{"argv": []}]}, {"steps": [{"argv": [5]}]},
            {"steps": [{"argv": ["echo"]}], "cwd": 5}, {"steps": [{"argv": ["echo"]}], "cwd": "/", "env": 5}, {"steps": [{"argv": ["echo"]}], "cwd": "/", "env": {}, "stdin": 5},
            {"steps": [{"argv": ["echo"]}], "cwd": "/", "env": {}, "limits": {"no such": 5}}, {"steps": [{"argv": ["echo"], "env": 5}], "cwd": "/", "env": {}, "limits": {"memory": "x"}},
        )
        # fmt: on
        for program in programs:
            with self.subTest(program):
                message = {"op": "execute", "id": "x", "code": "", "cell": 1, "timeout": 5, "limit": 1000, "program": program}
                self.say(json.dumps(message).encode() + b"\n")
                self.assert_serves(program)

    def test_program_that_a_reset_interrupts_prints_nothing_into_the_next_one(self):
        endless = {
            "steps": [{"argv": ["sh", "-c", "trap '' INT; while :; do echo endless; done"]}],
            "cwd": "/",
            "env": {"PATH": os.environ["PATH"]},
            "limits": {},
        }
        self.session.send("execute", id="endless", code="", cell=1, timeout=PATIENCE, limit=10**9, program=endless)
        self.assertEqual(self.session.receive()["id"], "endless")
        self.assert_serves("a program that ignores interrupts")


class ToZygotes(SessionTest):
    """From a server to a zygote's front."""

    def say(self, data):
        connection = Connection(self.zygote.path)
        try:
            connection.socket.sendall(data)
            connection.receive(patience=0.1)
        except (AssertionError, OSError, ValueError):
            pass
        finally:
            connection.close()

    def assert_serves(self, what):
        self.assertIsNone(self.zygote.process.poll(), "the zygote ended after %r" % (what,))
        session = self.new_session()
        self.assertEqual(session.value("42"), 42)
        session.stop()

    def test_zygote_serves_after_random_lines(self):
        say_random_lines(self, Fuzz(SEED + 2), rounds=8, count=5)

    def test_zygote_serves_after_known_malformed_messages(self):
        spawn = {"op": "spawn", "id": 1, "cwd": "/", "env": {}, "linger": 1, "startup": None}
        socket = os.path.join(self.zygote.folder, "nonsense", "sock")
        # fmt: off
        cases = (
            b"[" * 100_000, b"{}", b"[]", b"\xff", b'{"op":"spawn"}', b'{"op":"spawn","id":1,"socket":5}',
            *(json.dumps({**spawn, **different}).encode() for different in (
                {"socket": ""}, {"socket": "x" * 300}, {"socket": "\0"}, {"socket": "/proc/x/sock"}, {"socket": None},
                {"socket": socket, "linger": "x"}, {"socket": socket, "owner": 5}, {"socket": socket, "env": 5}, {"socket": socket, "cwd": 5}, {"socket": socket, "mounts": 5},
            )),
            json.dumps({name: value for name, value in {**spawn, "socket": socket}.items() if name != "id"}).encode(),
        )
        # fmt: on
        for case in cases:
            with self.subTest(case[:60]):
                self.say(case + b"\n")
                self.assert_serves(case[:60])


class ForgedByUserCode(SessionTest):
    """From user code, which can write to the worker's channel, to the keeper: its own execution suffers, nothing else does."""

    CODE = (
        "import os, stat, time\n"
        "for fd in map(int, os.listdir('/proc/self/fd')):\n"
        "    try:\n"
        "        if fd > 2 and stat.S_ISSOCK(os.fstat(fd).st_mode): os.write(fd, %r)\n"
        "    except OSError: pass\n"
        "time.sleep(0.5)"
    )

    def forge(self, data):
        return self.session.run(self.CODE % data)

    def assert_proper(self, done):
        """As the server's own check has it, which drops the whole message otherwise, and waits without end."""
        for name in ("seq", "wall", "cpu", "peak", "code"):
            if name in done:
                self.assertIsInstance(done[name], (int, float), name)
                self.assertNotIsInstance(done[name], bool, name)
                self.assertLess(abs(done[name]), 1e300, name)
        self.assertIn(done.get("status"), ("ok", "error", "exit", None))
        self.assertIsInstance(done["ended"], list)
        self.assertGreater(done["seq"], 0)

    def test_forged_end_of_an_execution_is_reported_with_valid_fields(self):
        # fmt: off
        forgeries = (
            {}, {"id": "other"}, {"seq": -5}, {"seq": 10**15}, {"cpu": {}}, {"cpu": True}, {"cpu": "x"}, {"cpu": float("nan")}, {"cpu": float("inf")}, {"cpu": 10**400}, {"peak": None}, {"peak": float("nan")}, {"status": "great"}, {"status": 5}, {"code": "x"}, {"code": [1]}, {"code": True}, {"code": 10**400},
            {"ename": 5}, {"stopped": 5}, {"cause": 5}, {"ended": 5}, {"wall": "x"}, {"death": 5}, {"hit": ["x"]}, {"steps": 5}, {"signal": 5}, {"oom": "x"}, {"interrupted": "x"}, {"kept": 5}, {"kept": ["x", 1, -1]},
        )
        # fmt: on
        for forged in forgeries:
            with self.subTest(forged):
                outcome = self.forge(json.dumps({"ev": "done", **forged}).encode() + b"\n")
                self.assert_proper(outcome.done)
                self.session.ask("reset")
                self.assert_works()

    def test_keeper_serves_after_random_messages_from_user_code(self):
        fuzz = Fuzz(SEED + 3)
        kinds = ("display", "result", "error", "install", "variables", "done", "ready", "missed", "stream", "hello", "restarted", "reset", 5, None)
        names = ["id", "seq", "data", "metadata", "traceback", "ename", "evalue", "name", "variables", "text", "cpu"]
        for _ in range(20):
            message = {"ev": fuzz.random.choice(kinds), **{name: fuzz.value() for name in fuzz.random.sample(names, 3)}}
            outcome = self.session.start(self.CODE % (json.dumps(message).encode() + b"\n"))
            with self.subTest(message):
                self.session.finish(outcome)
                self.session.ask("reset")
                self.assert_works()

    def test_keeper_serves_after_deeply_nested_or_broken_lines_from_user_code(self):
        for data in (b"[" * 100_000 + b"\n", b'{"ev":' * 100_000 + b"\n", b"\xff\n", b"\0" * 1000 + b"\n", b'{"ev":"done"'):
            with self.subTest(data[:20]):
                self.forge(data)
                self.session.ask("reset")
                self.assert_works()


if __name__ == "__main__":
    unittest.main()
