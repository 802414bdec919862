"""Helps tests of what a session uses: makes folders to fill, and children that take memory, time and disk."""

import functools
import os
import select
import subprocess
import sys
from unittest import mock

from harness import DRIVER, PATIENCE, SessionTest

sys.path.insert(0, os.path.dirname(DRIVER))
from cuvette_driver import processes
from cuvette_driver.disk import count_files

MIB = 1 << 20
# A child says that it is ready, and waits until it is killed or its parent has gone.
WAIT = "\nimport sys\nprint('ready', flush=True)\nsys.stdin.read()"
# Takes memory that is its own alone.
HOLD = "held = bytearray(b'x') * (%d << 20)" + WAIT
UNLINK = "import os\nfile = open('x', 'wb', buffering=0)\nos.unlink('x')\nfile.write(os.urandom(%d))\nos.fsync(file)" + WAIT


class Folders(SessionTest):
    """Needs only the waiting and the folders of the harness."""

    def setUp(self):
        self.folder = self.new_folder()
        self.fd = self.open_folder(self.folder)
        # Zygotes of other tests may still be below this process: they are not the session's.
        others = frozenset(processes.children(os.getpid()))
        patch = mock.patch.object(processes, "descendants", functools.partial(processes.descendants, without=others))
        patch.start()
        self.addCleanup(patch.stop)

    def open_folder(self, path):
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        self.addCleanup(os.close, fd)
        return fd

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, size=0):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as file:
            for _ in range(size // MIB):
                file.write(os.urandom(MIB))
            file.write(os.urandom(size % MIB))
            file.flush()
            os.fsync(file.fileno())

    def count(self, *folders):
        return count_files(list(folders or (self.fd,)))

    def start(self, code):
        """A child that has said its first line."""
        process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=self.folder)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.line_of(process)
        return process

    def line_of(self, process):
        readable, _, _ = select.select([process.stdout], [], [], PATIENCE)
        self.assertTrue(readable, "the child has said nothing within %s seconds" % PATIENCE)
        return process.stdout.readline()
