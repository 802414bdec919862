"""Tests keepers with their servers: replay after a crash, replacement, and every way in which a session ends."""

import os
import signal
import subprocess
import sys
import time
import unittest

from harness import SessionTest, is_running, kill, start_time


class Servers(SessionTest):
    def receive_all(self, count):
        return [self.session.receive(ack=False) for _ in range(count)]

    def test_unacknowledged_events_are_replayed_to_the_next_server(self):
        self.session.start("import time\nfor n in range(10):\n    print(n)\n    display(n)\n    time.sleep(0.02)")
        seen = self.receive_all(5)
        self.session.send("ack", seq=seen[2]["seq"])
        self.session.connection.close()
        hello = self.session.connect()
        self.assertEqual(hello["running"], "1")
        outcome = self.session.finish(ack=False)
        self.assertEqual([event["seq"] for event in outcome.events], list(range(seen[2]["seq"] + 1, outcome.done["seq"] + 1)))
        self.assertEqual(outcome.events[:2], seen[3:5])
        displays = [event for event in seen[:3] if event["ev"] == "display"] + outcome.of("display")
        self.assertEqual([event["data"]["text/plain"] for event in displays], [str(n) for n in range(10)])

    def test_call_that_ends_without_a_server_is_reported_to_the_next_one(self):
        self.session.start("import time\nprint('begun')\ntime.sleep(0.3)\n'done without you'")
        self.session.read_until("begun\n")
        self.session.connection.close()
        time.sleep(0.6)
        self.assertIsNone(self.session.connect()["running"])
        outcome = self.session.finish()
        self.assertEqual((outcome.stdout, outcome.result), ("", "'done without you'"))
        self.assert_works()

    def test_acknowledged_events_are_not_replayed(self):
        self.run_ok("print('old')")
        self.session.connection.close()
        self.session.connect()
        self.assertEqual([event["ev"] for event in self.run_ok("1").events], ["result", "done"])

    def test_time_limit_is_enforced_without_a_server(self):
        self.session.start("import time\ntime.sleep(60)", timeout=0.2)
        self.session.connection.close()
        time.sleep(0.5)
        self.session.connect()
        self.assertEqual(self.session.finish().done["stopped"], {"why": "timeout", "rung": "interrupted"})

    def test_second_server_replaces_the_first(self):
        first = self.session.connection
        self.session.connect()
        self.assertIsNone(first.receive())
        self.assert_works()

    def test_server_that_sends_malformed_messages_is_dropped(self):
        for nonsense in (b"nonsense\n", b"[1, 2]\n", b'{"op": "execute"}\n', b'{"op": "ack"}\n', b'{"op": "no such thing"}\n'):
            self.session.connection.socket.sendall(nonsense)
            self.session.connect()
            self.assert_works()

    def test_large_request_that_comes_in_pieces_is_executed(self):
        self.assertEqual(self.session.value("len('%s')" % ("x" * 3_000_000)), 3_000_000)

    def test_backpressure_stops_events_until_they_are_acknowledged(self):
        self.session.start("for n in range(60): print('x' * 1_000_000)\nprint('end')")
        size, last = 0, None
        while True:
            try:
                event = self.session.receive(patience=1, ack=False)
            except AssertionError:
                break
            size += len(event.get("text", ""))
            last = event
        self.assertLess(size, 30_000_000)
        self.assertNotEqual(last["ev"], "done")
        self.session.send("ack", seq=last["seq"])
        outcome = self.session.finish()
        self.assertEqual(size + len(outcome.stdout), 60_000_060 + 4)


class EndOfKeepers(SessionTest):
    def setUp(self):
        super().setUp()
        self.worker = self.session.hello["worker"]

    def assert_gone(self, *pids):
        self.assert_soon(lambda: not any(map(is_running, (self.session.pid, self.worker, *pids))), "the end of every process")
        self.assert_soon(lambda: not os.path.exists(os.path.dirname(self.session.path)), "the end of its folder")

    def start_children(self):
        self.session.start(
            "import subprocess, time\na = subprocess.Popen(['sleep', '60'])\nb = subprocess.Popen(['setsid', 'sleep', '60'])\nprint(a.pid, b.pid)\ntime.sleep(60)"
        )
        return tuple(map(int, self.session.read_until("\n").split()))

    def test_stop_ends_the_whole_process_tree(self):
        children = self.start_children()
        self.session.send("stop")
        while self.session.connection.receive() is not None:
            pass
        self.assert_gone(*children)

    def test_sigterm_to_the_keeper_ends_the_whole_process_tree(self):
        children = self.start_children()
        kill(self.session.pid, signal.SIGTERM)
        self.assert_gone(*children)

    def test_worker_ends_when_its_keeper_is_killed(self):
        kill(self.session.pid)
        self.assert_soon(lambda: not is_running(self.worker), "the worker's end")

    def test_worker_after_a_reset_ends_when_its_keeper_is_killed(self):
        self.session.ask("reset")
        worker = self.session.connect()["worker"]
        kill(self.session.pid)
        self.assert_soon(lambda: not is_running(worker), "the worker's end")

    def test_keeper_ends_after_its_linger(self):
        self.session.send("leave", linger=0.5, owner=None)
        self.session.connection.close()
        time.sleep(0.3)
        self.assertTrue(is_running(self.session.pid))
        self.assert_gone()

    def test_keeper_without_a_server_outlives_its_linger_while_a_call_runs(self):
        self.session.start("import time\ntime.sleep(3)\n'still done'")
        self.session.send("leave", linger=0.1, owner=None)
        self.session.connection.close()
        time.sleep(2.5)
        self.assertEqual(self.session.connect()["running"], "1")
        self.assertEqual(self.session.finish().result, "'still done'")

    def owner(self):
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, [process.pid, start_time(process.pid)]

    def test_keeper_ends_when_its_owner_is_dead(self):
        process, owner = self.owner()
        self.session.send("leave", linger=60, owner=owner)
        self.session.connection.close()
        time.sleep(0.3)
        process.kill()
        process.wait()
        self.assert_gone()

    def test_keeper_ends_when_its_owner_is_a_zombie(self):
        process, owner = self.owner()
        self.session.send("leave", linger=60, owner=owner)
        self.session.connection.close()
        os.kill(process.pid, signal.SIGKILL)
        self.assert_gone()

    def test_keeper_stays_while_its_owner_lives(self):
        _, owner = self.owner()
        self.session.send("leave", linger=60, owner=owner)
        self.session.connection.close()
        time.sleep(2.5)
        self.session.connect()
        self.assert_works()

    def test_keeper_ends_when_its_socket_is_removed(self):
        self.session.send("leave", linger=60, owner=None)
        self.session.connection.close()
        os.unlink(self.session.path)
        self.assert_gone()


if __name__ == "__main__":
    unittest.main()
