"""The keeper and its servers: replay after a crash, replacement, and every way in which a session ends."""

import os
import signal
import subprocess
import sys
import time
import unittest

from harness import PatientTest, SessionTest, Zygote, is_running, kill, start_time


class Servers(SessionTest):
    def receive_all(self, count):
        return [self.session.receive(ack=False) for _ in range(count)]

    def test_server_that_comes_back_gets_what_was_not_acknowledged(self):
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

    def test_call_that_ends_while_no_server_is_there(self):
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

    def test_time_limit_holds_without_a_server(self):
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

    def test_server_that_talks_nonsense_is_dropped(self):
        for nonsense in (b"nonsense\n", b"[1, 2]\n", b'{"op": "execute"}\n', b'{"op": "ack"}\n', b'{"op": "no such thing"}\n'):
            self.session.connection.socket.sendall(nonsense)
            self.session.connect()
            self.assert_works()

    def test_large_request_in_pieces(self):
        self.assertEqual(self.session.value("len('%s')" % ("x" * 3_000_000)), 3_000_000)

    def test_flow_stops_until_it_is_acknowledged(self):
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


class Ends(SessionTest):
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

    def test_stop_ends_the_whole_tree(self):
        children = self.start_children()
        self.session.send("stop")
        while self.session.connection.receive() is not None:
            pass
        self.assert_gone(*children)

    def test_termination_of_the_keeper_ends_the_whole_tree(self):
        children = self.start_children()
        kill(self.session.pid, signal.SIGTERM)
        self.assert_gone(*children)

    def test_killed_keeper_takes_the_worker_along(self):
        kill(self.session.pid)
        self.assert_soon(lambda: not is_running(self.worker), "the worker's end")

    def test_killed_keeper_takes_a_later_worker_along(self):
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

    def test_keeper_lingers_for_a_call_that_runs(self):
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

    def test_owner_that_nobody_has_reaped_is_dead_too(self):
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


class Zygotes(PatientTest):
    def setUp(self):
        self.zygote = Zygote()
        self.addCleanup(self.zygote.close)

    def test_sessions_outlive_a_killed_zygote(self):
        session = self.zygote.session()
        self.addCleanup(session.stop)
        session.run("x = 5")
        self.zygote.process.kill()
        self.zygote.process.wait()
        self.assertEqual(session.value("x"), 5)
        session.run("import os\nos._exit(1)")
        self.assertEqual(session.value("6"), 6)

    def test_ended_zygote_leaves_no_spare_behind(self):
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

    def test_ends_when_its_socket_is_removed(self):
        os.unlink(self.zygote.path)
        self.zygote.process.wait(15)

    def test_failed_spawn_is_told_and_harms_nothing(self):
        answer = self.zygote.ask("spawn", socket="/proc/no/such/place/sock", cwd="/", env={}, linger=1, startup=None)
        self.assertIn("error", answer)
        session = self.zygote.session()
        self.addCleanup(session.stop)
        self.assertEqual(session.value("1"), 1)

    def test_many_sessions_at_once(self):
        sessions = [self.zygote.session() for _ in range(10)]
        for session in sessions:
            self.addCleanup(session.stop)
        for number, session in enumerate(sessions):
            session.start("x = %d\nx" % number)
        self.assertEqual([session.finish().result for session in sessions], [str(number) for number in range(10)])

    def test_broken_preload_is_left_out(self):
        zygote = Zygote("no_such_module_at_all", "json")
        self.addCleanup(zygote.close)
        session = zygote.session()
        self.addCleanup(session.stop)
        self.assertEqual(session.value("import sys\n'json' in sys.modules"), True)
        self.assert_soon(lambda: "no_such_module_at_all" in zygote.log_text(), "the log names what was left out")

    def children(self):
        with open("/proc/%d/task/%d/children" % (self.zygote.process.pid, self.zygote.process.pid)) as file:
            return list(map(int, file.read().split()))


if __name__ == "__main__":
    unittest.main()
