"""Tests a whole confined session, from the zygote's namespace to a worker without privileges, where this machine lets users have namespaces."""

import errno
import os
import resource
import signal
import socket
import time
import unittest
from unittest import mock

from child_process import NOBODY, become_nobody, errno_of, in_child, status_of
from confinement_helpers import CAPABILITIES, LIMITS, MIB, as_worker, can_mount_proc, policy
from harness import PATIENCE, SessionTest, is_running

from cuvette_driver import confinement
from cuvette_driver.confinement import Confiner


@unittest.skipUnless(can_mount_proc(), "this machine lets nobody have a /proc of their own")
class ConfinedSession(SessionTest):
    """A whole session, from the zygote's namespace to a worker that has no rights. Of the harness it needs the folders only."""

    def setUp(self):
        self.folder = self.new_folder()
        for name in ("hidden/work", "hidden/home", "seen/work", "seen/home", "kept/tool"):
            os.makedirs(os.path.join(self.folder, name))
        with open(self.path("hidden", "work", "file"), "w") as file:
            file.write("text")
        if os.geteuid() == 0:
            for above, folders, files in os.walk(self.folder):
                for name in (".", *folders, *files):
                    os.chown(os.path.join(above, name), NOBODY, NOBODY)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def mounts(self):
        return [[self.path("hidden", name), self.path("seen", name)] for name in ("work", "home")]

    def in_session(self, function, **different):
        """What the function says in the session's keeper."""

        def confined():
            become_nobody()
            confinement.set_dumpable(True)
            with mock.patch.object(confinement, "HIDDEN", self.path("hidden")):
                confiner = Confiner(policy(**different))
                life = confiner.isolate()
                life.mount_folders(self.mounts())
                return function(life)

        return in_child(confined)

    def in_worker(self, function, **different):
        return self.in_session(lambda life: as_worker(life, function), **different)

    def test_keeper_is_the_init_process_of_its_own_pid_namespace(self):
        def seen(life):
            pids = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
            return [os.getpid(), pids, life.pid > 1, socket.gethostname()]

        before = socket.gethostname()
        self.assertEqual(self.in_session(seen), [1, [1], True, "cuvette"])
        self.assertEqual(socket.gethostname(), before)

    def test_worker_has_no_capabilities_and_sees_only_processes_of_its_session(self):
        def seen():
            status = status_of()
            rights = [int(status[name], 16) for name in CAPABILITIES]
            pids = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
            return [rights, status["NoNewPrivs"], status["Seccomp"], os.getuid(), pids[0], len(pids)]

        self.assertEqual(self.in_worker(seen), [[0] * 5, "1", "2", 1000, 1, 2])

    def test_session_folders_are_mounted_for_code_and_their_sources_hidden(self):
        def seen():
            with open(self.path("seen", "work", "file")) as file:
                text = file.read()
            with open(self.path("seen", "work", "new"), "w") as file:
                file.write("made inside")
            return [text, os.listdir(self.path("hidden")), errno_of(os.mkdir, self.path("hidden", "x")), os.listdir(self.path("seen", "home"))]

        self.assertEqual(self.in_worker(seen), ["text", [], errno.EROFS, []])
        with open(self.path("hidden", "work", "new")) as file:
            self.assertEqual(file.read(), "made inside")
        self.assertEqual(os.listdir(self.path("seen", "work")), [])

    def test_tool_folder_below_a_mounted_session_folder_stays_visible(self):
        kept = self.path("seen", "home", "tool")
        os.mkdir(kept)
        os.mkdir(self.path("hidden", "home", "tool"))
        with open(os.path.join(kept, "program"), "w"):
            pass
        if os.geteuid() == 0:
            os.chown(self.path("hidden", "home", "tool"), NOBODY, NOBODY)
        self.assertEqual(self.in_worker(lambda: os.listdir(kept), kept=[kept]), ["program"])

    def test_code_can_neither_kill_nor_trace_its_keeper(self):
        def attack():
            for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP, signal.SIGUSR1):
                errno_of(os.kill, 1, number)
            paths = ("environ", "mem", "maps")
            return [errno_of(os.open, "/proc/1/" + name, os.O_RDONLY) for name in paths] + [
                errno_of(os.listdir, "/proc/1/fd"),
                errno_of(os.readlink, "/proc/1/root"),
            ]

        def attacked(life):
            life.protect_keeper()
            return [as_worker(life, attack), os.getpid()]

        self.assertEqual(self.in_session(attacked), [[errno.EACCES] * 5, 1])

    def test_all_processes_end_with_the_keeper(self):
        """Also one that left its parents and its session behind."""

        def left(life):
            reader, writer = os.pipe()
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    os.write(writer, os.readlink("self", dir_fd=life.processes).encode())
                    os.closerange(3, 1000)
                    time.sleep(3 * PATIENCE)
                os._exit(0)
            return int(os.read(reader, 100))

        pid = self.in_session(left)
        self.assert_soon(lambda: not is_running(pid), "its end")

    def test_shared_memory_is_private_to_the_session_and_bounded(self):
        def filled():
            about = os.statvfs("/dev/shm")
            return [os.listdir("/dev/shm"), about.f_blocks * about.f_frsize, about.f_files]

        self.assertEqual(self.in_worker(filled), [[], LIMITS["memory"] // 2, 10_000])

    def test_pseudo_terminals_are_private_to_the_session(self):
        if not os.path.exists("/dev/ptmx"):
            self.skipTest("there are no terminals")
        self.assertEqual(self.in_worker(lambda: os.listdir("/dev/pts")), ["ptmx"])

    def test_session_without_network_has_only_its_own_loopback(self):
        def reached():
            with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as client:
                client.connect(listener.getsockname())
            with socket.socket() as outside:
                outside.settimeout(5)
                return errno_of(outside.connect, ("192.0.2.1", 80))

        self.assertEqual(self.in_worker(reached), errno.ENETUNREACH)

    def test_session_with_network_allowed_has_the_machines_network(self):
        names = sorted(name for _, name in socket.if_nameindex())
        self.assertEqual(self.in_worker(lambda: sorted(name for _, name in socket.if_nameindex()), network="allow"), names)

    def test_session_cannot_connect_to_a_listener_of_the_machine(self):
        with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_UNIX) as abstract:
            name = "\0cuvette-test-%d" % os.getpid()
            abstract.bind(name)
            abstract.listen(1)
            address = listener.getsockname()

            def tried():
                with socket.socket() as client, socket.socket(socket.AF_UNIX) as local:
                    return [errno_of(client.connect, address), errno_of(local.connect, name)]

            self.assertEqual(self.in_worker(tried), [errno.ECONNREFUSED] * 2)

    def test_worker_has_the_resource_limits_of_the_policy(self):
        def found():
            kinds = (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC, resource.RLIMIT_CORE)
            return [resource.getrlimit(kind)[1] for kind in kinds] + [
                resource.getrlimit(resource.RLIMIT_DATA)[1] > LIMITS["memory"],
                len(os.sched_getaffinity(0)),
            ]

        self.assertEqual(self.in_worker(found), [77, 10 * MIB, 64, 0, True, 1])

    def test_policy_with_zero_limits_sets_none(self):
        none = dict.fromkeys(LIMITS, 0)
        own = [resource.getrlimit(kind)[1] for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_DATA)]
        kinds = (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_DATA)
        self.assertEqual(self.in_worker(lambda: [resource.getrlimit(kind)[1] for kind in kinds], limits=none), own)

    def test_files_that_the_policy_covers_are_replaced(self):
        with open(self.path("kept", "meminfo"), "w") as file:
            file.write("MemTotal: 5 kB\n")
        os.chmod(self.path("kept", "meminfo"), 0o644)

        def read():
            with open("/proc/meminfo") as file:
                return file.read()

        covers = [[self.path("kept", "meminfo"), "/proc/meminfo"]]
        self.assertEqual(self.in_worker(read, covers=covers), "MemTotal: 5 kB\n")

    def test_disk_usage_is_counted_in_the_source_folders_of_the_mounts(self):
        def grown(life):
            life.monitor.begin()
            before = life.monitor.check()
            for number in range(60):
                with open(self.path("seen", "work", str(number)), "w"):
                    pass
            deadline = time.monotonic() + 10
            while life.monitor.check() is None and time.monotonic() < deadline:
                time.sleep(0.05)
            return [before, life.monitor.check(), life.monitor.hits(went_well=False)]

        self.assertEqual(self.in_session(grown), [None, "disk-quota", ["disk-quota"]])

    def test_program_sees_its_own_folder_and_no_other_programs(self):
        programs, program = self.path("seen", "programs"), self.path("seen", "program")
        for folder in (programs, program, os.path.join(programs, "mine"), os.path.join(programs, "other")):
            os.mkdir(folder)
        with open(os.path.join(programs, "mine", "main.c"), "w"):
            pass

        def shown(life):
            with mock.patch.object(confinement, "PROGRAMS", programs), mock.patch.object(confinement, "PROGRAM", program):
                life.show_program("mine")
            return [os.listdir(program), os.listdir(programs)]

        self.assertEqual(self.in_session(shown), [["main.c"], []])

    def test_failure_to_confine_raises_with_its_cause(self):
        with self.assertRaisesRegex(AssertionError, "mount /no/such/place"):
            self.in_session(lambda life: None, covers=[["/no/such/file", "/no/such/place"]])


if __name__ == "__main__":
    unittest.main()
