"""Tests that the files of a session are counted whatever is among them, and that growth over the quota is noticed."""

import os
import threading
import time
import unittest
from unittest import mock

from child_process import become_nobody, in_child
from harness import PATIENCE
from usage_helpers import MIB, UNLINK, WAIT, Folders

from cuvette_driver import disk
from cuvette_driver.disk import Disk, count_files


class FileCounts(Folders):
    def test_empty_folder_counts_as_nothing(self):
        self.assertEqual(self.count(), (0, 0))

    def test_bytes_and_entries_of_files_and_folders_are_counted(self):
        self.write("a/b/one", MIB)
        self.write("two", 2 * MIB)
        size, count = self.count()
        self.assertEqual(count, 4)
        self.assertGreaterEqual(size, 3 * MIB)
        self.assertLess(size, 4 * MIB)

    def test_several_folders_are_counted_together(self):
        other = self.new_folder()
        self.write("one", MIB)
        os.mkdir(os.path.join(other, "two"))
        self.assertEqual(self.count(self.fd, self.open_folder(other))[1], 2)

    def test_hard_links_to_one_file_count_its_bytes_once(self):
        self.write("one", 4 * MIB)
        os.mkdir(self.path("below"))
        for number in range(5):
            os.link(self.path("one"), self.path("below", str(number)))
        size, count = self.count()
        self.assertEqual(count, 7)
        self.assertLess(size, 5 * MIB)

    def test_symlinks_are_not_followed(self):
        outside = self.new_folder()
        with open(os.path.join(outside, "large"), "wb") as file:
            file.write(os.urandom(2 * MIB))
        os.symlink(outside, self.path("folder"))
        os.symlink(os.path.join(outside, "large"), self.path("file"))
        os.symlink("nowhere", self.path("gone"))
        os.symlink(".", self.path("loop"))
        size, count = self.count()
        self.assertEqual(count, 4)
        self.assertLess(size, MIB)

    def test_sparse_file_counts_by_its_allocated_blocks(self):
        with open(self.path("sparse"), "wb") as file:
            file.truncate(1 << 40)
        self.assertLess(self.count()[0], MIB)

    def test_tree_deeper_than_any_path_is_counted(self):
        """Longer than any path may be."""
        above = os.dup(self.fd)
        for _ in range(300):
            os.mkdir("x" * 50, dir_fd=above)
            below = os.open("x" * 50, os.O_RDONLY, dir_fd=above)
            os.close(above)
            above = below
        os.close(above)
        self.assertEqual(self.count()[1], 300)

    def test_tree_beyond_the_deepest_level_counts_as_over_the_limit(self):
        with mock.patch.object(disk, "DEEPEST", 10):
            os.makedirs(self.path(*["x"] * 20))
            self.assertGreater(self.count()[1], 1 << 60)

    def test_fifos_and_sockets_do_not_block_the_count(self):
        import socket

        os.mkfifo(self.path("fifo"))
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.path("sock"))
            self.assertEqual(self.count()[1], 2)

    def test_files_with_odd_names_are_counted(self):
        for name in (b"\xff\xfe", b"new\nline", b"-rf", b" ", b"..."):
            with open(os.path.join(os.fsencode(self.folder), name), "wb"):
                pass
        self.assertEqual(self.count()[1], 5)

    def test_count_leaves_no_descriptor_open(self):
        os.makedirs(self.path("a", "b", "c"))
        before = os.listdir("/proc/self/fd")
        self.count()
        with mock.patch.object(disk, "DEEPEST", 1):
            self.count()
        self.assertEqual(os.listdir("/proc/self/fd"), before)

    def test_files_that_vanish_during_the_count_do_not_break_it(self):
        """Whatever it counts is no more than there ever was."""
        stop = threading.Event()

        def churn():
            number = 0
            while not stop.is_set():
                number += 1
                folder = self.path(str(number % 7))
                os.makedirs(os.path.join(folder, "below"), exist_ok=True)
                for name in "abc":
                    with open(os.path.join(folder, "below", name), "wb"):
                        pass
                for name in "abc":
                    os.unlink(os.path.join(folder, "below", name))
                os.rmdir(os.path.join(folder, "below"))
                os.rmdir(folder)

        thread = threading.Thread(target=churn)
        thread.start()
        try:
            for _ in range(300):
                self.assertLessEqual(self.count()[1], 5 * 7)
        finally:
            stop.set()
            thread.join()

    def test_unreadable_folder_counts_as_one_entry(self):
        os.makedirs(self.path("closed", "below"))
        os.chmod(self.path("closed"), 0)
        os.chmod(self.folder, 0o755)
        self.addCleanup(os.chmod, self.path("closed"), 0o700)

        def counted():
            become_nobody()  # Root enters every folder.
            return self.count()

        self.assertEqual(in_child(counted)[1], 1)


class DiskQuota(Folders):
    """The room of a session on disk, as its files are."""

    def disk(self, mib=20, files=1000):
        disk = Disk([self.fd], mib * MIB, files)
        disk.begin()
        return disk

    def assert_over(self, disk):
        """At the latest when it counts in any case."""
        self.assert_soon(disk.is_over, "that it is over")

    def test_session_within_its_quota_is_not_over(self):
        disk = self.disk()
        self.write("a", 5 * MIB)
        self.assertFalse(disk.is_over(0.0))

    def test_session_that_grows_over_its_bytes_is_over(self):
        disk = self.disk()
        self.write("a", 15 * MIB)
        self.assertFalse(disk.is_over(0.0))
        self.write("b", 6 * MIB)
        self.assert_over(disk)

    def test_session_that_grows_over_its_file_count_is_over(self):
        disk = self.disk(files=50)
        for number in range(49):
            self.write("f%d" % number)
        self.assertFalse(disk.is_over(0.0))
        os.mkdir(self.path("one-more"))
        self.assert_over(disk)

    def test_session_exactly_at_its_quota_is_over(self):
        """The kernel stops a single file there, and tells nobody but the code."""
        self.write("a", 8 * MIB)
        exact = count_files([self.fd])[0]
        os.unlink(self.path("a"))
        disk = Disk([self.fd], exact, 0)
        disk.begin()
        self.write("a", 8 * MIB)
        self.assert_over(disk)

    def test_quota_of_zero_limits_nothing(self):
        disk = Disk([self.fd], 0, 0)
        disk.begin()
        self.write("a", 30 * MIB)
        self.assertFalse(disk.is_over(0.0))

    def test_session_that_was_over_before_may_remove_files(self):
        self.write("a", 25 * MIB)
        self.write("b", 25 * MIB)
        disk = self.disk()
        self.assertFalse(disk.is_over(0.0))
        os.unlink(self.path("a"))
        self.assertFalse(disk.is_over(0.0))
        self.write("small")
        self.assertFalse(disk.is_over(0.0))

    def test_session_that_was_over_before_may_not_grow(self):
        self.write("a", 25 * MIB)
        disk = self.disk()
        self.write("b", 5 * MIB)
        self.assert_over(disk)

    def test_session_that_removed_enough_files_is_no_longer_over(self):
        disk = self.disk()
        self.write("a", 25 * MIB)
        self.assert_over(disk)
        os.unlink(self.path("a"))
        self.assertFalse(disk.is_over(0.0))

    def test_quota_does_not_grow_with_each_execution_that_goes_over(self):
        disk = self.disk()
        for size in (25, 24, 23, 22, 21):
            disk.begin()
            self.write("a", size * MIB)
            self.assert_over(disk)
            os.unlink(self.path("a"))

    def test_unlinked_files_that_are_open_are_counted(self):
        disk = self.disk()
        self.start(UNLINK % (25 * MIB))
        self.assert_over(disk)

    def test_unlinked_open_files_are_counted_while_other_processes_come_and_go(self):
        disk = self.disk()
        self.start(UNLINK % (25 * MIB))
        listed = os.listdir
        # As if one had been closed just after it was listed.
        with mock.patch.object(os, "listdir", lambda path: ["99999", *listed(path)] if isinstance(path, str) else listed(path)):
            self.assert_over(disk)

    def test_unlinked_files_that_are_mapped_are_counted(self):
        disk = self.disk()
        code = (
            "import mmap, os\nfile = open('x', 'w+b')\nos.unlink('x')\nfile.truncate(%d)\nheld = mmap.mmap(file.fileno(), 0)\n"
            "for start in range(0, len(held), 4096): held[start] = 1\nheld.flush()\nos.closerange(3, 100)"
        )
        self.start(code % (25 * MIB) + WAIT)
        self.assert_over(disk)

    @unittest.skipUnless(hasattr(os, "memfd_create"), "there are no files in memory")
    def test_anonymous_memory_is_not_counted_as_disk(self):
        disk = self.disk()
        self.start("import os\nfd = os.memfd_create('x')\nos.write(fd, bytes(%d))" % (25 * MIB) + WAIT)
        self.assertFalse(disk.is_over(0.0))

    def test_folder_that_was_removed_is_not_over(self):
        """Its session is being removed: nothing is over, and nothing breaks."""
        os.mkdir(self.path("session"))
        fd = self.open_folder(self.path("session"))
        disk = Disk([fd], MIB, 10)
        disk.begin()
        os.rmdir(self.path("session"))
        self.assertFalse(disk.is_over(0.0))


class BlockedCount(Folders):
    """Code can keep others from looking at its memory; whoever watches it must not be kept from all else."""

    def test_count_goes_on_while_reading_a_process_map_blocks(self):
        let_go = threading.Event()
        self.addCleanup(let_go.set)
        with mock.patch.object(disk, "mapped_unlinked", lambda _: let_go.wait(PATIENCE) and ()):
            self.start("print(flush=True)" + WAIT)
            watched = Disk([self.fd], 10 * MIB, 0)
            began = time.monotonic()
            watched.begin()
            self.write("a", 12 * MIB)
            self.assertTrue(watched.is_over(0.0))
            self.assertLess(time.monotonic() - began, PATIENCE)


class FileSystemCheck(Folders):
    """Files are not counted as long as the file system itself has not grown: with numbers of its own, since others use the real one, too."""

    def setUp(self):
        super().setUp()
        self.taken = (1000 * MIB, 5000)
        self.counts = 0
        self.counted = (0, 0)
        self.clock = 1000.0
        for name, stand_in in (("count_files", self.count_now), ("count_unlinked", lambda *_: 0)):
            patch = mock.patch.object(disk, name, stand_in)
            patch.start()
            self.addCleanup(patch.stop)
        patch = mock.patch.object(disk.time, "monotonic", lambda: self.clock)
        patch.start()
        self.addCleanup(patch.stop)
        self.disk = Disk([self.fd], 100 * MIB, 100)
        self.disk.filesystem_usage = lambda: self.taken
        self.disk.begin()
        self.counts = 0

    def count_now(self, _):
        self.counts += 1
        return self.counted

    def grow(self, mib=0, files=0):
        """The session's files, and with them the file system."""
        self.counted = (self.counted[0] + mib * MIB, self.counted[1] + files)
        self.others_grow(mib, files)

    def others_grow(self, mib=0, files=0):
        self.taken = (self.taken[0] + mib * MIB, self.taken[1] + files)

    def is_over(self):
        return self.disk.is_over()

    def test_files_are_not_counted_while_the_file_system_has_not_grown_enough(self):
        for _ in range(10):
            self.grow(9, 9)
            self.assertFalse(self.is_over())
        self.assertEqual(self.counts, 0)

    def test_growth_in_bytes_is_noticed_by_the_file_system_check(self):
        for _ in range(9):
            self.grow(11)
            self.assertFalse(self.is_over())
        self.grow(11)
        self.assertTrue(self.is_over())

    def test_growth_in_file_count_is_noticed_by_the_file_system_check(self):
        for _ in range(9):
            self.grow(0, 11)
            self.assertFalse(self.is_over())
        self.grow(0, 11)
        self.assertTrue(self.is_over())

    def test_growth_of_other_sessions_is_not_counted_against_this_one(self):
        self.others_grow(500, 500)
        self.assertFalse(self.is_over())
        self.assertEqual(self.counts, 1)

    def test_space_that_others_free_does_not_hide_growth(self):
        self.others_grow(-900, -900)
        self.assertFalse(self.is_over())
        self.grow(101)
        self.assertTrue(self.is_over())

    def test_space_that_others_free_meanwhile_hides_growth_only_until_the_next_count(self):
        self.grow(101)
        self.others_grow(-500)
        self.is_over()
        self.clock += 1.5
        self.assertTrue(self.is_over())

    def test_growth_is_noticed_on_a_file_system_that_does_not_count_its_files(self):
        self.taken = (0, 0)
        self.disk.filesystem_usage = lambda: (0, 0)
        self.is_over()
        self.counted = (0, 200)
        self.clock += 1.5
        self.assertTrue(self.is_over())

    def test_next_execution_starts_from_the_current_usage(self):
        self.grow(120)
        self.assertTrue(self.is_over())
        self.grow(-120)
        self.disk.begin()
        self.grow(110)
        self.assertTrue(self.is_over())

    def test_slow_counts_are_repeated_less_often(self):
        def slow(_):
            self.clock += 2.0
            return self.count_now(_)

        with mock.patch.object(disk, "count_files", slow):
            self.clock += 5.0
            self.is_over()
            self.assertEqual(self.counts, 1)
            for _ in range(10):
                self.clock += 1.0
                self.is_over()
            self.assertEqual(self.counts, 1)


class CountDescriptors(Folders):
    def test_count_works_with_few_descriptors_left(self):
        """A session may have used up all but a few of what its own process may open."""
        os.makedirs(self.path("a", "b"))

        def counted():
            import resource

            resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
            return count_files([self.fd])

        self.assertEqual(in_child(counted)[1], 2)


if __name__ == "__main__":
    unittest.main()
