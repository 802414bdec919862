"""Tests programs with a mounted workspace, and keepers of programs that outlive their server."""

import os
import random
import subprocess
import sys
import time
import unittest

from harness import DRIVER, Session, commands, is_running, start_time
from program_helpers import ProgramTest


def can_mount_workspace():
    if sys.platform != "linux":
        return False
    command = [sys.executable, os.path.join(DRIVER, "workspace_mount.py")]
    silent = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.run(command, check=False, **silent).returncode == 0


@unittest.skipUnless(can_mount_workspace(), "workspaces cannot be mounted at /mnt/data on this machine")
class MountedWorkspace(ProgramTest):
    def run_placed(self, script, **options):
        program = self.new_folder()
        with open(os.path.join(program, "main"), "w") as file:
            file.write("the program's own\n")
        return self.run_program(script, place=True, folder=program, **options)

    def test_program_finds_the_workspace_and_its_own_folder_mounted(self):
        with open(os.path.join(self.folder, "in"), "w") as file:
            file.write("given\n")
        outcome = self.run_placed("pwd; cat in /mnt/data/in /mnt/program/main; ls /mnt; echo written > /mnt/data/out")
        self.assertEqual(outcome.stdout, "/mnt/data\ngiven\ngiven\nthe program's own\ndata\nprogram\n")
        with open(os.path.join(self.folder, "out")) as file:
            self.assertEqual(file.read(), "written\n")

    def test_mounted_workspace_is_seen_by_the_program_alone(self):
        def mounted():
            with open("/proc/self/mountinfo") as file:
                return file.read()

        before = mounted()
        id_ = self.start("echo begun; sleep 0.5", place=True, folder=self.new_folder())
        self.session.read_until("begun\n")
        self.assertEqual(mounted(), before)
        self.finish(id_)
        other = self.run_program("ls /mnt/data 2>/dev/null; pwd")
        self.assertTrue(other.stdout.endswith(self.folder + "\n"), other)
        self.assertEqual(mounted(), before)

    def test_two_programs_at_once_each_have_their_own_workspace(self):
        other, folder = self.new_session(), self.new_folder()
        ids = [
            self.start("echo one > mark; sleep 0.3; cat /mnt/data/mark", place=True),
            self.start("echo two > mark; sleep 0.3; cat /mnt/data/mark", place=True, cwd=folder, session=other),
        ]
        self.assertEqual(self.finish(ids[0]).stdout, "one\n")
        self.assertEqual(self.finish(ids[1], other).stdout, "two\n")

    def test_program_without_a_folder_of_its_own_has_only_the_workspace(self):
        self.assertEqual(self.run_program("pwd; ls /mnt", place=True).stdout, "/mnt/data\ndata\n")

    def test_processes_left_by_a_program_with_a_mounted_workspace_are_ended(self):
        nap = str(random.randrange(10**6, 10**8))
        outcome = self.run_placed("setsid sleep %s & sleep 0.2" % nap)
        self.assertIn("sleep " + nap, outcome.done["ended"])
        self.assertNotIn("sleep " + nap, commands())


class ProgramKeepers(ProgramTest):
    def test_greeting_says_which_program_runs(self):
        self.assertIsNone(self.session.hello["running"])
        id = self.start("echo begun; sleep 0.5")
        self.session.read_until("begun\n")
        self.assertEqual(self.session.connect()["running"], id)
        self.assertEqual(self.finish(id).done["code"], 0)

    def test_unacknowledged_output_of_a_program_is_replayed_to_the_next_server(self):
        id = self.start("echo first; sleep 0.3; echo second; exit 6")
        event = self.session.receive(ack=False)
        self.assertEqual((event["ev"], event["text"]), ("stream", "first\n"))
        self.session.connection.close()
        time.sleep(0.6)
        self.session.connect()
        outcome = self.finish(id)
        self.assertEqual((outcome.stdout, outcome.done["code"]), ("first\nsecond\n", 6))
        self.assert_works()

    def test_many_programs_one_after_the_other_leak_no_descriptors(self):
        for n in range(30):
            self.assertEqual(self.run_program("echo %d" % n).stdout, "%d\n" % n)
        below = os.listdir("/proc/%d/fd" % self.session.pid)
        self.assertLess(len(below), 30, "descriptors stay open")

    def test_two_keepers_run_programs_at_once(self):
        other = self.new_session()
        ids = [self.start("sleep 0.3; echo one"), self.start("sleep 0.3; echo two", session=other)]
        self.assertEqual(self.finish(ids[1], other).stdout, "two\n")
        self.assertEqual(self.finish(ids[0]).stdout, "one\n")

    def test_program_keeper_ends_after_its_owner(self):
        owner = subprocess.Popen(["sleep", "60"])
        self.addCleanup(owner.kill)
        path = os.path.join(self.new_folder(), "k", "sock")
        request = {"socket": path, "cwd": "/", "env": {}, "linger": 600, "startup": None, "owner": [owner.pid, start_time(owner.pid)]}
        session = Session(path, self.zygote.ask("spawn", **request)["pid"])
        self.addCleanup(session.stop)
        self.assert_works(session)
        session.connection.close()
        time.sleep(0.3)
        self.assertTrue(is_running(session.pid))
        owner.kill()
        owner.wait()
        self.assert_soon(lambda: not is_running(session.pid), "the end of the keeper", patience=10)
        self.assertFalse(os.path.exists(path))


if __name__ == "__main__":
    unittest.main()
