"""Tests each step of confinement for real, in processes of their own, where this machine lets users have namespaces."""

import errno
import os
import resource
import socket
import unittest
from unittest import mock

from child_process import NOBODY, become_nobody, errno_of, in_child, status_of
from confinement_helpers import CAPABILITIES, MIB, can_unshare, open_descriptors, policy, unshared
from harness import SessionTest

from cuvette_driver import confinement, namespaces
from cuvette_driver.confinement import Confinement


@unittest.skipUnless(can_unshare(), "this machine lets nobody have namespaces")
class ConfinementSteps(unittest.TestCase):
    def in_namespace(self, function, others=0):
        def ready():
            unshared(others)
            return function()

        return in_child(ready)

    def unprivileged(self, function, limits=None):
        def ready():
            confinement.drop_privileges(limits or {})
            return function()

        return self.in_namespace(ready)

    def test_user_namespace_maps_one_user_alone(self):
        def seen():
            with open("/proc/self/uid_map") as users, open("/proc/self/gid_map") as groups, open("/proc/self/setgroups") as setting:
                return [os.getuid(), os.getgid(), users.read().split(), groups.read().split(), setting.read().strip()]

        outside = NOBODY if os.geteuid() == 0 else os.geteuid()
        group = NOBODY if os.geteuid() == 0 else os.getegid()
        expected = [1000, 1000, ["1000", str(outside), "1"], ["1000", str(group), "1"], "deny"]
        self.assertEqual(self.in_namespace(seen), expected)

    def test_no_capability_is_left_after_privileges_are_dropped(self):
        status = self.unprivileged(status_of)
        self.assertEqual({name: int(status[name], 16) for name in CAPABILITIES}, dict.fromkeys(CAPABILITIES, 0))
        self.assertEqual(status["NoNewPrivs"], "1")
        self.assertEqual(status["Uid"].split(), ["1000"] * 4)

    def test_seccomp_filter_is_active_after_privileges_are_dropped(self):
        self.assertEqual(self.unprivileged(status_of)["Seccomp"], "2")

    def test_confined_code_cannot_make_a_namespace(self):
        def tried():
            flags = (namespaces.CLONE_NEWUSER, namespaces.CLONE_NEWNS, namespaces.CLONE_NEWPID, namespaces.CLONE_NEWNET)
            with open("/proc/sys/user/max_user_namespaces") as file:
                return [errno_of(namespaces.unshare, flag) for flag in flags] + [int(file.read())]

        self.assertEqual(self.unprivileged(tried), [errno.EPERM] * 4 + [0])

    def test_confined_code_cannot_make_a_namespace_even_without_the_seccomp_filter(self):
        def tried():
            with mock.patch.object(confinement.seccomp, "install"):
                confinement.drop_privileges({})
            return errno_of(namespaces.unshare, namespaces.CLONE_NEWUSER)

        self.assertIn(self.in_namespace(tried), (errno.ENOSPC, errno.EPERM))

    def test_resource_limits_are_set_as_given_and_cannot_be_raised(self):
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
        self.assertEqual(self.unprivileged(found, given), expected)

    def test_resource_limits_that_are_lower_already_stay(self):
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
            confinement.drop_privileges({resource.RLIMIT_NOFILE: 4096, resource.RLIMIT_FSIZE: 10 * MIB, resource.RLIMIT_NPROC: 6000})
            return [resource.getrlimit(kind)[1] for kind in kinds]

        self.assertEqual(in_child(found), list(kinds.values()))

    def test_resources_that_the_kernel_counts_by_user_are_bounded(self):
        def found():
            kinds = (resource.RLIMIT_SIGPENDING, resource.RLIMIT_MSGQUEUE, resource.RLIMIT_MEMLOCK)
            names = ("max_inotify_instances", "max_inotify_watches")
            texts = []
            for name in names:
                with open("/proc/sys/user/" + name) as file:
                    texts.append(int(file.read()))
            return [resource.getrlimit(kind)[1] < 1 << 30 for kind in kinds] + [number < 10_000 for number in texts]

        self.assertEqual(self.unprivileged(found), [True] * 5)

    def test_confined_process_has_the_highest_oom_score(self):
        def score():
            with open("/proc/self/oom_score_adj") as file:
                return int(file.read())

        self.assertEqual(self.unprivileged(score), 1000)

    def test_confined_program_can_read_its_own_files_in_proc(self):
        """Its own files in /proc are its own, which debuggers and sanitizers count on."""

        def seen():
            return [os.stat("/proc/self/%s" % name).st_uid for name in ("environ", "maps", "fd")] + [len(os.listdir("/proc/self/fd")) > 2]

        self.assertEqual(self.unprivileged(seen), [1000, 1000, 1000, True])

    def test_mask_hides_a_folder_and_cannot_be_written_to(self):
        def covered():
            namespaces.make_mounts_private()
            before = len(os.listdir("/usr"))
            confinement.mask("/usr")
            write = errno_of(os.mkdir, "/usr/new")
            return [before > 0, os.listdir("/usr"), write]

        self.assertEqual(self.in_namespace(covered, namespaces.CLONE_NEWNS), [True, [], errno.EROFS])
        self.assertGreater(len(os.listdir("/usr")), 0)

    def test_loopback_is_up_and_the_only_network_interface(self):
        def reached():
            confinement.bring_loopback_up()
            with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as client:
                client.connect(listener.getsockname())
                client.sendall(b"x")
                accepted, _ = listener.accept()
                with accepted:
                    return [accepted.recv(1).decode(), [name for _, name in socket.if_nameindex() if name in ("lo", "eth0")]]

        self.assertEqual(self.in_namespace(reached, namespaces.CLONE_NEWNET), ["x", ["lo"]])

    def test_refused_system_call_raises_an_error_that_names_it(self):
        with self.assertRaisesRegex(OSError, "mount /no/such/folder"):
            namespaces.bind("/", "/no/such/folder")


class ConfinementFunctions(SessionTest):
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

    def test_session_is_pinned_to_as_many_processors_as_it_may_use(self):
        def kept(count, which):
            confinement.pin_to_processors(count, which)
            return sorted(os.sched_getaffinity(0))

        own = sorted(os.sched_getaffinity(0))
        self.assertEqual(in_child(kept, 1, 0), own[:1])
        self.assertEqual(in_child(kept, 1, 1), [own[1 % len(own)]])
        self.assertEqual(in_child(kept, len(own), 5), own)
        self.assertEqual(in_child(kept, len(own) + 50, 5), own)

    def test_all_descriptors_but_the_kept_ones_are_closed(self):
        def closed():
            before = open_descriptors()
            kept, dropped = os.open("/", os.O_RDONLY), os.open("/", os.O_RDONLY)
            confinement.close_all_but({kept, *before})
            return [errno_of(os.fstat, fd) for fd in (0, 1, 2, kept, dropped)]

        self.assertEqual(in_child(closed), [0, 0, 0, 0, errno.EBADF])

    def test_data_size_of_this_process_is_read(self):
        self.assertGreater(confinement.data_size(), MIB)

    def test_policy_is_read_as_the_user_who_owns_the_hidden_folder(self):
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

    def test_process_limit_is_an_rlimit_only_without_a_control_group(self):
        life = Confinement(policy())
        self.addCleanup(os.close, life.processes)
        expected = {resource.RLIMIT_NOFILE: 77, resource.RLIMIT_FSIZE: 10 * MIB, resource.RLIMIT_NPROC: 64}
        self.assertEqual(life.resource_limits(), expected)
        with mock.patch.object(life.group, "count", lambda kind: 0):
            self.assertNotIn(resource.RLIMIT_NPROC, life.resource_limits())


if __name__ == "__main__":
    unittest.main()
