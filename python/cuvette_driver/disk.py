"""Watches how many bytes the files of a session take, and how many files there are.

It asks first how much of the whole file system is used: as long as that has not grown by what the session has left, no file needs to be counted.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator

from cuvette_driver import processes
from cuvette_driver.background_call import BackgroundCall

# Seconds between two counts of all files; SPARINGLY times what a count took, where that is longer.
COUNT_EVERY, SPARINGLY, QUICK = 1.0, 20, 0.05
FAR_OFF = float("inf")
# Seconds to wait for the count of unlinked files: a process that keeps forking or mapping memory can block reads of its maps.
PATIENCE = 0.02
# The deepest folder that is counted, deeper than any program goes: each level costs a descriptor meanwhile.
DEEPEST = 400
BLOCK = 512
# How many times over its limits a session is far over: one call that is ended for what it writes does not get there, several do.
FAR_PAST_BYTES, FAR_PAST_FILES = 2, 4


class Disk:
    """The files of one session, against what they may take."""

    def __init__(self, folders: list[int], most_bytes: int, most_files: int) -> None:
        self.folders = folders
        self.most_bytes = most_bytes or (1 << 62)
        self.most_files = most_files or (1 << 62)
        self.used, self.files = 0, 0
        self.baseline: tuple[int, int] | None = None
        # The times from which on files are counted in any case: while code runs, and after it has failed.
        self.next_count = self.next_exact = 0.0
        self.at_start = (0, 0)
        self.unlinked = BackgroundCall(lambda: count_unlinked(folders))

    def begin(self) -> None:
        self._update(never_before=0.0 if self.baseline is None else FAR_OFF)
        self.at_start = (self.used, self.files)

    @property
    def is_full(self) -> bool:
        """As of the last count."""
        return self.used >= self.most_bytes or self.files >= self.most_files

    @property
    def is_far_past(self) -> bool:
        return self.used >= self.most_bytes * FAR_PAST_BYTES or self.files >= self.most_files * FAR_PAST_FILES

    def is_over(self, never_before: float | None = None) -> bool:
        """Says whether the session has reached its quota and grown since the execution began: one that was over before may still remove files.

        It is true at the quota itself, too, because there the kernel stops a single file from growing.
        """
        self._update(self.next_count if never_before is None else never_before)
        used, files = self.used, self.files
        return (used >= self.most_bytes and used > self.at_start[0]) or (files >= self.most_files and files > self.at_start[1])

    def _update(self, never_before: float) -> None:
        """Counts the files if the file system has grown by what the session has left; from the time `never_before` on in any case,
        since other sessions may have freed meanwhile what this one has used."""
        now, time_now = self.filesystem_usage(), time.monotonic()
        if self.baseline is not None and time_now < never_before and not self.is_full:
            # The baseline is the lowest usage that was seen: space that other sessions free does not hide this one's growth.
            self.baseline = (min(self.baseline[0], now[0]), min(self.baseline[1], now[1]))
            more_bytes, more_files = now[0] - self.baseline[0], now[1] - self.baseline[1]
            if more_bytes < self.most_bytes - self.used and more_files < self.most_files - self.files:
                return
        used, files = count_files(self.folders)
        self.used, self.files = used + self.unlinked.latest(PATIENCE), files
        self.baseline = self.filesystem_usage()
        spent = time.monotonic() - time_now
        self.next_count = time_now + max(COUNT_EVERY, SPARINGLY * spent)
        self.next_exact = time_now + (SPARINGLY * spent if spent > QUICK else 0.0)

    def filesystem_usage(self) -> tuple[int, int]:
        """Bytes and files in use on the whole file system."""
        about = os.statvfs(self.folders[0])
        return (about.f_blocks - about.f_bfree) * about.f_frsize, about.f_files - about.f_ffree


def count_files(folders: list[int]) -> tuple[int, int]:
    """Counts bytes and entries below some folders. It goes by descriptors, so that neither links nor overlong paths lead it astray."""
    seen: set[tuple[int, int]] = set()
    size = count = 0
    levels = [open_level(".", folder) for folder in folders]
    try:
        while levels:
            fd, names = levels[-1]
            if not names:
                levels.pop()
                os.close(fd)
                continue
            name = names.pop()
            count += 1
            try:
                about = os.stat(name, dir_fd=fd, follow_symlinks=False)
                is_folder = stat.S_ISDIR(about.st_mode)
                key = (about.st_dev, about.st_ino)
                if is_folder or key not in seen:
                    size += about.st_blocks * BLOCK
                if is_folder and len(levels) > DEEPEST:
                    return size, 1 << 62
                if is_folder:
                    levels.append(open_level(name, fd))
                elif about.st_nlink > 1:
                    seen.add(key)
            except OSError:
                pass  # It was removed meanwhile, or cannot be read.
        return size, count
    finally:
        for fd, _ in levels:
            os.close(fd)


def count_unlinked(folders: list[int]) -> int:
    """Counts bytes of unlinked files, which take room as long as a process of the session has them open or mapped."""
    devices = {os.fstat(folder).st_dev for folder in folders}
    sizes: dict[tuple[int, int], int] = {}
    for pid in processes.descendants(os.getpid()):
        for about in open_files("/proc/%d/fd/" % pid):
            if about.st_nlink == 0 and stat.S_ISREG(about.st_mode) and about.st_dev in devices:
                sizes[(about.st_dev, about.st_ino)] = about.st_blocks * BLOCK
        for device, inode, end in mapped_unlinked(pid):
            if device in devices:
                sizes[(device, inode)] = max(sizes.get((device, inode), 0), end)
    return sum(sizes.values())


def open_files(folder: str) -> Iterator[os.stat_result]:
    try:
        names = os.listdir(folder)
    except OSError:
        return  # The process has ended.
    for name in names:
        try:
            yield os.stat(folder + name)
        except OSError:
            pass  # It was closed.


def mapped_unlinked(pid: int) -> Iterator[tuple[int, int, int]]:
    """Yields device, inode and the end of the mapped range: the kernel does not tell the size of a file that is only mapped."""
    try:
        lines = processes.read("/proc/%d/maps" % pid).splitlines()
    except OSError:
        return
    for line in lines:
        if line.endswith(b" (deleted)"):
            span, _, offset, device, inode = line.split()[:5]
            start, _, end = span.partition(b"-")
            major, _, minor = device.partition(b":")
            yield os.makedev(int(major, 16), int(minor, 16)), int(inode), int(offset, 16) + int(end, 16) - int(start, 16)


def open_level(name: str, above: int) -> tuple[int, list[str]]:
    fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    return fd, os.listdir(fd)
