"""How a session is confined: each step for real, in processes of their own, where this machine lets users have namespaces."""

import errno
import os
import resource
import signal
import socket
import sys
import time
import unittest
from unittest import mock

from children import NOBODY, become_nobody, errno_of, in_child, status_of
from harness import DRIVER, PATIENCE, SessionTest, is_running

sys.path.insert(0, os.path.dirname(DRIVER))
from cuvette_driver import confinement, namespaces  # noqa: E402
from cuvette_driver.confinement import Confinement, Confiner  # noqa: E402

MIB = 1 << 20
LIMITS = {"memory": 512 * MIB, "processes": 64, "cpus": 1, "openFiles": 77, "disk": 10 * MIB, "fileCount": 50}
CAPABILITIES = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")


def unshared(others=0):
    """As a zygote has it: no longer root, and in a user namespace of its own."""
    become_nobody()
    confinement.set_dumpable(True)
    namespaces.unshare_user(confinement.CODE_USER, others)


def can_unshare():
    def tried():
        unshared(namespaces.CLONE_NEWNS | namespaces.CLONE_NEWNET)
        namespaces.keep_mounts_private()
        return True

    try:
        return sys.platform == "linux" and in_child(tried)
    except AssertionError:
        return False


def can_mount_proc():
    def tried():
        unshared(namespaces.CLONE_NEWNS)
        namespaces.keep_mounts_private()
        return Confinement.give_birth(policy(), None).pid > 1

    try:
        return can_unshare() and in_child(tried)
    except AssertionError:
        return False


def policy(**different):
    return {"network": "none", "proxy": None, "limits": LIMITS, "cgroup": None, "kept": [], "covers": [], **different}


def as_worker(life, function):
    """What the function says in a process of the session that has given up its rights."""

    def renounced():
        life.renounce_as_interpreter(open_descriptors())
        return function()

    return in_child(renounced)


def open_descriptors():
    return set(map(int, os.listdir("/proc/self/fd")))


@unittest.skipUnless(can_unshare(), "this machine lets nobody have namespaces")
class Steps(unittest.TestCase):
    def in_namespace(self, function, others=0):
        def ready():
            unshared(others)
            return function()

        return in_child(ready)

    def renounced(self, function, limits=None):
        def ready():
            confinement.renounce(limits or {})
            return function()

        return self.in_namespace(ready)

    def test_user_namespace_knows_one_user(self):
        def seen():
            with open("/proc/self/uid_map") as users, open("/proc/self/gid_map") as groups, open("/proc/self/setgroups") as setting:
                return [os.getuid(), os.getgid(), users.read().split(), groups.read().split(), setting.read().strip()]

        outside = NOBODY if os.geteuid() == 0 else os.geteuid()
        group = NOBODY if os.geteuid() == 0 else os.getegid()
        expected = [1000, 1000, ["1000", str(outside), "1"], ["1000", str(group), "1"], "deny"]
        self.assertEqual(self.in_namespace(seen), expected)

    def test_no_right_is_left(self):
        status = self.renounced(status_of)
        self.assertEqual({name: int(status[name], 16) for name in CAPABILITIES}, dict.fromkeys(CAPABILITIES, 0))
        self.assertEqual(status["NoNewPrivs"], "1")
        self.assertEqual(status["Uid"].split(), ["1000"] * 4)

    def test_calls_are_filtered(self):
        self.assertEqual(self.renounced(status_of)["Seccomp"], "2")

    def test_no_namespace_can_be_made(self):
        def tried():
            flags = (namespaces.CLONE_NEWUSER, namespaces.CLONE_NEWNS, namespaces.CLONE_NEWPID, namespaces.CLONE_NEWNET)
            with open("/proc/sys/user/max_user_namespaces") as file:
                return [errno_of(namespaces.unshare, flag) for flag in flags] + [int(file.read())]

        self.assertEqual(self.renounced(tried), [errno.EPERM] * 4 + [0])

    def test_no_namespace_can_be_made_even_without_the_filter(self):
        def tried():
            with mock.patch.object(confinement.seccomp, "install"):
                confinement.renounce({})
            return errno_of(namespaces.unshare, namespaces.CLONE_NEWUSER)

        self.assertIn(self.in_namespace(tried), (errno.ENOSPC, errno.EPERM))

    def test_limits_are_as_given_and_for_good(self):
        given = {resource.RLIMIT_NOFILE: 55, resource.RLIMIT_FSIZE: 3 * MIB, resource.RLIMIT_CPU: 0, resource.RLIMIT_DATA: 900 * MIB}
        before = resource.getrlimit(resource.RLIMIT_CPU)

        def found():
            kinds = (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_DATA, resource.RLIMIT_CORE, resource.RLIMIT_CPU)
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, (55, 56))
                raised = True
            except (ValueError, OSError):
                raised = False
            return [list(resource.getrlimit(kind)) for kind in kinds] + [raised]

        expected = [[55, 55], [3 * MIB, 3 * MIB], [900 * MIB, 900 * MIB], [0, 0], list(before), False]
        self.assertEqual(self.renounced(found, given), expected)

    def test_limits_that_are_lower_already_stay(self):
        kinds = {
            resource.RLIMIT_NOFILE: 40,
            resource.RLIMIT_MEMLOCK: 1 << 16,
            resource.RLIMIT_SIGPENDING: 500,
            resource.RLIMIT_MSGQUEUE: 1 << 12,
            resource.RLIMIT_FSIZE: MIB,
            resource.RLIMIT_NPROC: 5000,
        }

        def found():
            for kind, value in kinds.items():
                resource.setrlimit(kind, (value, value))
            unshared()
            confinement.renounce({resource.RLIMIT_NOFILE: 4096, resource.RLIMIT_FSIZE: 10 * MIB, resource.RLIMIT_NPROC: 6000})
            return [resource.getrlimit(kind)[1] for kind in kinds]

        self.assertEqual(in_child(found), list(kinds.values()))

    def test_what_the_kernel_counts_by_user_is_bounded(self):
        def found():
            kinds = (resource.RLIMIT_SIGPENDING, resource.RLIMIT_MSGQUEUE, resource.RLIMIT_MEMLOCK)
            names = ("max_inotify_instances", "max_inotify_watches")
            texts = []
            for name in names:
                with open("/proc/sys/user/" + name) as file:
                    texts.append(int(file.read()))
            return [resource.getrlimit(kind)[1] < 1 << 30 for kind in kinds] + [number < 10_000 for number in texts]

        self.assertEqual(self.renounced(found), [True] * 5)

    def test_is_the_first_to_go_when_memory_runs_out(self):
        def score():
            with open("/proc/self/oom_score_adj") as file:
                return int(file.read())

        self.assertEqual(self.renounced(score), 1000)

    def test_program_can_look_at_itself(self):
        """Its own files in /proc are its own, which debuggers and sanitizers count on."""

        def seen():
            return [os.stat("/proc/self/%s" % name).st_uid for name in ("environ", "maps", "fd")] + [len(os.listdir("/proc/self/fd")) > 2]

        self.assertEqual(self.renounced(seen), [1000, 1000, 1000, True])

    def test_cover(self):
        def covered():
            namespaces.keep_mounts_private()
            before = len(os.listdir("/usr"))
            confinement.cover("/usr")
            write = errno_of(os.mkdir, "/usr/new")
            return [before > 0, os.listdir("/usr"), write]

        self.assertEqual(self.in_namespace(covered, namespaces.CLONE_NEWNS), [True, [], errno.EROFS])
        self.assertGreater(len(os.listdir("/usr")), 0)

    def test_loopback_comes_up_and_is_all_there_is(self):
        def reached():
            confinement.bring_loopback_up()
            with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as client:
                client.connect(listener.getsockname())
                client.sendall(b"x")
                accepted, _ = listener.accept()
                with accepted:
                    return [accepted.recv(1).decode(), [name for _, name in socket.if_nameindex() if name in ("lo", "eth0")]]

        self.assertEqual(self.in_namespace(reached, namespaces.CLONE_NEWNET), ["x", ["lo"]])

    def test_failure_is_told_with_what_failed(self):
        with self.assertRaisesRegex(OSError, "mount /no/such/folder"):
            namespaces.bind("/", "/no/such/folder")


class Parts(SessionTest):
    """What needs no namespaces. Of the harness it needs the folders only."""

    def setUp(self):
        self.folder = self.new_folder()

    def test_process_that_is_not_dumpable_is_closed_to_its_own_user(self):
        def looked(is_dumpable):
            become_nobody()
            confinement.set_dumpable(is_dumpable)
            above = os.getpid()
            return in_child(lambda: [errno_of(os.open, "/proc/%d/%s" % (above, name), os.O_RDONLY) for name in ("environ", "mem")])

        self.assertEqual(in_child(looked, True)[0], 0)
        self.assertEqual(in_child(looked, False), [errno.EACCES, errno.EACCES])

    def test_processors(self):
        def kept(count, which):
            confinement.keep_to_processors(count, which)
            return sorted(os.sched_getaffinity(0))

        own = sorted(os.sched_getaffinity(0))
        self.assertEqual(in_child(kept, 1, 0), own[:1])
        self.assertEqual(in_child(kept, 1, 1), [own[1 % len(own)]])
        self.assertEqual(in_child(kept, len(own), 5), own)
        self.assertEqual(in_child(kept, len(own) + 50, 5), own)

    def test_descriptors(self):
        def closed():
            before = open_descriptors()
            kept, dropped = os.open("/", os.O_RDONLY), os.open("/", os.O_RDONLY)
            confinement.close_all_but({kept, *before})
            return [errno_of(os.fstat, fd) for fd in (0, 1, 2, kept, dropped)]

        self.assertEqual(in_child(closed), [0, 0, 0, 0, errno.EBADF])

    def test_own_data(self):
        self.assertGreater(confinement.own_data(), MIB)

    def test_policy_is_read_by_whom_it_is_for(self):
        path = os.path.join(self.folder, "policy.json")
        with open(path, "w") as file:
            file.write('{"network": "none"}')
        os.mkdir(os.path.join(self.folder, "run"))
        if os.geteuid() == 0:
            os.chown(os.path.join(self.folder, "run"), NOBODY, NOBODY)
            os.chmod(self.folder, 0o755)

        def read():
            with mock.patch.object(confinement, "HIDDEN", self.folder):
                given = confinement.read_policy(path)
            return [given, os.getresuid(), os.getresgid(), os.getgroups() == [] or os.geteuid() != NOBODY, os.stat("/proc/self/environ").st_uid]

        user, group = (NOBODY, NOBODY) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
        self.assertEqual(in_child(read), [{"network": "none"}, [user] * 3, [group] * 3, True, user])

    def test_resource_limits(self):
        life = Confinement(policy())
        self.addCleanup(os.close, life.processes)
        expected = {resource.RLIMIT_NOFILE: 77, resource.RLIMIT_FSIZE: 10 * MIB, resource.RLIMIT_NPROC: 64}
        self.assertEqual(life.resource_limits(), expected)
        with mock.patch.object(life.group, "count", lambda kind: 0):
            self.assertNotIn(resource.RLIMIT_NPROC, life.resource_limits())


@unittest.skipUnless(can_mount_proc(), "this machine lets nobody have a /proc of their own")
class Whole(SessionTest):
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
                life = confiner.birth()
                life.settle(self.mounts())
                return function(life)

        return in_child(confined)

    def in_worker(self, function, **different):
        return self.in_session(lambda life: as_worker(life, function), **different)

    def test_keeper_is_the_first_process_of_its_own(self):
        def seen(life):
            pids = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
            return [os.getpid(), pids, life.pid > 1, socket.gethostname()]

        before = socket.gethostname()
        self.assertEqual(self.in_session(seen), [1, [1], True, "cuvette"])
        self.assertEqual(socket.gethostname(), before)

    def test_worker_has_no_rights_and_sees_its_session_alone(self):
        def seen():
            status = status_of()
            rights = [int(status[name], 16) for name in CAPABILITIES]
            pids = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
            return [rights, status["NoNewPrivs"], status["Seccomp"], os.getuid(), pids[0], len(pids)]

        self.assertEqual(self.in_worker(seen), [[0] * 5, "1", "2", 1000, 1, 2])

    def test_folders_are_where_code_looks_and_nowhere_else(self):
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

    def test_what_a_tool_has_below_such_a_folder_is_still_there(self):
        kept = self.path("seen", "home", "tool")
        os.mkdir(kept)
        os.mkdir(self.path("hidden", "home", "tool"))
        with open(os.path.join(kept, "program"), "w"):
            pass
        if os.geteuid() == 0:
            os.chown(self.path("hidden", "home", "tool"), NOBODY, NOBODY)
        self.assertEqual(self.in_worker(lambda: os.listdir(kept), kept=[kept]), ["program"])

    def test_keeper_cannot_be_ended_or_looked_into_from_inside(self):
        def attack():
            for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP, signal.SIGUSR1):
                errno_of(os.kill, 1, number)
            paths = ("environ", "mem", "maps")
            return [errno_of(os.open, "/proc/1/" + name, os.O_RDONLY) for name in paths] + [errno_of(os.listdir, "/proc/1/fd"), errno_of(os.readlink, "/proc/1/root")]

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

    def test_shared_memory_is_its_own_and_bounded(self):
        def filled():
            about = os.statvfs("/dev/shm")
            return [os.listdir("/dev/shm"), about.f_blocks * about.f_frsize, about.f_files]

        self.assertEqual(self.in_worker(filled), [[], LIMITS["memory"] // 2, 10_000])

    def test_terminals_are_its_own(self):
        if not os.path.exists("/dev/ptmx"):
            self.skipTest("there are no terminals")
        self.assertEqual(self.in_worker(lambda: os.listdir("/dev/pts")), ["ptmx"])

    def test_network_is_its_own_loopback(self):
        def reached():
            with socket.create_server(("127.0.0.1", 0)) as listener:
                with socket.socket() as client:
                    client.connect(listener.getsockname())
            with socket.socket() as outside:
                outside.settimeout(5)
                return errno_of(outside.connect, ("192.0.2.1", 80))

        self.assertEqual(self.in_worker(reached), errno.ENETUNREACH)

    def test_network_that_is_allowed_is_the_machines(self):
        names = sorted(name for _, name in socket.if_nameindex())
        self.assertEqual(self.in_worker(lambda: sorted(name for _, name in socket.if_nameindex()), network="allow"), names)

    def test_listener_of_the_machine_is_not_reached(self):
        with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_UNIX) as abstract:
            name = "\0cuvette-test-%d" % os.getpid()
            abstract.bind(name)
            abstract.listen(1)
            address = listener.getsockname()

            def tried():
                with socket.socket() as client, socket.socket(socket.AF_UNIX) as local:
                    return [errno_of(client.connect, address), errno_of(local.connect, name)]

            self.assertEqual(self.in_worker(tried), [errno.ECONNREFUSED] * 2)

    def test_limits(self):
        def found():
            kinds = (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC, resource.RLIMIT_CORE)
            return [resource.getrlimit(kind)[1] for kind in kinds] + [resource.getrlimit(resource.RLIMIT_DATA)[1] > LIMITS["memory"], len(os.sched_getaffinity(0))]

        self.assertEqual(self.in_worker(found), [77, 10 * MIB, 64, 0, True, 1])

    def test_no_limits(self):
        none = dict.fromkeys(LIMITS, 0)
        own = [resource.getrlimit(kind)[1] for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_DATA)]
        kinds = (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_DATA)
        self.assertEqual(self.in_worker(lambda: [resource.getrlimit(kind)[1] for kind in kinds], limits=none), own)

    def test_files_of_the_machine_are_covered(self):
        with open(self.path("kept", "meminfo"), "w") as file:
            file.write("MemTotal: 5 kB\n")
        os.chmod(self.path("kept", "meminfo"), 0o644)

        def read():
            with open("/proc/meminfo") as file:
                return file.read()

        covers = [[self.path("kept", "meminfo"), "/proc/meminfo"]]
        self.assertEqual(self.in_worker(read, covers=covers), "MemTotal: 5 kB\n")

    def test_disk_is_watched_from_outside_its_mounts(self):
        def grown(life):
            life.guard.begin()
            before = life.guard.check()
            for number in range(60):
                with open(self.path("seen", "work", str(number)), "w"):
                    pass
            deadline = time.monotonic() + 10
            while life.guard.check() is None and time.monotonic() < deadline:
                time.sleep(0.05)
            return [before, life.guard.check(), life.guard.hits(went_well=False)]

        self.assertEqual(self.in_session(grown), [None, "disk-quota", ["disk-quota"]])

    def test_program_sees_its_own_folder_alone(self):
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

    def test_failure_of_a_birth_is_told(self):
        with self.assertRaisesRegex(AssertionError, "mount /no/such/place"):
            self.in_session(lambda life: None, covers=[["/no/such/file", "/no/such/place"]])


if __name__ == "__main__":
    unittest.main()
